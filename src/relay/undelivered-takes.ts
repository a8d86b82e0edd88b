/** A take that was passed on and has no response yet. */
export interface OpenTake {
  readonly token: string
  /** The jobs for the worker were claimed before this time, in ms. */
  sinceMs: number
}

interface Taker {
  readonly open: Set<OpenTake>
  undeliveredSinceMs: number | null
  reporting: boolean
}

/**
 * Answers to takes that were lost between the server and a worker, by the tokens of workers: the server must take
 * back the jobs that it claimed for them. The server itself knows at most that it wrote an answer.
 */
export class UndeliveredTakes {
  readonly #takers = new Map<string, Taker>()

  /** Begins a take that is passed on at this instant. Not while {@link isReporting}. */
  begin(token: string, nowMs: number): OpenTake {
    const take = { token, sinceMs: nowMs - 1 }
    this.#takerFor(token).open.add(take)
    return take
  }

  /** Ends a take: its worker has its jobs, the response had none, or that is unknown. */
  end(take: OpenTake, outcome: 'delivered' | 'nothing' | 'lost', nowMs: number): void {
    const taker = this.#takerFor(take.token)
    taker.open.delete(take)
    if (outcome === 'delivered') {
      // Jobs of this answer were claimed before now, and must not count as lost together with another answer.
      for (const other of taker.open) other.sinceMs = Math.max(other.sinceMs, nowMs)
      if (taker.undeliveredSinceMs !== null) taker.undeliveredSinceMs = Math.max(taker.undeliveredSinceMs, nowMs)
    }
    if (outcome === 'lost') {
      taker.undeliveredSinceMs = Math.min(taker.undeliveredSinceMs ?? take.sinceMs, take.sinceMs)
    }
    this.#forget(take.token, taker)
  }

  /**
   * Begins a report of lost jobs, from the returned time on. Null without any to report, and while other
   * takes are open, since a job could belong to any of them.
   */
  beginReport(token: string): number | null {
    const taker = this.#takers.get(token)
    if (taker === undefined || taker.undeliveredSinceMs === null || taker.open.size > 0 || taker.reporting) return null
    taker.reporting = true
    return taker.undeliveredSinceMs
  }

  /** Ends the report; the server has it, or it has to be sent again. */
  endReport(token: string, isReported: boolean): void {
    const taker = this.#takerFor(token)
    taker.reporting = false
    if (isReported) taker.undeliveredSinceMs = null
    this.#forget(token, taker)
  }

  /** True if an answer was lost and the server has no report of it. */
  isLost(token: string): boolean {
    return (this.#takers.get(token)?.undeliveredSinceMs ?? null) !== null
  }

  /** True while a report is sent. A take that is passed on in the meantime could have its jobs counted as lost. */
  isReporting(token: string): boolean {
    return this.#takers.get(token)?.reporting === true
  }

  /** Number of workers with a record here. */
  get size(): number {
    return this.#takers.size
  }

  #takerFor(token: string): Taker {
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
