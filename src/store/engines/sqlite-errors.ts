import { AppError } from '../../core/errors.ts'

/** Primary result codes of an SQLite that cannot work now, each with a phrase for people. */
const UNAVAILABLE: Readonly<Record<number, string>> = {
  5: 'its database is locked by another process',
  6: 'its database is locked',
  7: 'it is out of memory',
  8: 'its database cannot be written',
  10: 'its disk failed',
  11: 'its database is damaged',
  13: 'its disk is full',
  14: 'its database cannot be opened',
  26: 'its file is no database',
}

/**
 * What a caller of the store gets for an error of SQLite: `unavailable` where the machine is at fault, and the error
 * itself where a statement is, since that is a mistake in this program.
 */
export function fromSqlite(error: unknown): unknown {
  if (!isSqliteError(error)) return error
  const reason = UNAVAILABLE[error.errcode & 0xff]
  return reason === undefined ? error : unavailable(reason, error)
}

/** @param reason what is the matter with the store, as the end of a sentence */
export function unavailable(reason: string, cause?: unknown): AppError {
  return new AppError('unavailable', `the store cannot do this now: ${reason}`, { cause })
}

function isSqliteError(error: unknown): error is Error & { errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}
