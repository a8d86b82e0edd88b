/** Bodies under way when a server ended are passed on alone from then on, to find out which of them it died of. */

/** Workers of which it is remembered that a server ended while it had a body of theirs. */
const MAX_SUSPECTS = 10_000
/** So often may a server end while it has a body, the last time that one alone. */
export const MOST_DEATHS = 2

/** Lets calls pass at the same time, or one alone, in the order in which they came. */
export class Quarantine {
  #running = 0
  #alone = false
  readonly #line: { readonly alone: boolean; readonly enter: () => void }[] = []
  readonly #suspects = new Map<string, 'suspect' | 'guilty'>()

  /** Resolves when the call may be passed on. Whoever entered has to {@link leave}. */
  async enter(alone: boolean): Promise<void> {
    if (this.#line.length === 0 && this.#isOpen(alone)) this.#begin(alone)
    else await new Promise<void>(enter => this.#line.push({ alone, enter }))
  }

  /** The call is over. */
  leave(): void {
    this.#running -= 1
    this.#alone = false
    for (let next = this.#line[0]; next !== undefined && this.#isOpen(next.alone); next = this.#line[0]) {
      this.#line.shift()
      this.#begin(next.alone)
      next.enter()
    }
  }

  /** How many deaths a new body of this worker begins with: those of an earlier one whose connection it has given up. */
  deathsBefore(token: string): number {
    return this.#suspects.has(token) ? 1 : 0
  }

  /** A server ended while it had a body of this worker. */
  died(token: string): void {
    this.#note(token, this.#suspects.get(token) ?? 'suspect')
  }

  /** A body of this worker was dropped. All its bodies pass alone, and the next one that a server dies of is dropped at once. */
  dropped(token: string): void {
    this.#note(token, 'guilty')
  }

  /** A server has taken a body of this worker. */
  survived(token: string): void {
    if (this.#suspects.size > 0 && this.#suspects.get(token) === 'suspect') this.#suspects.delete(token)
  }

  #note(token: string, what: 'suspect' | 'guilty'): void {
    this.#suspects.delete(token)
    this.#suspects.set(token, what)
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
