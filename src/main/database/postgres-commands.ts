/** The commands of PostgreSQL for people: with the address of the database, and without its password. */
import { LEASE_TABLE } from '../../system/backup/pg-dump.ts'

/** Makes a copy of a database, without who is active on it. @param url without a password */
export function dumpCommand(url: string, file: string): string {
  return `pg_dump --format=custom --exclude-table-data=${quoted(LEASE_TABLE)} --file=${quoted(file)} --dbname=${quoted(url)}`
}

/** Brings a copy into an empty database, wholly or not at all. @param url without a password */
export function restoreCommand(url: string, file: string): string {
  return `pg_restore --single-transaction --no-owner --dbname=${quoted(url)} ${quoted(file)}`
}

/** Looks for damage that only PostgreSQL can find. @param url without a password */
export function damageCommand(url: string): string {
  return `pg_amcheck --install-missing --heapallindexed ${quoted(url)}`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
