/**
 * The database that a data directory belongs to. A note in the directory names it. A PostgreSQL has an id of its own
 * as well, by which it is known again at another address (docs/adr/0076-the-database-of-a-data-directory.md).
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createDurably, keepDurably } from '../disk/durable-file.ts'
import { databaseIdentity, schemaOfFile } from './database-check.ts'

/** The content of the note of a data directory. */
export interface DatabaseNote {
  /** For people: `the embedded database`, or a PostgreSQL with its address and without user and password. */
  readonly name: string
  /**
   * The id that the PostgreSQL keeps; null for the embedded database, and for a note of a server that knew no ids.
   */
  readonly id: string | null
}

/** The reason why a server may not start on a database with this data directory. */
export interface DatabaseMismatch {
  /** A sentence without a full stop: the database of the directory, and the one that was given or found instead. */
  readonly problem: string
  /** The remedy, in the same form. */
  readonly remedy: string
}

/** The file of the embedded database in a data directory. */
export const DATABASE_NAME = 'runyard.sqlite'
/** The note of the head of the audit log in a data directory, which each server writes. */
export const AUDIT_HEAD_NAME = 'audit-head'
const EMBEDDED = 'the embedded database'

/**
 * Name of a database for people, without user and password.
 * @param url null for the embedded one
 * @param schema of a PostgreSQL, where it is known
 */
export function databaseName(url: string | null, schema: string | null = null): string {
  if (url === null) return EMBEDDED
  const { host, pathname } = new URL(url)
  const inSchema = schema === null || schema === 'public' ? '' : `, schema ${schema}`
  return `PostgreSQL at ${host}${pathname}${inSchema}`
}

/** The note of a data directory; null where no server has run on it yet. */
export function databaseNote(dataDir: string): DatabaseNote | null {
  const file = noteFile(dataDir)
  if (!existsSync(file)) return null
  const [name = '', second = ''] = readFileSync(file, 'utf8').trim().split('\n')
  if (name === '') return null
  return { name, id: second.startsWith(ID) ? second.slice(ID.length) : null }
}

/**
 * The mismatch when a data directory belongs to another database than the one given, or has lost its own. Writes
 * nothing.
 * @param url of a PostgreSQL; null for the embedded database
 * @returns null if it belongs to it, or to no database yet
 * @throws AppError `unavailable` when the database has to be asked and cannot be read
 */
export async function databaseMismatch(dataDir: string, url: string | null): Promise<DatabaseMismatch | null> {
  const note = databaseNote(dataDir)
  if (url === null) return note === null ? unnotedMismatch(dataDir) : embeddedMismatch(dataDir, note)
  const isEmbedded = note === null ? findLoss(join(dataDir, DATABASE_NAME)) === null : note.name === EMBEDDED
  if (isEmbedded) return givenPostgres(dataDir, url)
  return note === null ? null : (await compared(dataDir, note, url)).mismatch
}

/**
 * Notes that a data directory belongs to a database, which has its schema by now.
 * @param mayReplace true if it may have belonged to another one
 * @returns the mismatch that prevents it, with the note unchanged; null when it is noted
 * @throws AppError `unavailable` when PostgreSQL cannot be asked
 */
export async function noteDatabase(
  dataDir: string,
  url: string | null,
  mayReplace: boolean,
): Promise<DatabaseMismatch | null> {
  const file = noteFile(dataDir)
  const isFirst = !existsSync(file)
  const note = databaseNote(dataDir)
  if (note !== null && !mayReplace) {
    if (url === null && note.name !== EMBEDDED) return embeddedMismatch(dataDir, note)
    if (url !== null && note.name === EMBEDDED) return givenPostgres(dataDir, url)
  }
  const identity = url === null ? { name: EMBEDDED, id: null, mismatch: null } : await compared(dataDir, note, url)
  if (identity.mismatch !== null && !mayReplace) return identity.mismatch
  const text = `${identity.name}\n${identity.id === null ? '' : `${ID}${identity.id}\n`}`
  if (!isFirst) keepDurably(file, text)
  // Another server may have been the first at the same moment.
  else if (!createDurably(file, text)) return noteDatabase(dataDir, url, mayReplace)
  return null
}

function noteFile(dataDir: string): string {
  return join(dataDir, 'store')
}

const ID = 'id '

/** Without note and database, the note of the audit log still says that a server ran there. */
function unnotedMismatch(dataDir: string): DatabaseMismatch | null {
  return existsSync(join(dataDir, AUDIT_HEAD_NAME)) ? embeddedMismatch(dataDir, { name: EMBEDDED, id: null }) : null
}

function embeddedMismatch(dataDir: string, { name }: DatabaseNote): DatabaseMismatch | null {
  if (name !== EMBEDDED) {
    return {
      problem: `the data directory ${dataDir} belongs to ${name}, and no database is given`,
      remedy:
        'give its address in RUNYARD_DATABASE, or another --data-dir; ' +
        'a start with --new-database leaves that database and begins with an embedded one',
    }
  }
  const lost = findLoss(join(dataDir, DATABASE_NAME))
  if (lost === null) return null
  return {
    problem: `the data directory ${dataDir} has had an embedded database, and its file ${DATABASE_NAME} ${lost}`,
    remedy:
      'put the file back, or restore a backup into a new folder with runyard restore; ' +
      'a start with --new-database begins with an empty one',
  }
}

/** The problem of the file of a database that had a schema; null when it has one, or is damaged in another way. */
function findLoss(file: string): string | null {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (stats === undefined) return 'is missing'
  if (!stats.isFile()) return 'is not a file'
  if (stats.size === 0) return 'is empty'
  try {
    return schemaOfFile(file) === null ? 'is empty' : null
  } catch {
    return null
  }
}

function givenPostgres(dataDir: string, url: string): DatabaseMismatch {
  const name = databaseName(url)
  return {
    problem: `the data directory ${dataDir} belongs to the embedded database in it, and ${name} is given`,
    remedy:
      'leave RUNYARD_DATABASE and --database out, or give another --data-dir; ' +
      `a start with --new-database leaves the embedded database and takes ${name} as it is`,
  }
}

/** Compares a note with a PostgreSQL, whose name and id come with the answer. */
async function compared(dataDir: string, note: DatabaseNote | null, url: string) {
  const { id, schema, hasTables } = await databaseIdentity(url)
  const name = databaseName(url, schema)
  const identity = { id, name, mismatch: null }
  if (note === null) return identity
  const isSame = note.id === null ? [name, databaseName(url)].includes(note.name) && hasTables : note.id === id
  if (isSame) return identity
  return { ...identity, mismatch: otherPostgres(dataDir, note, name, hasTables) }
}

function otherPostgres(dataDir: string, note: DatabaseNote, name: string, hasTables: boolean): DatabaseMismatch {
  const content = hasTables ? 'another database' : 'empty'
  const unknown = note.id === null && hasTables
  return {
    problem: unknown
      ? `the data directory ${dataDir} belongs to ${note.name}, and ${name} is given`
      : `the data directory ${dataDir} belongs to ${note.name}, and ${name} is ${content}`,
    remedy:
      (hasTables
        ? 'give the address of its own database, or another --data-dir; '
        : 'give the address of its own database, restore a copy of it with pg_restore, or give another --data-dir; ') +
      `a start with --new-database takes ${name} as it is`,
  }
}
