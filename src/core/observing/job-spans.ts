/** The trace of a job: its ids, and the spans that end with each of its moves. */
import { type EndpointId, type JobId, timeFromId, type WorkerId } from '../ids.ts'
import { isFinal, type JobStatus, type Transition } from '../jobs/job.ts'
import { formatTraceparent, readTraceContext } from '../jobs/trace-context.ts'
import { hasMessage } from '../jobs/webhook.ts'
import { createSpan, SPAN_NAMES, type Span, type SpanAttributes, type SpanLink, type TraceIds } from './span.ts'
import { isSampled, type TraceSampling } from './trace-sampling.ts'

/**
 * The fields of a job from which its trace is derived. They are kept with the job, so every server makes the same
 * trace of it at any time.
 */
export interface TracedJob {
  readonly endpointId: EndpointId
  readonly jobId: JobId
  /** Its submission, or its last retry. */
  readonly queuedAtMs: number
  /** Its place in the queue. */
  readonly position: number
  /** The context that the client sent. */
  readonly traceparent: string | null
}

/** An attempt of a job, with the fields that make the id of its span unique. */
export interface TracedAttempt {
  readonly workerId: WorkerId
  readonly attempt: number
}

/** A move of a job, or its removal before it was done. */
export interface TracedMove extends TracedJob {
  readonly transition: Transition | 'expire'
  readonly from: JobStatus
  readonly to: JobStatus | 'expired'
  readonly workerId: WorkerId | null
  readonly attempt: number
  /** Time that it waited for this claim, or for the end without a claim. */
  readonly waitedMs: number
  /** Duration of the attempt that ends. */
  readonly ranMs: number
}

/** Times of the stored chunks of a stream. */
export interface ChunkTimes {
  readonly firstMs: number
  readonly lastMs: number
  readonly count: number
}

/** Facts about the attempt and its worker, if the server has seen them begin. */
export interface MoveFacts {
  /** A number that no other move has at this server since it started. */
  readonly nth: number
  /** The attempt that is given back: the job itself drops it. */
  readonly held?: (TracedAttempt & { readonly startedAtMs: number; readonly isUndelivered: boolean }) | undefined
  /** The chunks that the worker has sent in the attempt that ends. */
  readonly stream?: ChunkTimes | undefined
  /** The start of the worker that the job waited for. */
  readonly coldStart?: SpanLink | undefined
  /** The release of the worker. */
  readonly release?: number | undefined
}

/** Helpers and settings for the spans of jobs. */
export interface TraceRules {
  readonly ids: TraceIds
  readonly sampling: TraceSampling
}

/** Ends that are not errors. */
const GOOD_ENDS: ReadonlySet<string> = new Set(['completed', 'cancelled', 'given_back', 'claimed'])

/** The ids of the trace of a job. */
interface JobTrace {
  readonly traceId: string
  readonly sampled: boolean
  /** The span of the client; null if the trace begins here. */
  readonly clientSpanId: string | null
  /** The span of the job up to its first end. */
  readonly rootId: string
  /** The parent of present waits and attempts: the root, or the span of the last retry. */
  readonly lifeId: string
}

/** The `traceparent` that a worker gets with a job: its spans are children of the span of the attempt. */
export function attemptContext(job: TracedJob, attempt: TracedAttempt, rules: TraceRules): string {
  const { traceId, sampled } = jobTrace(job, rules)
  return formatTraceparent({ traceId, sampled, spanId: attemptId(job, attempt, rules.ids) })
}

/** The spans that end with a move of a job. @param atMs time of the move */
export function jobSpans(move: TracedMove, facts: MoveFacts, rules: TraceRules, atMs: number): Span[] {
  const trace = jobTrace(move, rules)
  if (!trace.sampled || move.transition === 'retry') return []
  const spansOfMove = new MoveSpans(move, facts, rules.ids, trace, atMs)
  const isOver = move.to === 'expired' ? !isFinal(move.from) : isFinal(move.to)
  if (move.transition === 'claim') return [spansOfMove.wait('claimed')]
  if (move.transition === 'release') return spansOfMove.givenBack()
  const spans: Span[] = []
  if (move.from === 'IN_PROGRESS') spans.push(...spansOfMove.attempt())
  else if (isOver) spans.push(spansOfMove.wait(moveOutcome(move)))
  if (isOver) spans.push(spansOfMove.whole())
  return spans
}

