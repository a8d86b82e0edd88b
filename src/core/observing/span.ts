/** Spans: durations in a trace, as in OpenTelemetry. They are made once their subject has ended. */

/** Attributes of a span; lists are not needed. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** The side of a call that a span describes. */
export type SpanKind = 'internal' | 'server' | 'client'

/** A related span outside of the trace's tree. */
export interface SpanLink {
  readonly traceId: string
  readonly spanId: string
}

/** A span that has ended. Times are epoch milliseconds, and the end is not before the start. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  /** Null for the root of a trace. */
  readonly parentId: string | null
  /** True if the parent is a span of another program, which sent its id. */
  readonly isParentRemote: boolean
  readonly name: string
  readonly kind: SpanKind
  readonly startMs: number
  readonly endMs: number
  readonly attributes: SpanAttributes
  /** The error, as a word that many spans share; null without an error. */
  readonly error: string | null
  readonly links: readonly SpanLink[]
}

/** Fields that differ from span to span; the defaults are those of a span inside a trace without links and errors. */
export type SpanParts = Pick<Span, 'traceId' | 'spanId' | 'parentId' | 'name' | 'startMs' | 'endMs' | 'attributes'> &
  Partial<Span>

/** A span, whose end is never before its start even if a clock was set. */
export function createSpan(parts: SpanParts): Span {
  const startMs = Math.min(parts.startMs, parts.endMs)
  return { kind: 'internal', isParentRemote: false, error: null, links: [], ...parts, startMs }
}

/**
 * Names of all spans that the server makes, besides those of load-balanced requests, which are named by their method.
 */
export const SPAN_NAMES = {
  job: 'job',
  retry: 'retry',
  queue: 'queue',
  attempt: 'attempt',
  stream: 'stream',
  webhook: 'webhook',
  workerStart: 'worker start',
  modelDownload: 'model download',
  worker: 'worker',
} as const

/**
 * Ids that are derived from their subject, so that two servers, or one before and after a restart, give the same span
 * the same id and nothing has to be kept.
 */
export class TraceIds {
  readonly #digest: (text: string) => string

  /** @param digest returns at least 32 hexadecimal digits that no two texts share */
  constructor(digest: (text: string) => string) {
    this.#digest = digest
  }

  /** The trace id of a subject that came without a trace. */
  trace(...of: readonly (string | number)[]): string {
    return this.#digest(`trace ${of.join(' ')}`).slice(0, 32)
  }

  /** The id of a span of a subject. */
  span(...of: readonly (string | number)[]): string {
    return this.#digest(`span ${of.join(' ')}`).slice(0, 16)
  }
}
