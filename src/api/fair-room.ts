/** A bounded number of bytes that several accounts share: who holds most gives way first. */

/** The bytes of one body. */
export interface RoomClaim {
  readonly bytes: number
}

/** Whose a body is: an account, and the part of it that is told apart from its other parts, such as a worker. */
export interface RoomHolder {
  readonly account: string
  readonly part: string
}

interface HeldClaim extends RoomClaim {
  bytes: number
  readonly holder: RoomHolder
  readonly sinceMs: number
  /** Called once when it has to give its bytes up; null while nobody can take them. */
  cut: (() => void) | null
}

/** How a {@link FairRoom} is shared. */
export interface FairRoomOptions {
  readonly maxBytes: number
  /** The clock, in ms. */
  readonly now: () => number
  /** After this time a body gives way to another one of the same holder; never unless given. */
  readonly staleMs?: number
}

/** What one account always leaves to others: one part of so many. */
const LEFT_TO_OTHERS = 8

/**
 * Bytes held at once. An account takes what is free, but for a small part that it leaves to others. When the room is full, an
 * account that holds less gets its bytes from the one that holds most, and within an account a part from the part that does.
 */
export class FairRoom {
  readonly #options: FairRoomOptions
  readonly #claims = new Map<string, Map<string, Set<HeldClaim>>>()
  readonly #accounts = new Map<string, number>()
  #heldBytes = 0
  #waiting: { readonly claim: HeldClaim; readonly bytes: number; readonly got: () => void }[] = []

  constructor(options: FairRoomOptions) {
    this.#options = options
  }

  /** Begins with nothing. @param cut what happens when another one gets its bytes; it holds none then */
  enter(holder: RoomHolder, cut: () => void): RoomClaim {
    const claim: HeldClaim = { bytes: 0, holder, sinceMs: this.#options.now(), cut }
    const parts = this.#claims.get(holder.account) ?? new Map<string, Set<HeldClaim>>()
    this.#claims.set(holder.account, parts)
    const claims = parts.get(holder.part) ?? new Set()
    parts.set(holder.part, claims.add(claim))
    return claim
  }

  /** Takes more bytes for a body. False when there is no room for them. */
  grow(claim: RoomClaim, more: number): boolean {
    const grown = claim as HeldClaim
    const { maxBytes } = this.#options
    while (this.#of(grown.holder.account) + more > maxBytes - Math.floor(maxBytes / LEFT_TO_OTHERS)) {
      const own = this.#ownVictimFor(grown, more)
      if (own === null) return false
      this.#cut(own)
    }
    while (this.#heldBytes + more > maxBytes) {
      const victim = this.#victimFor(grown, more)
      if (victim === null) return false
      this.#cut(victim)
    }
    this.#change(grown, more)
    return true
  }

  /** Nobody gets its bytes any more: they are in use. */
  fix(claim: RoomClaim): void {
    ;(claim as HeldClaim).cut = null
  }

  /** Resolves when a body got so many bytes, those that hold least first; see {@link leave} for giving up. */
  whenRoom(claim: RoomClaim, bytes: number): Promise<void> {
    if (this.grow(claim, bytes)) return Promise.resolve()
    return new Promise(got => this.#waiting.push({ claim: claim as HeldClaim, bytes, got }))
  }

  /** Gives all its bytes back, and waits for no more. */
  leave(claim: RoomClaim): void {
    const { holder } = claim as HeldClaim
    const parts = this.#claims.get(holder.account)
    const claims = parts?.get(holder.part)
    if (claims?.delete(claim as HeldClaim) !== true) return
    if (claims.size === 0) parts!.delete(holder.part)
    if (parts!.size === 0) this.#claims.delete(holder.account)
    this.#change(claim as HeldClaim, -claim.bytes)
    if (this.#waiting.length === 0) return
    this.#waiting = this.#waiting.filter(waiting => waiting.claim !== claim)
    this.#wake()
  }

  #wake(): void {
    const order = [...this.#waiting].sort((a, b) => this.#of(a.claim.holder.account) - this.#of(b.claim.holder.account))
    for (const waiting of order) {
      if (!this.grow(waiting.claim, waiting.bytes)) continue
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
      waiting.got()
    }
  }

  #of(account: string): number {
    return this.#accounts.get(account) ?? 0
  }

  #change(claim: HeldClaim, more: number): void {
    const { account } = claim.holder
    claim.bytes += more
    this.#heldBytes += more
    const held = this.#of(account) + more
    if (held === 0) this.#accounts.delete(account)
    else this.#accounts.set(account, held)
  }

  #cut(victim: HeldClaim): void {
    const { cut } = victim
    victim.cut = null
    this.#change(victim, -victim.bytes)
    cut?.()
  }

  /** Only who holds more than the one who asks would then hold is made to give way, else they would do so in turns. */
  #victimFor(asking: HeldClaim, more: number): HeldClaim | null {
    const { account } = asking.holder
    const wanted = this.#of(account) + more
    const accounts = [...this.#accounts].filter(([name, bytes]) => name !== account && bytes > wanted)
    for (const [name] of accounts.sort((a, b) => b[1] - a[1])) {
      const parts = [...(this.#claims.get(name)?.values() ?? [])].sort((a, b) => bytesOf(b) - bytesOf(a))
      const victim = parts.map(largest).find(found => found !== null)
      if (victim !== undefined) return victim
    }
    return this.#ownVictimFor(asking, more)
  }

  #ownVictimFor(asking: HeldClaim, more: number): HeldClaim | null {
    const { account, part } = asking.holder
    const parts = this.#claims.get(account)!
    const wanted = bytesOf(parts.get(part) ?? []) + more
    const others = [...parts].filter(([name, claims]) => name !== part && bytesOf(claims) > wanted)
    const victims = others.sort((a, b) => bytesOf(b[1]) - bytesOf(a[1])).map(([, claims]) => largest(claims))
    return victims.find(found => found !== null) ?? this.#staleOf(asking)
  }

  #staleOf(asking: HeldClaim): HeldClaim | null {
    const { staleMs, now } = this.#options
    if (staleMs === undefined) return null
    const claims = this.#claims.get(asking.holder.account)?.get(asking.holder.part) ?? []
    for (const claim of claims) {
      if (now() - claim.sinceMs < staleMs) return null
      if (claim !== asking && claim.bytes > 0 && claim.cut !== null) return claim
    }
    return null
  }
}

function bytesOf(claims: Iterable<HeldClaim>): number {
  let bytes = 0
  for (const claim of claims) bytes += claim.bytes
  return bytes
}

function largest(claims: Iterable<HeldClaim>): HeldClaim | null {
  let found: HeldClaim | null = null
  for (const claim of claims) {
    if (claim.cut !== null && claim.bytes > (found?.bytes ?? 0)) found = claim
  }
  return found
}
