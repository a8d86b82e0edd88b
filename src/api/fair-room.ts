/** A bounded number of bytes that accounts share. The account with the largest share yields first. */
import { fairShare, Holdings } from '../core/fair-share.ts'

/** The bytes that one body holds. */
export interface RoomClaim {
  readonly bytes: number
}

/** Owner of a body: an account, and a sender within it, such as a worker. */
export interface RoomHolder {
  readonly account: string
  readonly part: string
}

interface HeldClaim extends RoomClaim {
  bytes: number
  readonly holder: RoomHolder
  readonly sinceMs: number
  /** Called once when the claim loses its bytes. Null: nobody can take them. */
  cut: (() => void) | null
}

/** The part of the room that one account leaves to others. */
const LEFT = 1 / 8

/**
 * Bounds the bytes held at once. An account may use all free bytes except a small reserve for others. When the room
 * is full, an account that holds less takes bytes from the account that holds most, and from its largest part first.
 */
export class FairRoom {
  readonly #options
  readonly #claims = new Map<string, Map<string, Set<HeldClaim>>>()
  readonly #accounts = new Holdings<string>()
  #heldBytes = 0
  #waiting: { readonly claim: HeldClaim; readonly bytes: number; readonly got: () => void }[] = []

  constructor(options: {
    readonly maxBytes: number
    /** Current time in ms. */
    readonly now: () => number
    /** Age in ms after which a body gives way to another one of the same holder. Default: never. */
    readonly staleMs?: number
  }) {
    this.#options = options
  }

  /** Makes a claim without bytes. @param cut called when another claim has taken its bytes */
  enter(holder: RoomHolder, cut: () => void): RoomClaim {
    const claim: HeldClaim = { bytes: 0, holder, sinceMs: this.#options.now(), cut }
    const parts = this.#claims.get(holder.account) ?? new Map<string, Set<HeldClaim>>()
    this.#claims.set(holder.account, parts)
    const claims = parts.get(holder.part) ?? new Set()
    parts.set(holder.part, claims.add(claim))
    return claim
  }

  /** Takes more bytes for a claim. False if the room is full. */
  grow(claim: RoomClaim, more: number): boolean {
    const grown = claim as HeldClaim
    const { maxBytes } = this.#options
    while (this.#accounts.of(grown.holder.account) + more > fairShare(maxBytes, LEFT)) {
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

  /** Makes the bytes of a claim untakeable, because they are in use. */
  fix(claim: RoomClaim): void {
    ;(claim as HeldClaim).cut = null
  }

  /** Resolves when the claim has got the bytes. Accounts that hold least come first. {@link leave} ends the wait. */
  whenRoom(claim: RoomClaim, bytes: number): Promise<void> {
    if (this.grow(claim, bytes)) return Promise.resolve()
    return new Promise(got => this.#waiting.push({ claim: claim as HeldClaim, bytes, got }))
  }

  /** Releases all bytes of a claim and ends its wait. */
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
    const order = [...this.#waiting].sort(
      (a, b) => this.#accounts.of(a.claim.holder.account) - this.#accounts.of(b.claim.holder.account),
    )
    for (const waiting of order) {
      if (!this.grow(waiting.claim, waiting.bytes)) continue
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
      waiting.got()
    }
  }

  #change(claim: HeldClaim, more: number): void {
    claim.bytes += more
    this.#heldBytes += more
    this.#accounts.add(claim.holder.account, more)
  }

  #cut(victim: HeldClaim): void {
    const { cut } = victim
    victim.cut = null
    this.#change(victim, -victim.bytes)
    cut?.()
  }

  /**
   * Only accounts that hold more than the asking account would then hold give way. Otherwise two
   * accounts would take turns.
   */
  #victimFor(asking: HeldClaim, more: number): HeldClaim | null {
    const { account } = asking.holder
    const wanted = this.#accounts.of(account) + more
    const accounts = [...this.#accounts].filter(([name, bytes]) => name !== account && bytes > wanted)
    for (const [name] of accounts.sort((a, b) => b[1] - a[1])) {
      const parts = [...(this.#claims.get(name)?.values() ?? [])].sort((a, b) => sumBytes(b) - sumBytes(a))
      const victim = parts.map(largest).find(claim => claim !== null)
      if (victim !== undefined) return victim
    }
    return this.#ownVictimFor(asking, more)
  }

  #ownVictimFor(asking: HeldClaim, more: number): HeldClaim | null {
    const { account, part } = asking.holder
    const parts = this.#claims.get(account)!
    const wanted = sumBytes(parts.get(part) ?? []) + more
    const others = [...parts].filter(([name, claims]) => name !== part && sumBytes(claims) > wanted)
    const victims = others.sort((a, b) => sumBytes(b[1]) - sumBytes(a[1])).map(([, claims]) => largest(claims))
    return victims.find(claim => claim !== null) ?? this.#findStale(asking)
  }

  #findStale(asking: HeldClaim): HeldClaim | null {
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

function sumBytes(claims: Iterable<HeldClaim>): number {
  let bytes = 0
  for (const claim of claims) bytes += claim.bytes
  return bytes
}

function largest(claims: Iterable<HeldClaim>): HeldClaim | null {
  let largestClaim: HeldClaim | null = null
  for (const claim of claims) {
    if (claim.cut !== null && claim.bytes > (largestClaim?.bytes ?? 0)) largestClaim = claim
  }
  return largestClaim
}
