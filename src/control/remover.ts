import type { EndpointId } from '../core/ids.ts'
import type { Ports } from '../ports/ports.ts'
import type { Jobs } from '../services/jobs/jobs.ts'

/** Most rows that one step removes: whoever else needs the store waits for as long as that takes. */
const ROWS = 100
/** Most endpoints that one step looks at, of which little may be left. */
const ENDPOINTS = 20
/** Without a notification a deleted endpoint is found within this time. */
const TICK_MS = 5_000

/**
 * Removes what is left of deleted endpoints, a few rows at a time. Endpoints come in turn, so that a large one holds up no other; and it
 * rests for as long as it has worked, so that it never takes more than half of the store. A start of the server goes on with it.
 */
export class Remover {
  readonly #ports: Pick<Ports, 'store' | 'clock'>
  readonly #jobs: Pick<Jobs, 'removePart'>
  /** The endpoint whose turn was last. */
  #last: EndpointId | null = null

  constructor(ports: Pick<Ports, 'store' | 'clock'>, jobs: Pick<Jobs, 'removePart'>) {
    this.#ports = ports
    this.#jobs = jobs
  }

  /**
   * Removes some rows.
   * @returns when to step again if nothing wakes it before
   */
  async step(): Promise<number> {
    const { store, clock } = this.#ports
    const beganMs = clock.monotonic()
    const behind = await store.removals.endpoints(this.#last, ENDPOINTS)
    const fromFront =
      this.#last === null || behind.length === ENDPOINTS ? [] : await store.removals.endpoints(null, ENDPOINTS)
    const ids = [...new Set([...behind, ...fromFront])].slice(0, ENDPOINTS)
    // Where there are as many there may be others, too.
    let more = ids.length === ENDPOINTS
    let left = ROWS
    for (const endpointId of ids) {
      if (left <= 0) {
        more = true
        break
      }
      this.#last = endpointId
      const part = await this.#jobs.removePart(endpointId, left)
      left -= part.rows
      more ||= part.more
    }
    if (!more) return clock.now() + TICK_MS
    return clock.now() + Math.round(clock.monotonic() - beganMs)
  }
}
