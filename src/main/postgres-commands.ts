/** The commands of PostgreSQL for people: with the address of the database, and without its password. */

/** The address of a PostgreSQL for arguments of commands. */
export function withoutPassword(url: string): string {
  const address = new URL(url)
  address.password = ''
  address.searchParams.delete('password')
  return address.href.replaceAll('+', '%20')
}

/** Makes a copy of a database, without who is active on it. @param url without a password */
export function dumpCommand(url: string, file: string): string {
  return `pg_dump --format=custom --exclude-table-data='*.server_lease' --file=${quoted(file)} --dbname=${quoted(url)}`
}

/** Brings a copy into an empty database. @param url without a password */
export function restoreCommand(url: string, file: string): string {
  return `pg_restore --exit-on-error --no-owner --dbname=${quoted(url)} ${quoted(file)}`
}

/** Looks for damage that only PostgreSQL can find. @param url without a password */
export function damageCommand(url: string): string {
  return `pg_amcheck --install-missing --heapallindexed ${quoted(url)}`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
