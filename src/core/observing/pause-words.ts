/** Words for the pause of a worker (ADR 112). */
import type { EndpointId } from '../ids.ts'
import { namedUrgent } from '../jobs/job-note.ts'
import { isPaused, type Worker, type WorkerLoad } from '../workers/worker.ts'

/** Names of the endpoints for which workers of an account are paused; one of another account has none. */
export type UrgentNames = ReadonlyMap<EndpointId, string>

/** The pause of a worker as a clause, "paused for endpoint chat of higher priority"; null without a pause. */
export function pauseText(worker: Pick<Worker, 'pause' | 'state'>, names: UrgentNames = new Map()): string | null {
  if (!isPaused(worker) || worker.pause === null) return null
  const by = namedUrgent(names.get(worker.pause.for) ?? null)
  return worker.state === 'FROZEN' ? `paused for ${by}` : `about to go on after a pause for ${by}`
}

/** Number of jobs that do not run, because their workers are paused. */
export function pausedJobs(workers: readonly WorkerLoad[]): number {
  return workers.filter(isPaused).reduce((sum, { held }) => sum + held, 0)
}
