/**
 * The note of the number of changes that an embedded database has on stable storage, in a file beside it. A
 * write-ahead log that was cut or changed looks to SQLite like one that ends earlier; the note shows that there was
 * more (docs/adr/0081-the-note-of-changes.md).
 */
import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { writeDurably } from '../../disk/durable-file.ts'
import { errorFromSqlite } from './sqlite-errors.ts'

/** Number of changes of a database, and the id of the database. */
export interface ChangeCount {
  /** Made at random for each database; a copy gets another one. */
  readonly lineage: string
  /** Operations that changed something and were flushed. */
  readonly changes: number
}

/** The table of the count, which has one row. */
export const CHANGE_COUNT = 'change_count'
const FORM = /^([\da-f]{16}) (\d{15}) ([\da-f]{8})\n$/
/** Limit of notes between two flushes. */
const UNFLUSHED = 1_024

/** The file of the note of a database. */
export function changeNoteFile(database: string): string {
  return `${database}-changes`
}

/** The note of a database; null where there is none, or one that a power cut has left half written. */
export function readChangeNote(database: string): ChangeCount | null {
  const file = changeNoteFile(database)
  if (!existsSync(file)) return null
  const match = FORM.exec(readFileSync(file, 'latin1'))
  if (match === null) return null
  const count = { lineage: match[1]!, changes: Number(match[2]) }
  return formatNote(count) === match[0] ? count : null
}

/** The count that an open database has; null where it keeps none. @throws the error of SQLite */
export function changeCountIn(database: DatabaseSync): ChangeCount | null {
  const made = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = '${CHANGE_COUNT}'`).get() !== undefined
  if (!made) return null
  const row = database.prepare(`SELECT lineage, changes FROM ${CHANGE_COUNT}`).get()
  return row === undefined ? null : { lineage: String(row.lineage), changes: Number(row.changes) }
}

/**
 * The loss of the file of a database, as a sentence; null without one.
 * @throws AppError `unavailable` when it cannot be read
 */
export function lossIn(database: string): string | null {
  const noted = readChangeNote(database)
  if (noted === null || !existsSync(database)) return null
  try {
    using connection = new DatabaseSync(database, { readOnly: true, timeout: 2_000 })
    return missingText(noted, changeCountIn(connection))
  } catch (error) {
    throw errorFromSqlite(error)
  }
}

/**
 * The changes that a database lost, as a sentence without a full stop; null without any.
 * @param noted read before the database, which may be in use
 */
export function missingText(noted: ChangeCount | null, counted: ChangeCount | null): string | null {
  if (noted === null || counted === null || noted.lineage !== counted.lineage) return null
  const missing = noted.changes - counted.changes
  if (missing <= 0) return null
  const changes = missing === 1 ? 'the last change is' : `the last ${missing} changes are`
  return (
    `${changes} missing: the database has ${counted.changes} of the ${noted.changes} changes that were on stable storage; ` +
    'its write-ahead log was cut, changed or removed, or an older copy of the file was put in its place'
  )
}

/** Notes the present changes of a database as all that it had. @throws the system's error */
export function acceptChanges(database: string, count: ChangeCount): void {
  writeDurably(changeNoteFile(database), formatNote(count))
}

/**
 * The note that is being kept. It is written after its changes are on stable storage, so that it may be older than
 * the database after a power cut and never newer. It is never in the way: where it cannot be written, the database
 * goes on without it.
 */
export class ChangeNote {
  readonly #handle
  #unflushed = 0
  #failed = false

  private constructor(handle: number) {
    this.#handle = handle
  }

  /** Opens the note of a database. @returns null where that is not possible */
  static open(database: string): ChangeNote | null {
    try {
      const file = changeNoteFile(database)
      return new ChangeNote(openSync(file, existsSync(file) ? 'r+' : 'w', 0o600))
    } catch {
      return null
    }
  }

  /** Notes changes that are on stable storage. */
  write(count: ChangeCount): void {
    if (this.#failed) return
    try {
      writeSync(this.#handle, formatNote(count), 0, 'latin1')
      this.#unflushed += 1
      if (this.#unflushed >= UNFLUSHED) this.#flush()
    } catch {
      this.#failed = true
    }
  }

  /** Puts the note on stable storage, and ends. */
  close(): void {
    try {
      this.#flush()
    } catch {
      // The note is older then.
    }
    closeSync(this.#handle)
  }

  #flush(): void {
    fdatasyncSync(this.#handle)
    this.#unflushed = 0
  }
}

function formatNote({ lineage, changes }: ChangeCount): string {
  const text = `${lineage} ${String(changes).padStart(15, '0')}`
  return `${text} ${crc32(text).toString(16).padStart(8, '0')}\n`
}
