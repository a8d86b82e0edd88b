/** Failed calls of a container engine, and their meaning for a start. */
import { AppError } from '../../../core/errors.ts'
import {
  type EngineAbsence,
  type StartFailure,
  startFailureText,
  WorkerStartError,
} from '../../../core/workers/start-failure.ts'
import { clean, findRefusal } from '../../base/refusals.ts'

/** A call of the engine that failed. */
export class EngineError extends Error {
  /** The HTTP status of the response; null when none came. */
  readonly status: number | null
  /** True where no engine listens, in contrast to a response that took too long. */
  readonly away: boolean

  constructor(message: string, status: number | null, away: boolean, cause?: unknown) {
    super(message, { cause })
    this.name = 'EngineError'
    this.status = status
    this.away = away
  }
}

/** A call while the engine is known to be away. */
export class EngineAway extends EngineError {
  readonly absence: EngineAbsence

  constructor(absence: EngineAbsence) {
    super(startFailureText({ kind: 'engine_away', ...absence }), null, true)
    this.absence = absence
  }
}

/** Error codes of sockets on which no engine listens. */
const AWAY: Readonly<Record<string, string>> = {
  ENOENT: 'nothing is there',
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was cut off',
  EACCES: 'this user may not use it (permission denied); add the user to its group, often docker',
  EPERM: 'this user may not use it (permission denied)',
  ENOTFOUND: 'its host name does not resolve',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its network cannot be reached',
  ETIMEDOUT: 'its host does not answer',
}

/** A call that an engine refused; the message is that of the engine, and may have several lines. */
export class RefusedCall extends Error {
  /** The HTTP status. */
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.name = 'RefusedCall'
    this.status = status
  }
}

/** An error of a call as an {@link EngineError}, whose message has one line. */
export function engineError(thrown: unknown): EngineError {
  if (thrown instanceof EngineError) return thrown
  if (thrown instanceof RefusedCall) return new EngineError(clean(thrown.message), thrown.status, false, thrown)
  const { code, message = '' } = (thrown ?? {}) as Partial<NodeJS.ErrnoException>
  const reason = AWAY[code ?? '']
  const hangUp = /socket hang up|aborted/i.test(message)
  return new EngineError(
    reason ?? clean(message === '' ? 'unknown problem' : message),
    null,
    reason !== undefined || hangUp,
    thrown,
  )
}

/**
 * An error of a call for the person who runs the engine.
 * @param answered makes the error where the engine has responded, from its message
 */
export function engineRefusal(thrown: unknown, answered: (message: string) => AppError): AppError {
  if (thrown instanceof AppError) return thrown
  if (thrown instanceof RefusedCall) return answered(thrown.message.trim())
  const { code, message = '' } = thrown as Partial<NodeJS.ErrnoException>
  const problem = AWAY[code ?? ''] ?? code ?? message
  const failure = { kind: 'engine_away', how: 'unreachable', address: null, said: problem } as const
  return new WorkerStartError(failure, { code: 'unavailable', cause: thrown })
}

/** An error of a start as one with a reason. */
export function startRefusal(thrown: unknown, memoryMb: number | null = null): AppError {
  return thrown instanceof AppError
    ? thrown
    : new WorkerStartError(failureFromError(engineError(thrown), memoryMb), { cause: thrown })
}

function failureFromError(error: EngineError, memoryMb: number | null): StartFailure {
  if (error instanceof EngineAway) return { kind: 'engine_away', ...error.absence }
  const { message, status, away } = error
  const absence = { kind: 'engine_away', address: null, said: message } as const
  if (status === null) return { ...absence, how: away ? 'unreachable' : 'unresponsive' }
  return (
    findRefusal(message, memoryMb) ??
    (status === 503 ? { ...absence, how: 'overloaded' } : { kind: 'engine_refused', said: message })
  )
}
