/** Invariants of spans, whatever happened. */
import type { JobId } from '../../src/core/ids.ts'
import { isFinal } from '../../src/core/jobs/job.ts'
import type { Span } from '../../src/core/observing/span.ts'
import { TRACE_SAMPLING } from '../../src/core/observing/trace-sampling.ts'
import type { EventName, Events } from '../../src/events.ts'
import { Tracer } from '../../src/system/observing/tracer.ts'
import { createSeededRandom } from './seeded-random.ts'

/** Problems of the spans of jobs that have all ended, as sentences. */
export function spanProblems(spans: readonly Span[]): string[] {
  const ids = new Set(spans.map(spanKey))
  const counts = Map.groupBy(spans, spanKey)
  const jobs = Map.groupBy(spans, ({ attributes }) => attributes['runyard.job.id'])
  return [
    ...[...counts].filter(([, same]) => same.length > 1).map(([id]) => `${id} is the id of more than one span`),
    ...spans.flatMap(span => {
      const about = `${span.name} ${spanKey(span)}`
      const problems: string[] = []
      if (span.endMs < span.startMs) problems.push(`${about} ends before it starts`)
      const parent = span.parentId === null ? null : `${span.traceId} ${span.parentId}`
      if (parent !== null && !span.isParentRemote && !ids.has(parent)) problems.push(`${about} has no parent`)
      for (const link of span.links) if (!ids.has(spanKey(link))) problems.push(`${about} points at nothing`)
      return problems
    }),
    ...[...jobs].flatMap(([job, jobSpans]) => {
      const roots = jobSpans.filter(({ name }) => name === 'job').length
      return job === undefined || roots === 1 ? [] : [`the job ${job} has ${roots} roots`]
    }),
  ]
}

function spanKey({ traceId, spanId }: Pick<Span, 'traceId' | 'spanId'>): string {
  return `${traceId} ${spanId}`
}

/**
 * The spans below a parent as an indented list of names and outcomes, in the order of time.
 * @param parentId null for the roots
 */
export function treeOf(spans: readonly Span[], parentId: string | null = null, depth = 0): string[] {
  const children = spans.filter(span => span.parentId === parentId)
  return children
    .toSorted((a, b) => a.startMs - b.startMs || a.endMs - b.endMs)
    .flatMap(({ name, spanId, attributes }) => {
      const outcome = attributes['runyard.outcome']
      const line = `${'  '.repeat(depth)}${name}${outcome === undefined ? '' : `: ${outcome}`}`
      return [line, ...treeOf(spans, spanId, depth + 1)]
    })
}

/** Makes spans of the events of a simulation. */
export class SpanRecorder {
  readonly spans: Span[] = []
  /** Number of reported ends of each job. A killed server does not report its last changes. */
  readonly #ends = new Map<JobId, number>()
  #atMs = 0
  readonly #tracer = new Tracer(
    { clock: { now: () => this.#atMs }, random: createSeededRandom(1) },
    TRACE_SAMPLING,
    spans => void this.spans.push(...spans),
  )

  /** Records an event. */
  readonly onEvent = (name: EventName, fields: Events[EventName], atMs: number): void => {
    this.#atMs = atMs
    const { jobId, from, to = 'FAILED' } = fields as Partial<Events['job.moved']>
    const isEnd = (name === 'job.moved' && isFinal(to)) || (name === 'job.expired' && !isFinal(from!))
    if (isEnd) this.#ends.set(jobId!, (this.#ends.get(jobId!) ?? 0) + 1)
    this.#tracer.emit(name, fields as never)
  }

  /** Problems of the spans of jobs whose ends were all reported. */
  problems(): string[] {
    const roots = new Set(
      this.spans.flatMap(({ name, attributes }) => (name === 'job' ? [attributes['runyard.job.id']] : [])),
    )
    const rootedSpans = this.spans.filter(
      ({ attributes: { 'runyard.job.id': job } }) => job === undefined || roots.has(job),
    )
    const mismatches = [...this.#ends].filter(([job, ends]) => {
      const wholes = this.spans.filter(
        ({ name, attributes }) => attributes['runyard.job.id'] === job && (name === 'job' || name === 'retry'),
      )
      return wholes.length !== ends
    })
    return [
      ...spanProblems(rootedSpans),
      ...mismatches.map(([job, ends]) => `the job ${job} has ${ends} ends and other roots`),
    ]
  }
}
