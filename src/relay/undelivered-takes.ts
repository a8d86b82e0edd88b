/** A take that was passed on and not answered yet. */
export interface OpenTake {
  readonly token: string
  /** What the worker was given has been claimed before this instant, in ms. */
  sinceMs: number
}

interface Taker {
  readonly open: Set<OpenTake>
  undeliveredSinceMs: number | null
  reporting: boolean
}

/**
 * Which answers to takes got lost between the server and a worker, by the tokens of workers: what the server claimed for them has
 * to be given back. The server knows only that it wrote an answer, or does not know it any more.
 */
export class UndeliveredTakes {
  readonly #takers = new Map<string, Taker>()

  /** A take is passed on at this instant. Not while {@link isReporting}. */
  begin(token: string, nowMs: number): OpenTake {
    const take = { token, sinceMs: nowMs - 1 }
    this.#of(token).open.add(take)
    return take
  }

  /** A take is over: its worker has its jobs, there were none, or that is unknown. */
  end(take: OpenTake, outcome: 'delivered' | 'nothing' | 'lost', nowMs: number): void {
    const taker = this.#of(take.token)
    taker.open.delete(take)
    if (outcome === 'delivered') {
      // What came with it was claimed before now, and must not be taken for lost together with another.
      for (const other of taker.open) other.sinceMs = Math.max(other.sinceMs, nowMs)
      if (taker.undeliveredSinceMs !== null) taker.undeliveredSinceMs = Math.max(taker.undeliveredSinceMs, nowMs)
    }
    if (outcome === 'lost') {
      taker.undeliveredSinceMs = Math.min(taker.undeliveredSinceMs ?? take.sinceMs, take.sinceMs)
    }
    this.#forget(take.token, taker)
  }

  /**
   * Begins a report of what was lost, from the instant that is returned. Null when there is nothing to report, or not now: while other
   * takes are open it is not known which of them a job belongs to.
   */
  beginReport(token: string): number | null {
    const taker = this.#takers.get(token)
    if (taker === undefined || taker.undeliveredSinceMs === null || taker.open.size > 0 || taker.reporting) return null
    taker.reporting = true
    return taker.undeliveredSinceMs
  }

  /** The report is over; the server has it, or it has to be sent again. */
  endReport(token: string, told: boolean): void {
    const taker = this.#of(token)
    taker.reporting = false
    if (told) taker.undeliveredSinceMs = null
    this.#forget(token, taker)
  }

  /** Whether something was lost that the server has not heard of. */
  isLost(token: string): boolean {
    return (this.#takers.get(token)?.undeliveredSinceMs ?? null) !== null
  }

  /** Whether a report is under way. A take that is passed on meanwhile could have its jobs taken for the lost ones. */
  isReporting(token: string): boolean {
    return this.#takers.get(token)?.reporting === true
  }

  /** How many workers something is known of. */
  get size(): number {
    return this.#takers.size
  }

  #of(token: string): Taker {
    let taker = this.#takers.get(token)
    if (taker === undefined) {
      taker = { open: new Set(), undeliveredSinceMs: null, reporting: false }
      this.#takers.set(token, taker)
    }
    return taker
  }

  #forget(token: string, taker: Taker): void {
    if (taker.open.size === 0 && taker.undeliveredSinceMs === null && !taker.reporting) this.#takers.delete(token)
  }
}
