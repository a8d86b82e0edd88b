/** The spans of a request of a load-balancing endpoint. */
import type { RequestTrace } from '../observing/request-trace.ts'
import { createSpan, SPAN_NAMES, type Span } from '../observing/span.ts'
import type { AccessLogEntry } from './access-log-entry.ts'

/** Limit of characters of a path. */
const MAX_PATH = 1_000
/** Methods of HTTP; others could be anything, and span names should be few. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])

/**
 * Spans of the request, of its wait in the request queue, and of the worker's part.
 * @param atMs end of the request
 */
export function requestSpans(entry: AccessLogEntry, trace: RequestTrace, atMs: number): Span[] {
  if (!trace.sampled) return []
  const { kind, endpointId, method, path, status, complete, workerId, tries, waitMs, totalMs } = entry
  const { traceId, spanId, clientSpanId, queueSpanId, workerSpanId } = trace
  const startMs = atMs - totalMs
  const claimedMs = Math.min(atMs, startMs + waitMs)
  const about = { 'runyard.endpoint.id': endpointId }
  const answer = status === 0 ? {} : { 'http.response.status_code': status }
  const whole = createSpan({
    traceId,
    spanId,
    parentId: clientSpanId,
    isParentRemote: clientSpanId !== null,
    name: METHODS.has(method) ? method : 'HTTP',
    kind: 'server',
    startMs,
    endMs: atMs,
    attributes: {
      'http.request.method': METHODS.has(method) ? method : '_OTHER',
      'url.path': path.slice(0, MAX_PATH),
      ...answer,
      ...about,
      'runyard.complete': complete,
      'runyard.socket': kind === 'socket',
    },
    error: status >= 500 ? String(status) : null,
  })
  const wait = createSpan({
    traceId,
    spanId: queueSpanId,
    parentId: spanId,
    name: SPAN_NAMES.queue,
    startMs,
    endMs: claimedMs,
    attributes: about,
  })
  if (tries === 0) return [whole, wait]
  const worker = createSpan({
    traceId,
    spanId: workerSpanId,
    parentId: spanId,
    name: SPAN_NAMES.worker,
    kind: 'client',
    startMs: claimedMs,
    endMs: atMs,
    attributes: {
      ...about,
      ...answer,
      'runyard.tries': tries,
      ...(workerId === null ? {} : { 'runyard.worker.id': workerId }),
    },
    error: status >= 500 ? String(status) : null,
  })
  return [whole, wait, worker]
}
