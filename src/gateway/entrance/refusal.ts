/** The errors with which requests for workers are refused. Clients compare some of the messages. */

import type { OpenCircuit } from '../../core/balancing/circuit-breaker.ts'
import { AppError, notFound } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'

const MAX_RETRY_S = 60

const NO_WORKERS = 'no workers available'

/** The maximum wait in the request queue is over, or no worker will start. */
export function noWorkers(retryAfterSeconds = 10): AppError {
  return new AppError('invalid', NO_WORKERS, { retryAfterSeconds })
}

/**
 * The circuit breaker is open.
 * @param isAnonymous true if the caller is not authenticated; the cause is then left out
 */
export function cannotServe({ cause, retryAfterSeconds }: OpenCircuit, isAnonymous: boolean): AppError {
  const message = isAnonymous ? NO_WORKERS : `${NO_WORKERS}: ${cause}`
  return new AppError('invalid', message, { retryAfterSeconds: retrySeconds(retryAfterSeconds * 1_000) })
}

/** The maximum number of workers of the endpoint is 0. */
export function paused(): AppError {
  return noWorkers(30)
}

/** The worker that the request insists on has ended, or never was one of this endpoint. */
export function workerGone(): AppError {
  return new AppError('not_found', 'affinity_worker_gone')
}

/** The worker that the request insists on was full or not ready during the whole wait. */
export function workerTimeout(): AppError {
  return new AppError('invalid', 'worker_timeout', { retryAfterSeconds: 10 })
}

/**
 * The request queue of the endpoint is full.
 * @param expectedMs expected wait for a place, in milliseconds; null if unknown
 */
export function queueFull(limit: number, expectedMs: number | null): AppError {
  const message = `${limit} requests are waiting for a worker of this endpoint already, and no more may wait`
  return new AppError('rate_limited', message, { retryAfterSeconds: retrySeconds(expectedMs ?? 5_000) })
}

/** The request queues of all endpoints together are full. */
export function serverFull(): AppError {
  return new AppError('rate_limited', 'too many requests are waiting on this server', { retryAfterSeconds: 5 })
}

/**
 * The expected wait is longer than the request may wait.
 * @param maxWaitMs maximum wait of the request, in milliseconds
 */
export function tooSlow(expectedMs: number, maxWaitMs: number): AppError {
  const wait = `all workers are busy, and a worker is expected in ${Math.ceil(expectedMs / 1_000)} s`
  const message = `${wait}, which is longer than the ${Math.floor(maxWaitMs / 1_000)} s that this request may wait`
  return new AppError('rate_limited', message, { retryAfterSeconds: retrySeconds(expectedMs - maxWaitMs) })
}

/** The body of the request is too large. @param most its maximum size in bytes */
export function tooLarge(most: number): AppError {
  return new AppError('too_large', `the request body is too large: the limit is ${most} bytes (--max-lb-body)`)
}

/** The server stops; another may take over soon. */
export function serverStopping(): AppError {
  return new AppError('unavailable', 'the server is stopping')
}

/** The endpoint was deleted, or its type changed. */
export function endpointGone(id: EndpointId): AppError {
  return notFound('endpoint', id)
}

/** The endpoint has a queue. @param address of its job operations */
export function notForQueue(id: EndpointId, address: string): AppError {
  const addresses = `jobs go to ${address}/run, calls of OpenAI clients to ${address}/openai/v1`
  return new AppError('invalid', `not allowed for QB API: endpoint ${id} takes jobs, not requests; ${addresses}`)
}

/** The path is one with which the server has a worker sleep or wake. */
export function pathReserved(): AppError {
  return new AppError('not_found', 'this path is for the server alone, which has workers sleep and wake with it')
}

/** A duration for people, in seconds. @param ms in milliseconds */
export function durationText(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}

function retrySeconds(ms: number): number {
  return Math.min(MAX_RETRY_S, Math.max(1, Math.ceil(ms / 1_000)))
}