/** The spans of one move. */
class MoveSpans {
  readonly #move: TracedMove
  readonly #facts: MoveFacts
  readonly #ids: TraceIds
  readonly #trace: JobTrace
  readonly #atMs: number

  constructor(move: TracedMove, facts: MoveFacts, ids: TraceIds, trace: JobTrace, atMs: number) {
    this.#move = move
    this.#facts = facts
    this.#ids = ids
    this.#trace = trace
    this.#atMs = atMs
  }

  /** The finished wait in the queue. */
  wait(outcome: string): Span {
    const { jobId, queuedAtMs, waitedMs } = this.#move
    const { coldStart, nth } = this.#facts
    const startMs = this.#atMs - waitedMs
    const spanId = this.#ids.span('queue', jobId, queuedAtMs, this.#atMs, nth)
    const cold: SpanAttributes =
      this.#move.transition === 'claim' ? { 'runyard.cold_start': coldStart !== undefined } : {}
    const links = coldStart === undefined ? [] : [coldStart]
    return this.#child(SPAN_NAMES.queue, spanId, startMs, outcome, { ...cold }, links)
  }

  /** The ended attempt. */
  attempt(): Span[] {
    const { workerId, attempt, ranMs } = this.#move
    // Only a job that is given back loses its worker.
    const tracedAttempt = { workerId: workerId ?? ('' as WorkerId), attempt }
    const outcome = this.#move.transition === 'requeue' ? 'lost' : moveOutcome(this.#move)
    return this.#ofAttempt(tracedAttempt, attemptId(this.#move, tracedAttempt, this.#ids), this.#atMs - ranMs, outcome)
  }

