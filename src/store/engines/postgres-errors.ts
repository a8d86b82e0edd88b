import { DatabaseError } from 'pg'
import { AppError } from '../../core/errors.ts'
import { unavailable } from './sqlite-errors.ts'

/** Prefixes of the SQLSTATEs of a PostgreSQL that cannot work now, each with a phrase for people. */
const UNAVAILABLE: readonly (readonly [code: string, reason: string])[] = [
  ['08', 'the connection to PostgreSQL was lost'],
  ['25006', 'PostgreSQL only lets it read'],
  ['25P03', 'PostgreSQL ended a transaction that took too long'],
  ['28', 'PostgreSQL refuses its user or password'],
  ['3D000', 'PostgreSQL does not have its database'],
  ['42501', 'its user may not do this in PostgreSQL'],
  ['53100', 'the disk of PostgreSQL is full'],
  ['53300', 'PostgreSQL has too many connections'],
  ['53', 'PostgreSQL lacks resources'],
  ['55P03', 'PostgreSQL waited too long for a lock'],
  ['57014', 'PostgreSQL took too long'],
  ['57P', 'PostgreSQL is starting or stopping'],
  ['58', 'PostgreSQL has trouble with its system'],
  ['XX', 'PostgreSQL has an internal error'],
]

/** The SQLSTATE of `assert_server_epoch` in postgres-lease.ts. */
export const EPOCH_OVER = 'RY001'
const RETRY_AFTER_S = 2

/**
 * What a caller of the store gets for what the driver threw: `unavailable` where the connection or the server is at
 * fault, and the error itself where a statement is. All that does not come from PostgreSQL itself is about the connection.
 */
export function fromPostgres(error: unknown): unknown {
  if (error instanceof AppError) return error
  if (!(error instanceof DatabaseError)) return unavailable('PostgreSQL does not answer', error)
  const { code = '' } = error
  if (code === EPOCH_OVER) return epochOver(error)
  const reason = UNAVAILABLE.find(([start]) => code.startsWith(start))?.[1]
  return reason === undefined ? error : unavailable(reason, error)
}

/**
 * Whether the same operation may well succeed when it runs again: it met another one, as a deadlock or as a row that was
 * added or removed after it had looked.
 */
export function isCollision(error: unknown): boolean {
  return error instanceof DatabaseError && ['40001', '40P01', '23503', '23505'].includes(error.code ?? '')
}

function epochOver(cause: DatabaseError): AppError {
  const message = 'another server has taken over the database, and this one changes nothing any more; try again'
  return new AppError('unavailable', message, { cause, retryAfterSeconds: RETRY_AFTER_S })
}

/** Whether PostgreSQL refused a change because the epoch of this server is over. */
export function isEpochOver(error: unknown): boolean {
  const cause = error instanceof AppError ? error.cause : null
  return cause instanceof DatabaseError && cause.code === EPOCH_OVER
}

/** Whether PostgreSQL, or the role, has as many connections as it may. */
export function isTooManyConnections(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '53300'
}

/** An operation that has met others too often. What else it may be is a mistake in this program. */
export function afterCollisions(error: unknown): unknown {
  const code = error instanceof DatabaseError ? error.code : undefined
  return code === '40001' || code === '40P01' ? unavailable('others keep changing the same things', error) : error
}
