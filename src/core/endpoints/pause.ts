/** Pauses of endpoints: `workersMax` is 0, jobs are accepted and wait. */

/** The numbers of workers that an endpoint may have. */
export interface WorkerRange {
  readonly min: number
  readonly max: number
}

type Workers = Readonly<Record<'workersMin' | 'workersMax', number>> & { readonly pausedFrom: WorkerRange | null }

/**
 * The numbers of workers to which a paused endpoint can return; null for an endpoint that is not paused, and for one
 * that has been paused from its creation on.
 * @param before the endpoint before a change
 */
export function pausedFrom(before: Workers, { workersMax }: Pick<Workers, 'workersMax'>): WorkerRange | null {
  if (workersMax > 0) return null
  return before.workersMax > 0 ? { min: before.workersMin, max: before.workersMax } : before.pausedFrom
}