  /** The attempt that does not count; nothing if it began before this server started. */
  givenBack(): Span[] {
    const { held } = this.#facts
    if (held === undefined) return []
    const ownId = attemptId(this.#move, held, this.#ids)
    // The same worker may get the job again, and that attempt has the same number.
    const spanId = held.isUndelivered ? this.#ids.span('undelivered', ownId, held.startedAtMs) : ownId
    return this.#ofAttempt(held, spanId, held.startedAtMs, 'given_back')
  }

  /** The job from its submission, or its retry, to its end. */
  whole(): Span {
    const { jobId, queuedAtMs } = this.#move
    const { traceId, rootId, lifeId, clientSpanId } = this.#trace
    const outcome = moveOutcome(this.#move)
    const isFirst = lifeId === rootId
    return createSpan({
      traceId,
      spanId: lifeId,
      parentId: isFirst ? clientSpanId : rootId,
      isParentRemote: isFirst && clientSpanId !== null,
      name: isFirst ? SPAN_NAMES.job : SPAN_NAMES.retry,
      kind: 'server',
      startMs: queuedAtMs,
      endMs: this.#atMs,
      attributes: { ...this.#about(), 'messaging.message.id': jobId, 'runyard.outcome': outcome },
      error: outcomeError(outcome),
    })
  }

  #ofAttempt({ workerId, attempt }: TracedAttempt, spanId: string, startMs: number, outcome: string): Span[] {
    const { release, stream } = this.#facts
    const about = {
      'runyard.worker.id': workerId,
      'runyard.attempt': attempt,
      ...(release === undefined ? {} : { 'runyard.release': release }),
    }
    const span = this.#child(SPAN_NAMES.attempt, spanId, startMs, outcome, about, [])
    const whole: Span = { ...span, kind: 'client' }
    if (stream === undefined) return [whole]
    const chunks = createSpan({
      traceId: span.traceId,
      spanId: this.#ids.span('stream', spanId),
      parentId: spanId,
      name: SPAN_NAMES.stream,
      startMs: Math.max(span.startMs, stream.firstMs),
      endMs: Math.min(span.endMs, stream.lastMs),
      attributes: { ...this.#about(), 'runyard.chunks': stream.count },
    })
    return [whole, chunks]
  }

  #child(
    name: string,
    spanId: string,
    startMs: number,
    outcome: string,
    about: SpanAttributes,
    links: readonly SpanLink[],
  ): Span {
    const { traceId, lifeId: parentId } = this.#trace
    const attributes = { ...this.#about(), ...about, 'runyard.outcome': outcome }
    return createSpan({
      traceId,
      spanId,
      parentId,
      name,
      startMs,
      endMs: this.#atMs,
      attributes,
      error: outcomeError(outcome),
      links,
    })
  }

  #about(): SpanAttributes {
    const { endpointId, jobId } = this.#move
    return {
      'messaging.system': 'runyard',
      'messaging.destination.name': endpointId,
      'runyard.endpoint.id': endpointId,
      'runyard.job.id': jobId,
    }
  }
}

/** A try to deliver the webhook of a job. */
export interface TracedTry {
  readonly endpointId: EndpointId
  readonly jobId: JobId
  readonly traceparent: string | null
  readonly deliveryId: string
  readonly number: number
}

/** The `traceparent` that the receiver of a webhook gets. */
export function webhookContext(tried: TracedTry, rules: TraceRules): string {
  const { traceId, sampled } = jobTrace({ ...tried, queuedAtMs: 0, position: 0 }, rules)
  return formatTraceparent({ traceId, sampled, spanId: tryId(tried, rules.ids) })
}

/** The span of a try. @param answer status of the response; null without a response */
export function webhookSpans(
  tried: TracedTry & { readonly atMs: number; readonly tookMs: number; readonly status: number | null },
  rules: TraceRules,
): Span[] {
  const { traceId, sampled, rootId } = jobTrace({ ...tried, queuedAtMs: 0, position: 0 }, rules)
  if (!sampled) return []
  const { endpointId, jobId, deliveryId, number, atMs, tookMs, status } = tried
  const span = createSpan({
    traceId,
    spanId: tryId(tried, rules.ids),
    parentId: rootId,
    name: SPAN_NAMES.webhook,
    kind: 'client',
    startMs: atMs,
    endMs: atMs + tookMs,
    attributes: {
      'http.request.method': 'POST',
      ...(status === null ? {} : { 'http.response.status_code': status }),
      'http.request.resend_count': number - 1,
      'runyard.endpoint.id': endpointId,
      'runyard.job.id': jobId,
      'runyard.delivery.id': deliveryId,
    },
    error: hasMessage(status) ? null : status === null ? 'no_answer' : String(status),
  })
  return [span]
}

function jobTrace(job: TracedJob, { ids, sampling }: TraceRules): JobTrace {
  const { jobId, queuedAtMs } = job
  const client = readTraceContext(job.traceparent)
  const traceId = client?.traceId ?? ids.trace('job', jobId)
  const rootId = ids.span('job', jobId)
  return {
    traceId,
    sampled: isSampled(sampling, traceId, client?.sampled ?? null),
    clientSpanId: client?.spanId ?? null,
    rootId,
    lifeId: isRetried(job) ? ids.span('retry', jobId, queuedAtMs) : rootId,
  }
}

/**
 * True if a client has queued the job again. A job is queued at the time in its id. A job of a batch gets its id
 * earlier, but its position counts only its batch; a retry gives a job a position far behind that.
 */
function isRetried({ jobId, queuedAtMs, position }: TracedJob): boolean {
  return position > queuedAtMs && queuedAtMs !== timeFromId(jobId)
}

function attemptId({ jobId, queuedAtMs }: TracedJob, { workerId, attempt }: TracedAttempt, ids: TraceIds): string {
  return ids.span('attempt', jobId, queuedAtMs, attempt, workerId)
}

function tryId({ deliveryId, number }: TracedTry, ids: TraceIds): string {
  return ids.span('webhook', deliveryId, number)
}

function moveOutcome({ to }: TracedMove): string {
  return to.toLowerCase()
}

function outcomeError(outcome: string): string | null {
  return GOOD_ENDS.has(outcome) ? null : outcome
}
