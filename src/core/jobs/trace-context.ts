/** The context of a trace that goes with a job, as W3C Trace Context says. */

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The `traceparent` of a request; null where it has none or one that is not well-formed, which the standard says to ignore. */
export function readTraceparent(header: string | null | undefined): string | null {
  const text = header?.trim() ?? ''
  return TRACEPARENT.test(text) ? text : null
}
