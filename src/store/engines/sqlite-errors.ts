import { AppError } from '../../core/errors.ts'
import { StoreDamaged, StoreFull } from '../../ports/store/store-trouble.ts'

/** Primary result codes of an SQLite that cannot work now, each with a phrase for people. */
const UNAVAILABLE: Readonly<Record<number, string>> = {
  5: 'its database is locked by another process',
  6: 'its database is locked',
  7: 'it is out of memory',
  8: 'its database cannot be written',
  10: 'its disk failed',
  14: 'its database cannot be opened',
}

/**
 * A reader needs room, too: `SQLITE_IOERR_SHMSIZE` of the file that it shares with others is a full disk in all but
 * name.
 */
const FULL: ReadonlySet<number> = new Set([13, 4874])

/** The file, for people: its path is for the operator alone. */
const DATABASE_FILE = 'the database file runyard.sqlite'
/** Primary result codes of a damaged file: `SQLITE_CORRUPT` and `SQLITE_NOTADB`. */
const DAMAGED: ReadonlySet<number> = new Set([11, 26])
/**
 * Message of SQLite, with a code that means nothing else, about a header with a number of a format that no version
 * has.
 */
const UNKNOWN_FORMAT = 'unsupported file format'

/** Message of SQLite about a damaged file; null for all other errors. */
export function damageMessage(error: unknown): string | null {
  if (!isSqliteError(error)) return null
  const { errcode, message } = error
  return DAMAGED.has(errcode & 0xff) || message === UNKNOWN_FORMAT ? message : null
}

/**
 * The error that a caller of the store gets for one of SQLite: `unavailable` where the machine is at fault, as {@link
 * StoreFull} on a full disk; {@link StoreDamaged} where the file is damaged; and the error itself where a statement
 * is wrong, since that is a mistake in this program.
 */
export function errorFromSqlite(error: unknown): unknown {
  const damage = damageMessage(error)
  if (damage !== null) return new StoreDamaged(DATABASE_FILE, damage, error)
  if (!isSqliteError(error)) return error
  if (isFullDisk(error)) return new StoreFull('its disk is full', error)
  const reason = UNAVAILABLE[error.errcode & 0xff]
  return reason === undefined ? error : unavailable(reason, error)
}

/** True where SQLite met a full disk, also while it read. */
export function isFullDisk(error: unknown): boolean {
  return isSqliteError(error) && FULL.has(error.errcode)
}

/** @param reason problem of the store, as the end of a sentence */
export function unavailable(reason: string, cause?: unknown): AppError {
  return new AppError('unavailable', `the store cannot do this now: ${reason}`, { cause })
}

function isSqliteError(error: unknown): error is Error & { errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}
