/** The place of a load-balanced request in a trace. */
import { formatTraceparent, readTraceContext } from '../jobs/trace-context.ts'
import type { TraceIds } from './span.ts'
import { isSampled, type TraceSampling } from './trace-sampling.ts'

/** The ids of a request of a load-balancing endpoint. */
export interface RequestTrace {
  readonly traceId: string
  readonly spanId: string
  /** The span of the client; null if the trace begins here. */
  readonly clientSpanId: string | null
  /** The span of the wait in the request queue. */
  readonly queueSpanId: string
  /** The span of the worker's part. */
  readonly workerSpanId: string
  readonly sampled: boolean
  /** The header that the worker gets in place of the client's. */
  readonly traceparent: string
}

/**
 * The ids of a request's trace.
 * @param header the `traceparent` of the request
 * @param unique a text that no other request has
 */
export function createRequestTrace(
  header: string | undefined,
  unique: string,
  { ids, sampling }: { readonly ids: TraceIds; readonly sampling: TraceSampling },
): RequestTrace {
  const client = readTraceContext(header)
  const traceId = client?.traceId ?? ids.trace('request', unique)
  const sampled = isSampled(sampling, traceId, client?.sampled ?? null)
  const workerSpanId = ids.span('worker', unique)
  return {
    traceId,
    spanId: ids.span('request', unique),
    clientSpanId: client?.spanId ?? null,
    queueSpanId: ids.span('queue', unique),
    workerSpanId,
    sampled,
    traceparent: formatTraceparent({ traceId, spanId: workerSpanId, sampled }),
  }
}
