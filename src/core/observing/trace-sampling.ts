/** Decides which traces are recorded, by the names of the samplers of OpenTelemetry. */

/** Names of the samplers. */
export const TRACE_SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

/** Settings of the sampling of traces. */
export interface TraceSampling {
  readonly sampler: (typeof TRACE_SAMPLERS)[number]
  /** The part of the traces that a sampler by ratio records, from 0 to 1. */
  readonly ratio: number
}

/** The default of OpenTelemetry: the client's decision, and everything if the client sends no decision. */
export const TRACE_SAMPLING: TraceSampling = { sampler: 'parentbased_always_on', ratio: 1 }

/**
 * OpenTelemetry assumes that the last 56 bits of an id are random. A number of JavaScript holds the first 52 of them
 * exactly.
 */
const RANDOM = { from: -14, to: -1, range: 2 ** 52 }

/**
 * True if a trace is recorded: always the same for one trace.
 * @param parent the client's decision; null if the trace begins here
 */
export function isSampled({ sampler, ratio }: TraceSampling, traceId: string, parent: boolean | null): boolean {
  if (parent !== null && sampler.startsWith('parentbased_')) return parent
  if (sampler.endsWith('always_on')) return true
  if (sampler.endsWith('always_off')) return false
  return Number.parseInt(traceId.slice(RANDOM.from, RANDOM.to), 16) < ratio * RANDOM.range
}

/**
 * True if starts of workers and downloads are recorded: always, unless sampling is off. They are few, and those of
 * many jobs link to them.
 */
export function areStartsSampled({ sampler, ratio }: TraceSampling): boolean {
  return !sampler.endsWith('always_off') && !(sampler.endsWith('traceidratio') && ratio === 0)
}
