import { DatabaseError } from 'pg'
import { AppError } from '../../core/errors.ts'
import { StoreDamaged, StoreFull } from '../../ports/store/store-trouble.ts'
import { type PostgresTrouble, postgresTrouble, printableAddress } from './postgres-trouble.ts'
import { unavailable } from './sqlite-errors.ts'

const UNTRUSTED =
  'the certificate of PostgreSQL is of an authority that is not trusted (sslrootcert names the file of another)'

/** Prefixes of the SQLSTATEs of a PostgreSQL that cannot work now, each with a phrase for people. */
const UNAVAILABLE: readonly (readonly [code: string, reason: string])[] = [
  ['08', 'the connection to PostgreSQL was lost'],
  ['25006', 'PostgreSQL only lets it read'],
  ['25P03', 'PostgreSQL ended a transaction that took too long'],
  ['28P01', 'PostgreSQL refuses its user or password'],
  ['28', 'PostgreSQL does not let it in'],
  ['3D000', 'PostgreSQL does not have its database'],
  ['42501', 'its user may not do this in PostgreSQL'],
  ['53300', 'PostgreSQL has too many connections'],
  ['53', 'PostgreSQL lacks resources'],
  ['55P03', 'PostgreSQL waited too long for a lock'],
  ['57014', 'PostgreSQL took too long'],
  ['57P', 'PostgreSQL is starting or stopping'],
  ['58', 'PostgreSQL has trouble with its system'],
  ['XX', 'PostgreSQL has an internal error'],
]

/** Codes of a connection that was not made, each with a phrase for people. */
const CONNECTION_REASONS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate of PostgreSQL has expired',
  CERT_NOT_YET_VALID: 'the certificate of PostgreSQL is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of PostgreSQL is for another host',
  ENOTFOUND: 'the host of PostgreSQL has no address',
}

/** The SQLSTATEs of damaged tables and indexes. */
const DAMAGED: ReadonlySet<string> = new Set(['XX001', 'XX002'])

/** The SQLSTATE `disk_full`. */
const DISK_FULL = '53100'

/** The SQLSTATE of `assert_server_epoch` in postgres-lease.ts. */
export const EPOCH_OVER = 'RY001'
const RETRY_AFTER_S = 2
/** The message of `pg`, which has no code. */
const NO_TLS = 'The server does not support SSL connections'

/**
 * The error that a caller of the store gets for one of the driver: `unavailable` where the connection or the server
 * is at fault, and the error itself where a statement is. All that does not come from PostgreSQL itself is about the
 * connection.
 */
export function errorFromPostgres(error: unknown): unknown {
  if (error instanceof AppError) return error
  if (!(error instanceof DatabaseError)) return unavailable(connectionReason(error), error)
  const { code = '' } = error
  if (code === EPOCH_OVER) return epochOver(error)
  if (DAMAGED.has(code)) return new StoreDamaged('the database in PostgreSQL', error.message, error)
  if (code === DISK_FULL) return new StoreFull('the disk of PostgreSQL is full', error)
  const reason = UNAVAILABLE.find(([start]) => code.startsWith(start))?.[1]
  return reason === undefined ? error : unavailable(reason, error)
}

function connectionReason(error: unknown): string {
  const { code = '', message = '' } = (error ?? {}) as { readonly code?: string; readonly message?: string }
  if (message === NO_TLS) return 'PostgreSQL does not speak TLS'
  return CONNECTION_REASONS[code] ?? 'PostgreSQL does not answer'
}

/**
 * The error of a failed start: an error of {@link errorFromPostgres} with the place of the database, the cause and the
 * remedy. Other errors stay the same.
 * @param url of the database, whose password is not in the message
 */
export function withPlace(error: unknown, url: string): unknown {
  if (!(error instanceof AppError) || error.code !== 'unavailable' || isEpochOver(error)) return error
  const { cause } = error
  if (!(cause instanceof Error))
    return new AppError(error.code, `${error.message} (${printableAddress(url)})`, { cause })
  return new AppError(error.code, troubleText(postgresTrouble(cause, url), url), { cause })
}

/** A problem as a sentence with the place of the database. */
export function troubleText({ problem, remedy }: PostgresTrouble, url: string): string {
  return `PostgreSQL at ${printableAddress(url).replace(/^\w+:\/\//, '')}: ${problem}; ${remedy}`
}

/**
 * True where the same operation may well succeed when it runs again: it met another one, as a deadlock or as a row
 * that was added or removed after it had looked.
 */
export function isCollision(error: unknown): boolean {
  return error instanceof DatabaseError && ['40001', '40P01', '23503', '23505'].includes(error.code ?? '')
}

function epochOver(cause: DatabaseError): AppError {
  const message = 'another server has taken over the database, and this one no longer changes anything; try again'
  return new AppError('unavailable', message, { cause, retryAfterSeconds: RETRY_AFTER_S })
}

/** True where PostgreSQL refused a change because the epoch of this server is over. */
export function isEpochOver(error: unknown): boolean {
  const cause = error instanceof AppError ? error.cause : null
  return cause instanceof DatabaseError && cause.code === EPOCH_OVER
}

/** True where PostgreSQL, or the role, has as many connections as it may. */
export function isTooManyConnections(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '53300'
}

/** The error of an operation that met others too often; any other error is a mistake in this program, unchanged. */
export function afterCollisions(error: unknown): unknown {
  const code = error instanceof DatabaseError ? error.code : undefined
  return code === '40001' || code === '40P01' ? unavailable('others keep changing the same things', error) : error
}
