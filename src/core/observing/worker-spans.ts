/**
 * The trace of the start of a worker, which many jobs may wait for and which belongs to no job; and of downloads of
 * models.
 */
import type { EndpointId, WorkerId } from '../ids.ts'
import { COLD_START_PHASES, type ColdStartPhase } from '../workers/worker-phase.ts'
import type { TraceRules } from './job-spans.ts'
import { createSpan, SPAN_NAMES, type Span, type SpanAttributes, type SpanLink, type TraceIds } from './span.ts'
import { areStartsSampled } from './trace-sampling.ts'

/** Names of the spans of the phases of a start. */
export const PHASE_SPANS: Readonly<Record<ColdStartPhase, string>> = {
  queued: 'worker placement',
  downloading: 'worker models',
  pulling: 'image pull',
  starting: 'worker launch',
  initializing: 'worker init',
}

/** A worker whose start is over. */
export interface StartedWorker {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
  /** Its release; undefined if it was created before this server started. */
  readonly release: number | undefined
  /** Duration of the start. */
  readonly tookMs: number
}

/**
 * The link from the jobs that waited for a worker to its start. A worker that made room may start again under its id.
 * @param atMs end of the start
 */
export function startLink(workerId: WorkerId, atMs: number, ids: TraceIds): SpanLink {
  return { traceId: ids.trace('worker', workerId, atMs), spanId: ids.span('worker', workerId, atMs) }
}

/**
 * The spans of a start that succeeded: the whole start, and its phases one after another, each with its total time.
 * @param atMs time at which the worker became ready
 */
export function startSpans(
  worker: StartedWorker,
  phases: Readonly<Record<ColdStartPhase, number>>,
  rules: TraceRules,
  atMs: number,
): Span[] {
  if (!areStartsSampled(rules.sampling)) return []
  const whole = startSpan(worker, rules.ids, atMs, null)
  let startMs = whole.startMs
  const parts = COLD_START_PHASES.filter(phase => phases[phase] > 0).map(phase => {
    const endMs = Math.min(atMs, startMs + phases[phase])
    const { traceId, spanId: parentId, attributes } = whole
    const spanId = rules.ids.span('phase', parentId, phase)
    const span = createSpan({ traceId, spanId, parentId, name: PHASE_SPANS[phase], startMs, endMs, attributes })
    startMs = endMs
    return span
  })
  return [whole, ...parts]
}

/**
 * The span of a failed start.
 * @param atMs time of the failure
 * @param error the error in a word
 */
export function failedStartSpans(worker: StartedWorker, error: string, rules: TraceRules, atMs: number): Span[] {
  return areStartsSampled(rules.sampling) ? [startSpan(worker, rules.ids, atMs, error)] : []
}

/** The span of a download of the models of an endpoint. @param atMs end of the download */
export function downloadSpans(
  download: { readonly endpointId: EndpointId; readonly models: string; readonly bytes: number; readonly ms: number },
  rules: TraceRules,
  atMs: number,
): Span[] {
  if (!areStartsSampled(rules.sampling)) return []
  const { endpointId, models, bytes, ms } = download
  const span = createSpan({
    traceId: rules.ids.trace('models', endpointId, atMs),
    spanId: rules.ids.span('models', endpointId, atMs),
    parentId: null,
    name: SPAN_NAMES.modelDownload,
    startMs: atMs - ms,
    endMs: atMs,
    attributes: { 'runyard.endpoint.id': endpointId, 'runyard.models': models, 'runyard.bytes': bytes },
  })
  return [span]
}

function startSpan(worker: StartedWorker, ids: TraceIds, atMs: number, error: string | null): Span {
  const { endpointId, workerId, release, tookMs } = worker
  const attributes: SpanAttributes = {
    'runyard.endpoint.id': endpointId,
    'runyard.worker.id': workerId,
    ...(release === undefined ? {} : { 'runyard.release': release }),
  }
  const name = SPAN_NAMES.workerStart
  return createSpan({
    ...startLink(workerId, atMs, ids),
    parentId: null,
    name,
    startMs: atMs - tookMs,
    endMs: atMs,
    attributes,
    error,
  })
}
