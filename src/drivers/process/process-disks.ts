/** The disks of running workers, as the process driver watches them. */
import { join } from 'node:path'
import type { WorkerId } from '../../core/ids.ts'
import type { ExitCause } from '../../core/workers/worker-exit.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Cage } from '../cage/cage.ts'
import { CageDisks } from '../cage/disk-watch.ts'
import type { EndpointCaches } from './endpoint-caches.ts'
import type { Running } from './process-worker.ts'

/** What {@link watchDisks} needs. */
export interface WorkerDisksOptions {
  readonly cage: Cage | null
  readonly clock: Clock
  /** The folder of the folders of workers. */
  readonly workerDir: string
}

/**
 * Kills workers in cages that fill the disk; null where there are no cages.
 * @param workers those that run and have run, now and later
 * @param caches what they share with others of their endpoints
 */
export function watchDisks(
  { cage, clock, workerDir }: WorkerDisksOptions,
  workers: ReadonlyMap<WorkerId, Running>,
  caches: EndpointCaches,
  kill: (worker: WorkerId) => void,
): CageDisks | null {
  if (cage === null) return null
  const watched = () =>
    [...workers]
      .filter(([, { isolation, exit }]) => isolation.kind === 'cage' && exit === null)
      .map(([worker, { identity }]) => {
        const folders = cage.foldersOf(worker, join(workerDir, worker))
        return { worker, pid: identity.pid, folders, cache: caches.cacheOf(worker) }
      })
  const end = (worker: WorkerId, fault: ExitCause) => {
    const running = workers.get(worker)
    if (running !== undefined) running.fault = fault
    kill(worker)
  }
  return new CageDisks({
    clock,
    folder: workerDir,
    limitGb: cage.diskGb,
    cacheLimitGb: caches.limitGb,
    workers: watched,
    end,
  })
}
