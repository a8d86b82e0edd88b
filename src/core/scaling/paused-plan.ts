/** Paused workers in the plans of their endpoint: they count as workers that run, since they go on with their jobs. */
import { isFrozen, isPaused, type WorkerLoad } from '../workers/worker.ts'
import type { EndpointSnapshot } from './scale.ts'

/** A snapshot as plans see it. */
export function withPausedRunning(snapshot: EndpointSnapshot): EndpointSnapshot {
  if (!snapshot.workers.some(isPaused)) return snapshot
  const workers = snapshot.workers.map(worker => (isPaused(worker) ? { ...worker, state: 'READY' as const } : worker))
  return { ...snapshot, workers }
}

/** Paused workers that go on as soon as there is room. One whose card is still being emptied does not wait yet. */
export function waitingToGoOn(workers: readonly WorkerLoad[]): readonly WorkerLoad[] {
  return workers.filter(worker => {
    const hasGpus = (worker.placement?.gpus ?? []).length > 0
    return isPaused(worker) && isFrozen(worker) && worker.held > 0 && (!hasGpus || worker.asleepAtMs !== null)
  })
}

/** Paused workers without a job, because it has ended without them. */
export function pausedForNothing(workers: readonly WorkerLoad[]): readonly WorkerLoad[] {
  return workers.filter(worker => isPaused(worker) && isFrozen(worker) && worker.held === 0)
}
