import { hash } from 'node:crypto'
import { requestSpans } from '../../core/balancing/request-spans.ts'
import type { JobId } from '../../core/ids.ts'
import {
  attemptContext,
  type TracedAttempt,
  type TracedJob,
  type TracedTry,
  type TraceRules,
  webhookContext,
  webhookSpans,
} from '../../core/observing/job-spans.ts'
import { createRequestTrace, type RequestTrace } from '../../core/observing/request-trace.ts'
import { type Span, TraceIds } from '../../core/observing/span.ts'
import { SpanBuilder } from '../../core/observing/span-builder.ts'
import type { TraceSampling } from '../../core/observing/trace-sampling.ts'
import { downloadSpans } from '../../core/observing/worker-spans.ts'
import type { Emit, EventName, Events } from '../../events.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Random } from '../../ports/random.ts'
import type { Tracing } from '../../ports/tracing.ts'

type Readers = { readonly [Name in EventName]?: (fields: Events[Name]) => readonly Span[] }

/** Makes spans of the stream of events, and the trace contexts for workers and receivers. */
export class Tracer implements Tracing {
  readonly #clock
  readonly #random
  readonly #rules: TraceRules
  readonly #builder
  readonly #ended

  /** @param ended called with spans; neither waits nor throws */
  constructor(
    { clock, random }: { readonly clock: Pick<Clock, 'now'>; readonly random: Random },
    sampling: TraceSampling,
    ended: (spans: readonly Span[]) => void,
  ) {
    this.#clock = clock
    this.#random = random
    this.#rules = { sampling, ids: new TraceIds(text => hash('sha256', text)) }
    this.#builder = new SpanBuilder(this.#rules)
    this.#ended = ended
  }

  attempt(job: TracedJob, attempt: TracedAttempt): string {
    return attemptContext(job, attempt, this.#rules)
  }

  streamed(jobId: JobId, chunks: number): void {
    this.#builder.streamed(jobId, chunks, this.#clock.now())
  }

  webhook(tried: TracedTry): string {
    return webhookContext(tried, this.#rules)
  }

  request(traceparent: string | undefined): RequestTrace {
    return createRequestTrace(traceparent, this.#random.uuid(), this.#rules)
  }

  /** A sink of the event stream. */
  readonly emit: Emit = (name, fields) => {
    const spans = this.#readers[name]?.(fields) ?? []
    if (spans.length > 0) this.#ended(spans)
  }

  readonly #readers: Readers = {
    'job.moved': move => {
      // The wait of a job that is not begun goes on.
      if (move.transition === 'claim' && move.unbegun === true) return []
      const { waitedMs, usage } = move
      const times = { waitedMs: waitedMs ?? usage?.queuedMs ?? 0, ranMs: ranMs(usage) }
      return this.#builder.moved({ ...move, ...times }, move.undelivered ?? false, this.#clock.now())
    },
    'job.begun': begun => {
      const move = { transition: 'claim', from: 'IN_QUEUE', to: 'IN_PROGRESS', ranMs: 0 } as const
      return this.#builder.moved({ ...begun, ...move }, false, this.#clock.now())
    },
    'job.expired': ({ from, workerId, usage, undone }) => {
      if (undone === undefined) return []
      const times = { waitedMs: usage.queuedMs, ranMs: ranMs(usage) }
      const move = { ...undone, from, workerId, ...times, transition: 'expire', to: 'expired' } as const
      return this.#builder.moved(move, false, this.#clock.now())
    },
    'webhook.tried': tried => webhookSpans(tried, this.#rules),
    'worker.created': ({ workerId, version }) => {
      this.#builder.created(workerId, version, this.#clock.now())
      return []
    },
    'worker.moved': ({ endpointId, workerId, coldStartMs, phases }) => {
      if (coldStartMs === undefined || phases === undefined) return []
      return this.#builder.ready({ endpointId, workerId, coldStartMs, phases }, this.#clock.now())
    },
    'worker.start_failed': ({ endpointId, workerId }) =>
      this.#builder.ended(endpointId, workerId, 'not_started', this.#clock.now()),
    'worker.exited': ({ endpointId, workerId, asked }) =>
      this.#builder.ended(endpointId, workerId, asked ? 'stopped' : 'exited', this.#clock.now()),
    'model.downloaded': download => downloadSpans(download, this.#rules, this.#clock.now()),
    'gateway.request_finished': ({ trace, ...entry }) =>
      trace === undefined ? [] : requestSpans(entry, trace, this.#clock.now()),
  }
}

function ranMs(usage: Events['job.expired']['usage'] | undefined): number {
  return usage === undefined ? 0 : usage.executionMs + usage.lostMs
}
