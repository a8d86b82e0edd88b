import type { Store } from '../../src/ports/store/store.ts'
import type { Life } from '../life.ts'
import type { World } from '../world.ts'

/** Where the server crashes: just before or just after its `writes`-th change of the store from now. */
export interface CrashPoint {
  readonly writes: number
  readonly when: 'before' | 'after'
}

/**
 * The store of one run of the server. It closes when the server ends, it can crash the server, and it can be slow: then
 * calls wait for each other as at a busy disk.
 */
export class StoreGate {
  readonly store: Store
  readonly #world: World
  readonly #life: Life
  readonly #crash: () => void
  #point: { writes: number; readonly when: 'before' | 'after' } | null = null
  #freeAtMs = 0

  /** @param crash crashes the server */
  constructor(world: World, store: Store, life: Life, crash: () => void) {
    this.#world = world
    this.#life = life
    this.#crash = crash
    const groups = Object.entries(store).filter(([, group]) => typeof group === 'object')
    const gated = groups.map(([name, group]) => [name, this.#gated(group as object)])
    this.store = { ...store, ...Object.fromEntries(gated), close: async () => {} }
  }

  /** Arms a crash. */
  crashAt(point: CrashPoint): void {
    this.#point = { ...point }
  }

  #gated(group: object): object {
    const entries = Object.entries(group).map(([name, method]) => {
      const call = (...args: unknown[]) => this.#call(name, () => (method as Method).apply(group, args))
      return [name, call]
    })
    return Object.fromEntries(entries)
  }

  async #call(name: string, run: () => Promise<unknown>): Promise<unknown> {
    this.#world.activity += 1
    const waitMs = this.#queueDelayMs()
    if (waitMs > 0) await this.#life.sleep(waitMs)
    const crash = !READS.has(name) && this.#reached()
    if (crash === 'before') this.#crash()
    if (this.#life.over) return new Promise(() => {})
    const result = await this.#life.guard(run())
    if (crash !== 'after') return result
    this.#crash()
    return new Promise(() => {})
  }

  /** How long a call waits for earlier ones; calls keep their order. */
  #queueDelayMs(): number {
    const nowMs = this.#world.clock.monotonic()
    this.#freeAtMs = Math.max(nowMs, this.#freeAtMs) + this.#world.storeDelayMs
    return this.#freeAtMs - nowMs
  }

  #reached(): 'before' | 'after' | null {
    if (this.#point === null) return null
    this.#point.writes -= 1
    if (this.#point.writes > 0) return null
    const { when } = this.#point
    this.#point = null
    return when
  }
}

type Method = (...args: unknown[]) => Promise<unknown>

/** Methods that change nothing. A crash at one of them equals a crash between two changes. */
const READS: ReadonlySet<string> = new Set([
  ...['find', 'locate', 'nextDeadline', 'pending', 'list', 'snapshot', 'demand', 'active', 'ids', 'findByName', 'read'],
  ...[
    'sealedValues',
    'findByToken',
    'alive',
    'liveTokens',
    'diagnostics',
    'endpointOf',
    'tokensOf',
    'findByHash',
    'windowCounts',
    'due',
    'accountsDue',
    'receiversDue',
    'unnamed',
    'hasKey',
    'nextDue',
    'open',
    'key',
  ],
])
