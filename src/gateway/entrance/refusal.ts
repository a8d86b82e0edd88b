/** How requests for workers are refused; some of the messages are words that clients compare. */

import type { OpenCircuit } from '../../core/balancing/circuit-breaker.ts'
import { AppError, notFound } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'

const MAX_RETRY_S = 60

const NO_WORKERS = 'no workers available'

/** Its time in the line is over, or no worker will come. */
export function noWorkers(retryAfterSeconds = 10): AppError {
  return new AppError('invalid', NO_WORKERS, { retryAfterSeconds })
}

/** No worker can start. @param isStranger whether nobody knows who asks: then what is wrong is none of its business */
export function cannotServe({ cause, retryAfterSeconds }: OpenCircuit, isStranger: boolean): AppError {
  const message = isStranger ? NO_WORKERS : `${NO_WORKERS}: ${cause}`
  return new AppError('invalid', message, { retryAfterSeconds: retrySeconds(retryAfterSeconds * 1_000) })
}

/** The max of the endpoint is 0. */
export function paused(): AppError {
  return noWorkers(30)
}

/** The worker that it insists on has ended, or never was one of this endpoint. */
export function workerGone(): AppError {
  return new AppError('not_found', 'affinity_worker_gone')
}

/** The worker that it insists on had no room for it, or was not ready, for the whole time. */
export function workerTimeout(): AppError {
  return new AppError('invalid', 'worker_timeout', { retryAfterSeconds: 10 })
}

/** @param expectedMs when there may be room again; null when that is not known */
export function queueFull(limit: number, expectedMs: number | null): AppError {
  const message = `${limit} requests are waiting for a worker of this endpoint already, and no more may wait`
  return new AppError('rate_limited', message, { retryAfterSeconds: retrySeconds(expectedMs ?? 5_000) })
}

/** The lines of all endpoints together are full. */
export function serverFull(): AppError {
  return new AppError('rate_limited', 'too many requests are waiting on this server', { retryAfterSeconds: 5 })
}

/** @param patienceMs how long it can wait */
export function tooSlow(expectedMs: number, patienceMs: number): AppError {
  const wait = `all workers are busy, and a worker is expected in ${Math.ceil(expectedMs / 1_000)} s`
  const message = `${wait}, which is longer than the ${Math.floor(patienceMs / 1_000)} s that this request may wait`
  return new AppError('rate_limited', message, { retryAfterSeconds: retrySeconds(expectedMs - patienceMs) })
}

/** @param most how many bytes the body of a request may have */
export function tooLarge(most: number): AppError {
  return new AppError('too_large', `the request body is too large: the limit is ${most} bytes (--max-lb-body)`)
}

/** The server stops; another may be there soon. */
export function stopping(): AppError {
  return new AppError('unavailable', 'the server is stopping', { retryAfterSeconds: 5 })
}

/** The endpoint was removed, or became one of another type. */
export function endpointGone(id: EndpointId): AppError {
  return notFound('endpoint', id)
}

/** A time in milliseconds, as people say it. */
export function inWords(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}

function retrySeconds(ms: number): number {
  return Math.min(MAX_RETRY_S, Math.max(1, Math.ceil(ms / 1_000)))
}
