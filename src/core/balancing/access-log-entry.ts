import type { EndpointId, WorkerId } from '../ids.ts'

/**
 * Result of a request to a load-balancing endpoint, for the access log and the metrics. Times in milliseconds; null
 * for steps that did not happen.
 */
export interface AccessLogEntry {
  readonly kind: 'request' | 'socket'
  readonly endpointId: EndpointId
  readonly requestId: string
  readonly method: string
  /** Without the query, which may hold secrets. */
  readonly path: string
  /** 499 if the client left before a response existed. */
  readonly status: number
  /** True if the whole response came from the worker and was passed on. */
  readonly complete: boolean
  readonly workerId: WorkerId | null
  /** Number of workers that it was sent to. */
  readonly tries: number
  readonly waitMs: number
  readonly connectMs: number | null
  readonly firstByteMs: number | null
  readonly totalMs: number
  readonly bytesIn: number
  readonly bytesOut: number
}
