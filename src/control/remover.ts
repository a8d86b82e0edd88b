import type { EndpointId } from '../core/ids.ts'
import type { Ports } from '../ports/ports.ts'
import type { Jobs } from '../services/jobs/jobs.ts'

/** Maximum number of rows that one step removes; other users of the store wait in the meantime. */
const ROWS = 100
/** Maximum number of endpoints that one step removes rows of. */
const ENDPOINTS = 20
/** Time within which a deleted endpoint is found without a notification. */
const TICK_MS = 5_000

/**
 * Removes the rows of deleted endpoints, a few at a time. Endpoints take turns, so that a large one does not delay
 * others. It rests as long as it has worked, so that it takes at most half of the store's time. It continues after a
 * restart of the server.
 */
export class Remover {
  readonly #ports
  readonly #jobs
  /** The endpoint whose turn was last. */
  #last: EndpointId | null = null

  constructor(ports: Ports, jobs: Jobs) {
    this.#ports = ports
    this.#jobs = jobs
  }

  /**
   * Removes some rows.
   * @returns time of the next step without a wake
   */
  async step(): Promise<number> {
    const { store, clock } = this.#ports
    const beganMs = clock.monotonic()
    const behind = await store.removals.endpoints(this.#last, ENDPOINTS)
    const fromFront =
      this.#last === null || behind.length === ENDPOINTS ? [] : await store.removals.endpoints(null, ENDPOINTS)
    const ids = [...new Set([...behind, ...fromFront])].slice(0, ENDPOINTS)
    // A full page means that there may be more endpoints.
    let hasMore = ids.length === ENDPOINTS
    let rowsLeft = ROWS
    for (const endpointId of ids) {
      if (rowsLeft <= 0) {
        hasMore = true
        break
      }
      this.#last = endpointId
      const part = await this.#jobs.removePart(endpointId, rowsLeft)
      rowsLeft -= part.rows
      hasMore ||= part.more
    }
    if (!hasMore) return clock.now() + TICK_MS
    return clock.now() + Math.round(clock.monotonic() - beganMs)
  }
}
