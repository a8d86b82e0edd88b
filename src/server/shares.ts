/** Limits of the requests that run or are held in a listener, for each account. */
import { fairShare, Holdings } from '../core/fair-share.ts'
import type { EndpointId } from '../core/ids.ts'
import { addressList } from '../gateway/entrance/forwarded.ts'
import type { ConnectionTotals } from './connection-totals.ts'

/** The shares, each a number of concurrent requests; an upgraded connection counts as one while it lives. */
export interface ShareLimits {
  /** Limit of all requests. */
  readonly all: number
  /** Additional places for management and workers with a key or token. */
  readonly reserved: number
  readonly perAccount: number
  /** Limit of a load-balancing endpoint. All of these together leave a quarter to others. */
  readonly perEndpoint: number
}

/** The place of one request. */
export interface ConnectionPlace {
  readonly endpointId: EndpointId | null
  /** True if it has one of the reserved places for management and workers. */
  readonly reserved: boolean
  account: string | null
  /** Ends the request, so that another one gets its place. */
  readonly end: () => void
}

/**
 * The parts that are left to others: of all places by all load-balancing endpoints together, of the
 * reserved ones by one account.
 */
const LEFT = { balanced: 1 / 4, reserved: 3 / 4 } as const

/** Counts the taken places. */
export class ConnectionShares {
  readonly #limits
  readonly #accounts = new Holdings<string>()
  readonly #reserved = new Holdings<string>()
  readonly #totals
  /**
   * The reserved places without an account so far, the oldest first: a stranger may have them, who
   * only looks like management.
   */
  readonly #unowned = new Set<ConnectionPlace>()

  /** @param totals of all threads */
  constructor(limits: ShareLimits, totals: Pick<ConnectionTotals, 'places' | 'balanced' | 'endpoints'>) {
    this.#limits = limits
    this.#totals = totals
  }

  /**
   * A place for a request, which {@link leave} gives back; null when it is refused.
   * @param endpointId the load-balancing endpoint that it is for; null for others
   * @param mayBeReserved returns true if it is of management or a worker; called only without any other place
   * @param end ends the request; called when it has a reserved place, no account yet, and others need the place
   */
  enter(endpointId: EndpointId | null, mayBeReserved: () => boolean, end: () => void): ConnectionPlace | null {
    const { all, reserved, perEndpoint } = this.#limits
    const { places, balanced, endpoints } = this.#totals
    // Counted first, so that two threads do not both get the last place.
    const taken = places.add(1)
    const isFull = taken > all
    if (endpointId !== null) {
      const ofEndpoint = endpoints.add(endpointId, 1)
      const ofBalanced = balanced.add(1)
      if (isFull || ofEndpoint > perEndpoint || ofBalanced > fairShare(all, LEFT.balanced)) {
        places.add(-1)
        balanced.add(-1)
        endpoints.add(endpointId, -1)
        return null
      }
    } else if (isFull && (!mayBeReserved() || (taken > all + reserved && !this.endUnowned()))) {
      places.add(-1)
      return null
    }
    const place: ConnectionPlace = { endpointId, reserved: isFull, account: null, end }
    if (isFull) this.#unowned.add(place)
    return place
  }

  /**
   * Ends the request that has had a reserved place without an account for the longest time. False when there is none.
   */
  endUnowned(): boolean {
    const [oldest] = this.#unowned
    if (oldest === undefined) return false
    this.#unowned.delete(oldest)
    oldest.end()
    return true
  }

  /** Records the account of a request. False if the account has too many, so that the request must be refused. */
  own(place: ConnectionPlace, account: string): boolean {
    if (place.account !== null) return true
    const { perAccount, reserved } = this.#limits
    if (this.#accounts.of(account) >= perAccount) return false
    if (place.reserved && this.#reserved.of(account) >= fairShare(reserved, LEFT.reserved)) return false
    place.account = account
    this.#unowned.delete(place)
    this.#accounts.add(account, 1)
    if (place.reserved) this.#reserved.add(account, 1)
    return true
  }

  /** Gives a place back. Call it once. */
  leave(place: ConnectionPlace): void {
    const { endpointId, reserved, account } = place
    const { places, balanced, endpoints } = this.#totals
    places.add(-1)
    this.#unowned.delete(place)
    if (endpointId !== null) {
      balanced.add(-1)
      endpoints.add(endpointId, -1)
    }
    if (account === null) return
    this.#accounts.add(account, -1)
    if (reserved) this.#reserved.add(account, -1)
  }
}

/**
 * Returns a test that is true for addresses that many people share, so that the limit of one address does not hold:
 * those of this machine, which a proxy may use for any client, and those of trusted proxies.
 * @param proxies addresses, and networks such as 10.0.0.0/8
 */
export function sharedAddresses(proxies: readonly string[]): (address: string) => boolean {
  return addressList(['127.0.0.0/8', '::1', ...proxies])
}
