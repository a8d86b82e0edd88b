/** Limits of the requests that a listener works on or holds at once, for each account. */
import type { EndpointId } from '../core/ids.ts'

/** The shares, each a number of requests at once; an upgraded connection is one for as long as it lives. */
export interface ShareLimits {
  /** Of everybody. */
  readonly all: number
  /** More of them, for management and workers with a key or token. */
  readonly reserved: number
  readonly perAccount: number
  /** Of a load-balancing endpoint. All of these together leave a quarter to others. */
  readonly perEndpoint: number
}

/** The place of one request. */
export interface ConnectionPlace {
  readonly endpointId: EndpointId | null
  /** Whether it has one of those that are kept for management and workers. */
  readonly reserved: boolean
  account: string | null
  /** Ends the request, so that another one gets its place. */
  readonly end: () => void
}

/** Of the reserved places, one account has this part at most. */
const RESERVED_PART = 4

/** Counts the places that are taken. */
export class ConnectionShares {
  readonly #limits: ShareLimits
  readonly #accounts = new Map<string, number>()
  readonly #reservedOf = new Map<string, number>()
  readonly #endpoints = new Map<EndpointId, number>()
  /** The reserved places without an account so far, the oldest first: a stranger may have them, who only looks like management. */
  readonly #unowned = new Set<ConnectionPlace>()
  #all = 0
  #balanced = 0

  constructor(limits: ShareLimits) {
    this.#limits = limits
  }

  /**
   * A place for a request, which {@link leave} gives back; null when it is refused.
   * @param endpointId the load-balancing endpoint that it is for; null for others
   * @param mayBeReserved whether it is of management or a worker, asked only when there is no other place
   * @param end ends the request; called when it has a reserved place, no account yet, and others need the place
   */
  enter(endpointId: EndpointId | null, mayBeReserved: () => boolean, end: () => void): ConnectionPlace | null {
    const { all, reserved, perEndpoint } = this.#limits
    const isFull = this.#all >= all
    if (endpointId !== null) {
      const count = this.#endpoints.get(endpointId) ?? 0
      if (isFull || count >= perEndpoint || this.#balanced >= all - Math.floor(all / 4)) return null
      this.#endpoints.set(endpointId, count + 1)
      this.#balanced += 1
    } else if (isFull && (!mayBeReserved() || (this.#all >= all + reserved && !this.endUnowned()))) return null
    this.#all += 1
    const place: ConnectionPlace = { endpointId, reserved: isFull, account: null, end }
    if (isFull) this.#unowned.add(place)
    return place
  }

  /** Ends the request that has had a reserved place without an account for the longest time. False when there is none. */
  endUnowned(): boolean {
    const [oldest] = this.#unowned
    if (oldest === undefined) return false
    this.#unowned.delete(oldest)
    oldest.end()
    return true
  }

  /** Records the account of the request once it is known. False: the account has too many, so the request is to be refused. */
  own(place: ConnectionPlace, account: string): boolean {
    if (place.account !== null) return true
    const { perAccount, reserved } = this.#limits
    if ((this.#accounts.get(account) ?? 0) >= perAccount) return false
    const most = Math.floor(reserved / RESERVED_PART)
    if (place.reserved && (this.#reservedOf.get(account) ?? 0) >= most) return false
    place.account = account
    this.#unowned.delete(place)
    add(this.#accounts, account, 1)
    if (place.reserved) add(this.#reservedOf, account, 1)
    return true
  }

  /** Gives a place back. To be called once. */
  leave(place: ConnectionPlace): void {
    const { endpointId, reserved, account } = place
    this.#all -= 1
    this.#unowned.delete(place)
    if (endpointId !== null) {
      this.#balanced -= 1
      add(this.#endpoints, endpointId, -1)
    }
    if (account === null) return
    add(this.#accounts, account, -1)
    if (reserved) add(this.#reservedOf, account, -1)
  }
}

function add<Name>(counts: Map<Name, number>, name: Name, more: number): void {
  const count = (counts.get(name) ?? 0) + more
  if (count === 0) counts.delete(name)
  else counts.set(name, count)
}
