/** Spans: what took time in a trace, as OpenTelemetry means it. They are made once what they tell of has ended. */

/** What a span may say of itself; lists are not needed. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** Which side of a call a span is. */
export type SpanKind = 'internal' | 'server' | 'client'

/** Another span that this one has to do with, which is no part of it. */
export interface SpanLink {
  readonly traceId: string
  readonly spanId: string
}

/** A span that has ended. Instants are epoch milliseconds, and the end is not before the start. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  /** Null for the root of a trace. */
  readonly parentId: string | null
  /** Whether the parent is a span of somebody else, who sent its id. */
  readonly isParentRemote: boolean
  readonly name: string
  readonly kind: SpanKind
  readonly startMs: number
  readonly endMs: number
  readonly attributes: SpanAttributes
  /** What went wrong, as a word that many spans share; null for nothing. */
  readonly error: string | null
  readonly links: readonly SpanLink[]
}

/** What differs from span to span; the rest is as in a span inside a trace that has no links and no error. */
export type SpanParts = Pick<Span, 'traceId' | 'spanId' | 'parentId' | 'name' | 'startMs' | 'endMs' | 'attributes'> &
  Partial<Span>

/** A span, whose end is never before its start although clocks are set. */
export function spanOf(parts: SpanParts): Span {
  const startMs = Math.min(parts.startMs, parts.endMs)
  return { kind: 'internal', isParentRemote: false, error: null, links: [], ...parts, startMs }
}

/** Names of all spans that the server makes, besides those of load-balanced requests, which are named by their method. */
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
 * Ids that follow from what they are of, so that two servers, or one before and after a restart, give the same span the same id and nothing
 * has to be kept.
 */
export class TraceIds {
  readonly #digest: (text: string) => string

  /** @param digest at least 32 hexadecimal digits that no two texts share */
  constructor(digest: (text: string) => string) {
    this.#digest = digest
  }

  /** The id of the trace of a thing that no trace was given with. */
  trace(...of: readonly (string | number)[]): string {
    return this.#digest(`trace ${of.join(' ')}`).slice(0, 32)
  }

  /** The id of a span of a thing. */
  span(...of: readonly (string | number)[]): string {
    return this.#digest(`span ${of.join(' ')}`).slice(0, 16)
  }
}
