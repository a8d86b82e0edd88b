/** The networks and disks of running workers, as the process driver watches them. */
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkerId } from '../../core/ids.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { ExitCause } from '../../core/workers/worker-exit.ts'
import type { Clock } from '../../ports/clock.ts'
import { servedAt } from '../base/served-ports.ts'
import type { Cage } from '../cage/cage.ts'
import { CageDisks } from '../cage/disk-watch.ts'
import type { NetworkWatch } from '../cage/network-watch.ts'
import { servedSocket } from '../cage/own-network.ts'
import type { EndpointCaches } from './endpoint-caches.ts'
import { isNetworked, type Running } from './process-worker.ts'

/** Finds the addresses at which workers serve, and keeps their networks closed to this machine. */
export class WorkerNetworks {
  readonly #workerDir
  readonly #watch: NetworkWatch | null
  /** That folder while it is open; null as long as no socket in it was asked for. */
  #folder: number | null = null

  /** @param workers running and ended workers, kept current by the caller */
  constructor(
    {
      cage,
      clock,
      workerDir,
    }: {
      readonly cage: Cage | null
      readonly clock: Clock
      /** The folder of the folders of workers. */
      readonly workerDir: string
    },
    workers: ReadonlyMap<WorkerId, Running>,
  ) {
    this.#workerDir = workerDir
    const leaders = () =>
      [...workers.values()]
        .filter(running => isNetworked(running) && running.exit === null)
        .map(({ identity }) => identity.pid)
    this.#watch = cage?.watchNetworks(clock, leaders) ?? null
  }

  /** The addresses of a worker; null for one that does not serve. */
  servedAt(worker: WorkerId, running: Running): ServedAt | null {
    const { ports } = running
    if (ports === null) return null
    return isNetworked(running) ? servedAt(ports, port => this.#socketPath(worker, port)) : servedAt(ports)
  }

  /** Stops the watch. */
  close(): void {
    this.#watch?.stop()
    if (this.#folder !== null) closeSync(this.#folder)
    this.#folder = null
  }

  /** Sockets have names of at most 107 bytes; by an open folder any of them is short. */
  #socketPath(worker: WorkerId, port: number): string {
    this.#folder ??= openSync(this.#workerDir, 'r')
    return servedSocket(join(`/proc/self/fd/${this.#folder}`, worker), port)
  }
}

/** Options of {@link watchDisks}. */
export interface WorkerDisksOptions {
  readonly cage: Cage | null
  readonly clock: Clock
  /** The folder of the folders of workers. */
  readonly workerDir: string
}

/**
 * Kills workers in cages that fill the disk; null where there are no cages.
 * @param workers running and ended workers, kept current by the caller
 * @param caches the caches that they share with others of their endpoints
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
        const folders = cage.workerFolders(worker, join(workerDir, worker))
        return { worker, pid: identity.pid, folders, cache: caches.findCache(worker) }
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
