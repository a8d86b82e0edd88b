/** Bodies that a server had when it ended are passed on alone from then on, to find the one that ended it. */

/** Limit of remembered workers of which a server had a body when it ended. */
const MAX_SUSPECTS = 10_000
/** Limit of ends of a server while it has a body alone. */
const ALONE_DEATHS = 3
/**
 * Minimum size of a body that is a suspect at once. A server that is killed by hand has many smaller
 * ones, each for a moment only.
 */
const LARGE_BYTES = 65_536
const SMALL_DEATHS = 3

/** Record of one body: the number of servers that ended while they had it. */
export interface Trial {
  /** True to pass it on alone. */
  readonly isSuspect: boolean
  /** True if so many servers ended that it is not passed on again. */
  readonly isOver: boolean
  /** Counts a server that ended while it had the body. */
  died(): void
}

/** Lets calls pass at the same time, or one alone, in the order in which they came. */
export class Quarantine {
  #running = 0
  #alone = false
  readonly #line: { readonly alone: boolean; readonly enter: () => void }[] = []
  readonly #suspects = new Map<string, 'suspect' | 'guilty'>()

  /** Resolves when the call may be passed on. Each caller that entered has to {@link leave}. */
  async enter(alone: boolean): Promise<void> {
    if (this.#line.length === 0 && this.#isOpen(alone)) this.#begin(alone)
    else await new Promise<void>(enter => this.#line.push({ alone, enter }))
  }

  /** Ends the call. */
  leave(): void {
    this.#running -= 1
    this.#alone = false
    for (let next = this.#line[0]; next !== undefined && this.#isOpen(next.alone); next = this.#line[0]) {
      this.#line.shift()
      this.#begin(next.alone)
      next.enter()
    }
  }

  /**
   * A body of this worker. It is a suspect from the start when a server has ended with an earlier one whose
   * connection the worker gave up, and needs only one more death when an earlier one was convicted.
   */
  startTrial(token: string, bytes: number): Trial {
    const suspicion = this.#suspects.get(token)
    const isLarge = bytes >= LARGE_BYTES
    let together = suspicion === 'guilty' || (suspicion === 'suspect' && isLarge) ? SMALL_DEATHS : 0
    let alone = suspicion === 'guilty' ? ALONE_DEATHS - 1 : 0
    const isSuspect = () => together >= (isLarge ? 1 : SMALL_DEATHS)
    return {
      get isSuspect() {
        return isSuspect()
      },
      get isOver() {
        return alone >= ALONE_DEATHS
      },
      died: () => {
        if (isSuspect()) alone += 1
        else together += 1
      },
    }
  }

  /** Records that a server ended while it had a body of this worker. */
  died(token: string): void {
    this.#note(token, this.#suspects.get(token) ?? 'suspect')
  }

  /** Records that a body of this worker ended servers. */
  convicted(token: string): void {
    this.#note(token, 'guilty')
  }

  /** Records that a server took a body of this worker. */
  survived(token: string): void {
    if (this.#suspects.size > 0 && this.#suspects.get(token) === 'suspect') this.#suspects.delete(token)
  }

  #note(token: string, suspicion: 'suspect' | 'guilty'): void {
    this.#suspects.delete(token)
    this.#suspects.set(token, suspicion)
    const [oldest] = this.#suspects.keys()
    if (this.#suspects.size > MAX_SUSPECTS) this.#suspects.delete(oldest!)
  }

  #isOpen(alone: boolean): boolean {
    return alone ? this.#running === 0 : !this.#alone
  }

  #begin(alone: boolean): void {
    this.#running += 1
    this.#alone = alone
  }
}
