/** Which traces are recorded, by the names of the samplers of OpenTelemetry. */

/** Names of the samplers. */
export const TRACE_SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

/** How it is decided which traces are recorded. */
export interface TraceSampling {
  readonly sampler: (typeof TRACE_SAMPLERS)[number]
  /** The part of the traces that a sampler by ratio records, from 0 to 1. */
  readonly ratio: number
}

/** The default of OpenTelemetry: what the client says, and everything where it says nothing. */
export const TRACE_SAMPLING: TraceSampling = { sampler: 'parentbased_always_on', ratio: 1 }

/** OpenTelemetry takes the last 56 bits of an id for random. A number of JavaScript holds the first 52 of them exactly. */
const RANDOM = { from: -14, to: -1, range: 2 ** 52 }

/**
 * Whether a trace is recorded: always the same for one trace.
 * @param parent whether the client records it; null where the trace begins here
 */
export function isSampled({ sampler, ratio }: TraceSampling, traceId: string, parent: boolean | null): boolean {
  if (parent !== null && sampler.startsWith('parentbased_')) return parent
  if (sampler.endsWith('always_on')) return true
  if (sampler.endsWith('always_off')) return false
  return Number.parseInt(traceId.slice(RANDOM.from, RANDOM.to), 16) < ratio * RANDOM.range
}

/** Whether starts of workers and downloads are recorded: unless nothing is. They are few, and those of many jobs point at them. */
export function areStartsSampled({ sampler, ratio }: TraceSampling): boolean {
  return !sampler.endsWith('always_off') && !(sampler.endsWith('traceidratio') && ratio === 0)
}
