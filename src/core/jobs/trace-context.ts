/** The context of a trace that goes with a job or a request, as W3C Trace Context says. */

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The flag of a trace that is recorded. */
const SAMPLED = 1

/** The place in a trace from which it goes on. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** The span that the next one is a child of: 16 hexadecimal digits. */
  readonly spanId: string
  /** Whether the trace is recorded. */
  readonly sampled: boolean
}

/** The `traceparent` of a request; null where it has none or one that is not well-formed, which the standard says to ignore. */
export function readTraceparent(header: string | null | undefined): string | null {
  const text = header?.trim() ?? ''
  return TRACEPARENT.test(text) ? text : null
}

/** What a `traceparent` says; null for one that is missing or not well-formed. */
export function traceContextOf(header: string | null | undefined): TraceContext | null {
  const text = readTraceparent(header)
  if (text === null) return null
  const [, traceId, spanId, flags] = text.split('-') as [string, string, string, string]
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED }
}

/** A context as a `traceparent`. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}
