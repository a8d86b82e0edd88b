import type { EndpointId, WorkerId } from '../ids.ts'

/** How a call of a load-balancing endpoint went, for the access log and the metrics. Times in milliseconds; null for what did not come to pass. */
export interface AccessLogEntry {
  readonly kind: 'request' | 'socket'
  readonly endpointId: EndpointId
  readonly requestId: string
  readonly method: string
  /** Without the query, which may hold secrets. */
  readonly path: string
  /** 499 when the client went before there was an answer. */
  readonly status: number
  /** Whether everything of the answer came from the worker and was handed on. */
  readonly complete: boolean
  readonly workerId: WorkerId | null
  /** How many workers it was sent to. */
  readonly tries: number
  readonly waitMs: number
  readonly connectMs: number | null
  readonly firstByteMs: number | null
  readonly totalMs: number
  readonly bytesIn: number
  readonly bytesOut: number
}
