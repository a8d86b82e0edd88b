import type { Endpoint } from '../core/endpoint.ts'
import { AppError, notFound } from '../core/errors.ts'
import { DEFAULT_OWNER } from '../core/ids.ts'
import type { Caller } from '../core/permission.ts'
import type { Ports } from '../ports/ports.ts'
import type { Access } from '../services/access.ts'
import type { BalancedCall } from './call.ts'
import { type Preflight, preflightOf } from './cors.ts'
import { presentedKeys, withoutKeys } from './credentials.ts'
import { EndpointBook } from './endpoint-book.ts'
import { ForeignKeys } from './foreign-keys.ts'
import { addressList, senderOf } from './forwarded.ts'
import type { Route } from './route.ts'

/** How an installation lets requests in. */
export interface AdmissionRules {
  /** Endpoints that need no key: ids, and names of endpoints of the first account. */
  readonly open: readonly string[]
  /** Addresses and networks of proxies whose `X-Forwarded-` headers are believed. */
  readonly trustedProxies: readonly string[]
}

/** Nothing is open, and nobody is trusted. */
export const CLOSED: AdmissionRules = { open: [], trustedProxies: [] }

/** A request that names an endpoint. */
export interface Arriving {
  readonly method: string
  /** Address of whoever opened the connection. */
  readonly peer: string
  readonly host: string
  readonly rawHeaders: readonly string[]
  readonly route: Route
}

/** More texts that may be keys are in no honest request. */
const MAX_KEYS = 4

/** Decides which requests go on to the workers of an endpoint, and takes their keys out of them. */
export class Admission {
  readonly #access: Pick<Access, 'authenticate' | 'requireJobs'>
  readonly #book: EndpointBook
  readonly #foreign: ForeignKeys
  readonly #open: ReadonlySet<string>
  readonly #trusts: (address: string) => boolean

  constructor(
    ports: Pick<Ports, 'store' | 'clock' | 'notifier' | 'vault'>,
    access: Pick<Access, 'authenticate' | 'requireJobs'>,
    { open, trustedProxies }: AdmissionRules,
  ) {
    this.#access = access
    this.#book = new EndpointBook(ports)
    this.#foreign = new ForeignKeys(ports, access)
    this.#open = new Set(open)
    this.#trusts = addressList(trustedProxies)
  }

  /** Reads nothing any more. */
  close(): void {
    this.#book.close()
  }

  /**
   * What is to be asked of a worker, or the answer to a preflight.
   * @throws AppError `unauthorized` without a valid key, `not_found` for no endpoint or one of another account, `forbidden`
   *   without the right to write jobs of the endpoint, `invalid` where it is one with a queue, `unavailable`
   */
  async admit(arriving: Arriving): Promise<BalancedCall | Preflight> {
    const preflight = preflightOf(arriving.method, arriving.rawHeaders)
    if (preflight === null) return this.#admit(arriving)
    try {
      return await this.#admit(arriving)
    } catch (error) {
      // Browsers send no key with it, and show a page nothing of its refusal: that of the request itself says why. But where
      // the endpoint is not known it may be an open one, whose application decides.
      if (error instanceof AppError && error.status < 500) return preflight
      throw error
    }
  }

  async #admit(arriving: Arriving): Promise<BalancedCall> {
    const { route, rawHeaders, method } = arriving
    const carrier = { path: route.path, rawHeaders }
    const keys = presentedKeys(carrier)
    if (keys.length > MAX_KEYS) throw new AppError('invalid', `a request has at most ${MAX_KEYS} keys`)
    // Whoever has no key does not get to ask the store which endpoints there are.
    if (keys.length === 0 && this.#open.size === 0) throw keyMissing()
    const known = await this.#book.find(route.endpointId)
    const isOpen = known !== null && this.#isOpen(known.endpoint)
    if (keys.length === 0 && !isOpen) throw keyMissing()
    const ours = isOpen ? await this.#foreign.oursAmong(keys) : await this.#authorized(keys, route, known?.endpoint)
    if (known?.endpoint.type !== 'LOAD_BALANCER') {
      throw known === null ? notFound('endpoint', route.endpointId) : new AppError('invalid', 'not allowed for QB API')
    }
    const { path, rawHeaders: cleaned, subprotocol } = withoutKeys(carrier, ours)
    const { prefix, ...sender } = senderOf({ ...arriving, rawHeaders: cleaned }, this.#trusts)
    const mounted = prefix + (route.prefix ?? '')
    return {
      ...{ endpointId: route.endpointId, path, prefix: mounted === '' ? null : mounted, ...sender },
      toHealth: (method === 'GET' || method === 'HEAD') && pathOf(path) === known.healthPath,
      ...(subprotocol === null ? {} : { subprotocol }),
    }
  }

  /** A name is anybody's to choose, an id is not. */
  #isOpen({ id, name, owner }: Endpoint): boolean {
    return this.#open.has(id) || (owner === DEFAULT_OWNER && this.#open.has(name))
  }

  /** The keys of the request that are valid. */
  async #authorized(keys: readonly string[], { endpointId }: Route, endpoint?: Endpoint): Promise<ReadonlySet<string>> {
    const valid = new Set<string>()
    let caller: Caller | null = null
    let problem: unknown
    for (const key of keys) {
      try {
        const found = await this.#access.authenticate(key)
        valid.add(key)
        caller ??= found
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'unauthorized') throw error
        problem ??= error
      }
    }
    if (caller === null) throw problem
    if (endpoint?.owner !== caller.owner) throw notFound('endpoint', endpointId)
    this.#access.requireJobs(caller, 'write', endpointId)
    return valid
  }
}

/** Of whoever shows no key. */
export function keyMissing(): AppError {
  return new AppError('unauthorized', 'the API key is missing')
}

function pathOf(path: string): string {
  const end = path.indexOf('?')
  return end < 0 ? path : path.slice(0, end)
}
