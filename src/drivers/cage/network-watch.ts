/** Closes what workers must not reach when this machine gets another address or network, as it does with each network of containers. */
import { readFileSync } from 'node:fs'
import type { Clock } from '../../ports/clock.ts'
import { closeOutside } from './outside.ts'

/** How often it is looked. */
const LOOK_MS = 2_000
/** All addresses and routes of this machine. */
const ROUTES = '/proc/net/fib_trie'

/** What {@link NetworkWatch} needs. */
export interface NetworkWatchOptions {
  readonly clock: Clock
  /** The processes that lead the groups of the workers whose networks lead to the outside. */
  readonly leaders: () => readonly number[]
}

/** Looks as long as it is not stopped. The first look closes everything: much may have come while no server ran. */
export class NetworkWatch {
  readonly #options: NetworkWatchOptions
  #known: string | null = null
  #stopped = false
  #cancel: () => void

  constructor(options: NetworkWatchOptions) {
    this.#options = options
    this.#cancel = options.clock.after(LOOK_MS, this.#look)
  }

  /** Looks no more. */
  stop(): void {
    this.#cancel()
    this.#stopped = true
  }

  readonly #look = (): void => {
    void this.#close().finally(() => {
      if (!this.#stopped) this.#cancel = this.#options.clock.after(LOOK_MS, this.#look)
    })
  }

  async #close(): Promise<void> {
    const leaders = this.#options.leaders()
    if (leaders.length === 0) return
    const now = readRoutes()
    if (now === this.#known) return
    const closed = await Promise.allSettled(leaders.map(closeFor))
    // One that has just ended cannot be closed; what fails otherwise is tried again with the next look.
    const isLeft = closed.some(({ status }, at) => status === 'rejected' && holderOf(leaders[at] ?? 0) !== null)
    this.#known = isLeft ? null : now
  }
}

async function closeFor(leader: number): Promise<void> {
  const holder = holderOf(leader)
  if (holder !== null) await closeOutside(holder)
}

/** The process that holds the network of a worker: the only child of the one that leads its group. */
function holderOf(leader: number): number | null {
  try {
    const [child] = readFileSync(`/proc/${leader}/task/${leader}/children`, 'latin1').trim().split(' ')
    return child ? Number(child) : null
  } catch {
    return null
  }
}

function readRoutes(): string {
  try {
    return readFileSync(ROUTES, 'latin1')
  } catch {
    return ''
  }
}
