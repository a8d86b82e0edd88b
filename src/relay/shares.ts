/** A user of the relay: a worker and its account. */
export interface Sharer {
  /** The hash of the worker's token. */
  readonly token: string
  readonly owner: string
}

/** As many times what is free may one worker use, and all of one account. */
const TIMES_FREE = { token: 1, owner: 3 } as const

/**
 * A room that no user can take whole: a worker may use as much as is free, an account three times as much. So one worker alone comes to half
 * of it, one account alone to three quarters, and each who fills its share leaves some for the next.
 */
export class RelayShares {
  readonly #total: number
  readonly #ofTokens = new Map<string, number>()
  readonly #ofOwners = new Map<string, number>()
  #used = 0

  constructor(total: number) {
    this.#total = total
  }

  /** Whether there was room; then it is taken. */
  take({ token, owner }: Sharer, amount: number): boolean {
    const free = this.#total - this.#used - amount
    const ofToken = (this.#ofTokens.get(token) ?? 0) + amount
    const ofOwner = (this.#ofOwners.get(owner) ?? 0) + amount
    if (ofToken > TIMES_FREE.token * free || ofOwner > TIMES_FREE.owner * free) return false
    this.add({ token, owner }, amount)
    return true
  }

  /** Takes it whether there is room or not. */
  add({ token, owner }: Sharer, amount: number): void {
    this.#used += amount
    this.#ofTokens.set(token, (this.#ofTokens.get(token) ?? 0) + amount)
    this.#ofOwners.set(owner, (this.#ofOwners.get(owner) ?? 0) + amount)
  }

  /** Gives back what was taken. */
  give({ token, owner }: Sharer, amount: number): void {
    this.#used -= amount
    lessen(this.#ofTokens, token, amount)
    lessen(this.#ofOwners, owner, amount)
  }
}

function lessen(amounts: Map<string, number>, name: string, by: number): void {
  const left = (amounts.get(name) ?? 0) - by
  if (left > 0) amounts.set(name, left)
  else amounts.delete(name)
}
