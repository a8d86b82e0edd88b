/** The context of a trace of a job or a request, in the form of W3C Trace Context. */

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The flag of a trace that is recorded. */
const SAMPLED = 1

/** The place in a trace at which it continues. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** The parent of the next span: 16 hexadecimal digits. */
  readonly spanId: string
  /** True if the trace is recorded. */
  readonly sampled: boolean
}

/**
 * The `traceparent` of a request; null without one and for a malformed one, which the standard tells servers to
 * ignore.
 */
export function readTraceparent(header: string | null | undefined): string | null {
  const text = header?.trim() ?? ''
  return TRACEPARENT.test(text) ? text : null
}

/** Context of a `traceparent`; null for a missing or malformed one. */
export function readTraceContext(header: string | null | undefined): TraceContext | null {
  const text = readTraceparent(header)
  if (text === null) return null
  const [, traceId, spanId, flags] = text.split('-') as [string, string, string, string]
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED }
}

/** The `traceparent` of a context. */
export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}
