/**
 * Closes what workers must not reach when this machine gets another address or network, as it does with each network
 * of containers.
 */
import { readFileSync } from 'node:fs'
import { readOptional } from '../../disk/optional-files.ts'
import type { Clock } from '../../ports/clock.ts'
import { closeOutside } from './outside.ts'

/** Interval between looks. */
const INTERVAL_MS = 2_000
/** All addresses and routes of this machine. */
const ROUTES = '/proc/net/fib_trie'

/** Watches until it is stopped. The first check closes everything: much may have happened while no server ran. */
export class NetworkWatch {
  readonly #options
  #closedRoutes: string | null = null
  #stopped = false
  #cancel: () => void

  constructor(options: {
    readonly clock: Clock
    /** The processes that lead the groups of the workers whose networks lead to the outside. */
    readonly leaders: () => readonly number[]
  }) {
    this.#options = options
    this.#cancel = options.clock.after(INTERVAL_MS, this.#check)
  }

  /** Stops the watch. */
  stop(): void {
    this.#cancel()
    this.#stopped = true
  }

  readonly #check = (): void => {
    void this.#close().finally(() => {
      if (!this.#stopped) this.#cancel = this.#options.clock.after(INTERVAL_MS, this.#check)
    })
  }

  async #close(): Promise<void> {
    const leaders = this.#options.leaders()
    if (leaders.length === 0) return
    const routes = readOptional(ROUTES)
    if (routes === this.#closedRoutes) return
    const results = await Promise.allSettled(leaders.map(closeNetwork))
    // One that has just ended cannot be closed; any other failure is retried at the next check.
    const isLeft = results.some(
      ({ status }, at) => status === 'rejected' && findNetworkHolder(leaders[at] ?? 0) !== null,
    )
    this.#closedRoutes = isLeft ? null : routes
  }
}

async function closeNetwork(leader: number): Promise<void> {
  const holder = findNetworkHolder(leader)
  if (holder !== null) await closeOutside(holder)
}

/** The process that holds the network of a worker: the only child of the one that leads its group. */
function findNetworkHolder(leader: number): number | null {
  try {
    const [child] = readFileSync(`/proc/${leader}/task/${leader}/children`, 'latin1').trim().split(' ')
    return child ? Number(child) : null
  } catch {
    return null
  }
}
