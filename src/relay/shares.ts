import { fairShare, Holdings } from '../core/fair-share.ts'

/** A user of the relay: a worker and its account. */
export interface Sharer {
  /** The hash of the worker's token. */
  readonly token: string
  readonly owner: string
}

/** The part of the free room that one worker leaves to others, and one account. */
const LEFT = { token: 1 / 2, owner: 1 / 4 } as const

/** A room that no user can fill alone, since nobody gives room back early: each share is a part of the free room. */
export class RelayShares {
  readonly #total
  readonly #perToken = new Holdings<string>()
  readonly #perOwner = new Holdings<string>()
  #used = 0

  constructor(total: number) {
    this.#total = total
  }

  /** Takes an amount. False, without effect, when the share has no room. */
  take({ token, owner }: Sharer, amount: number): boolean {
    const free = this.#total - this.#used
    const ofToken = this.#perToken.of(token)
    const ofOwner = this.#perOwner.of(owner)
    if (ofToken + amount > fairShare(free + ofToken, LEFT.token)) return false
    if (ofOwner + amount > fairShare(free + ofOwner, LEFT.owner)) return false
    this.add({ token, owner }, amount)
    return true
  }

  /** Takes an amount although it may exceed the share. */
  add({ token, owner }: Sharer, amount: number): void {
    this.#used += amount
    this.#perToken.add(token, amount)
    this.#perOwner.add(owner, amount)
  }

  /** Gives taken room back. */
  give(sharer: Sharer, amount: number): void {
    this.add(sharer, -amount)
  }
}
