import type { Caller } from '../../core/accounts/permission.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, notFound } from '../../core/errors.ts'
import { DEFAULT_OWNER } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Access } from '../../services/accounts/access.ts'
import { InvalidKeyError } from '../../services/accounts/failed-keys.ts'
import type { ProxyRequest } from '../proxy/proxy-request.ts'
import { ApiKeyFilter } from './api-key-filter.ts'
import { type Preflight, preflightOf } from './cors.ts'
import { presentedKeys, withoutKeys } from './credentials.ts'
import { type CachedEndpoint, EndpointCache } from './endpoint-cache.ts'
import { addressList, clientOf, senderOf } from './forwarded.ts'
import type { GatewayRoute } from './route.ts'

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
export interface ArrivingRequest {
  readonly method: string
  /** Address of whoever opened the connection. */
  readonly peer: string
  readonly host: string
  readonly rawHeaders: readonly string[]
  readonly route: GatewayRoute
}

/** What becomes of a request that is let in. */
export type Admitted = ProxyRequest | Preflight

/** What a request shows of keys: those that are ours, and whose right it passes by; null where it needs none. */
interface KeyCheck {
  readonly validKeys: ReadonlySet<string>
  readonly caller: Caller | null
}

const ANONYMOUS: KeyCheck = { validKeys: new Set(), caller: null }

/** More texts that may be keys are in no honest request. */
const MAX_KEYS = 4

/** Decides which requests go on to the workers of an endpoint, and takes their keys out of them. */
export class GatewayAdmission {
  readonly #access: Pick<Access, 'authenticate' | 'recall' | 'requireJobs' | 'failedKeys'>
  readonly #endpoints: EndpointCache
  readonly #keyFilter: ApiKeyFilter
  readonly #open: ReadonlySet<string>
  readonly #isTrusted: (address: string) => boolean

  constructor(
    ports: Pick<Ports, 'store' | 'clock' | 'notifier' | 'vault'>,
    access: Pick<Access, 'authenticate' | 'recall' | 'requireJobs' | 'failedKeys'>,
    { open, trustedProxies }: AdmissionRules,
  ) {
    this.#access = access
    this.#endpoints = new EndpointCache(ports)
    this.#keyFilter = new ApiKeyFilter(ports, access)
    this.#open = new Set(open)
    this.#isTrusted = addressList(trustedProxies)
  }

  /** Reads nothing any more. */
  close(): void {
    this.#endpoints.close()
  }

  /**
   * What is to be asked of a worker, or the answer to a preflight. At once where endpoint and key were asked for a moment ago.
   * @throws AppError (or rejects with one) `unauthorized` without a valid key, `not_found` for no endpoint or one of another
   *   account, `forbidden` without the right to write jobs of the endpoint, `invalid` where it is one with a queue, `unavailable`
   */
  admit(arriving: ArrivingRequest): Admitted | Promise<Admitted> {
    const preflight = preflightOf(arriving.method, arriving.rawHeaders)
    return preflight === null ? this.#admit(arriving) : this.#admitPreflight(preflight, arriving)
  }

  async #admitPreflight(preflight: Preflight, arriving: ArrivingRequest): Promise<Admitted> {
    try {
      return await this.#admit(arriving)
    } catch (error) {
      // Browsers send no key with it, and show a page nothing of its refusal: that of the request itself says why. But where
      // the endpoint is not known it may be an open one, whose application decides.
      if (error instanceof AppError && error.status < 500) return preflight
      throw error
    }
  }

  #admit(arriving: ArrivingRequest): ProxyRequest | Promise<ProxyRequest> {
    const { route, rawHeaders } = arriving
    const keys = presentedKeys({ path: route.path, rawHeaders })
    if (keys.length > MAX_KEYS) throw new AppError('invalid', `a request has at most ${MAX_KEYS} keys`)
    // Whoever has no key does not get to ask the store which endpoints there are.
    if (keys.length === 0 && this.#open.size === 0) throw keyMissing()
    const known = this.#endpoints.find(route.endpointId)
    if (known instanceof Promise) return known.then(found => this.#authorize(arriving, keys, found))
    return this.#authorize(arriving, keys, known)
  }

  #authorize(
    arriving: ArrivingRequest,
    keys: readonly string[],
    known: CachedEndpoint | null,
  ): ProxyRequest | Promise<ProxyRequest> {
    const isOpen = known !== null && this.#isOpen(known.endpoint)
    if (keys.length === 0 && !isOpen) throw keyMissing()
    if (keys.length === 0) return this.#toProxyRequest(arriving, known, ANONYMOUS)
    const check = isOpen ? this.#findValidKeys(keys) : this.#checkKeys(keys, arriving, known?.endpoint)
    if (check instanceof Promise) return check.then(found => this.#toProxyRequest(arriving, known, found))
    return this.#toProxyRequest(arriving, known, check)
  }

  /** Nobody needs a key, so nothing depends on those that are shown. */
  async #findValidKeys(keys: readonly string[]): Promise<KeyCheck> {
    return { validKeys: await this.#keyFilter.validKeysAmong(keys), caller: null }
  }

  #toProxyRequest(
    arriving: ArrivingRequest,
    known: CachedEndpoint | null,
    { validKeys, caller }: KeyCheck,
  ): ProxyRequest {
    const { route, rawHeaders, method } = arriving
    if (known?.endpoint.type !== 'LOAD_BALANCER') {
      throw known === null ? notFound('endpoint', route.endpointId) : new AppError('invalid', 'not allowed for QB API')
    }
    const stripped = withoutKeys({ path: route.path, rawHeaders }, validKeys)
    const { path, subprotocol } = stripped
    const sender = senderOf(
      { peer: arriving.peer, host: arriving.host, rawHeaders: stripped.rawHeaders },
      this.#isTrusted,
    )
    const mounted = sender.prefix + (route.prefix ?? '')
    return {
      endpointId: route.endpointId,
      path,
      prefix: mounted === '' ? null : mounted,
      rawHeaders: sender.rawHeaders,
      client: sender.client,
      protocol: sender.protocol,
      host: sender.host,
      isOpen: this.#isOpen(known.endpoint),
      toHealth: (method === 'GET' || method === 'HEAD') && pathOf(path) === known.healthPath,
      ...(subprotocol === null ? {} : { subprotocol }),
      ...(caller === null ? {} : { caller }),
    }
  }

  /** A name is anybody's to choose, an id is not. */
  #isOpen({ id, name, owner }: Endpoint): boolean {
    return this.#open.has(id) || (owner === DEFAULT_OWNER && this.#open.has(name))
  }

  /** The keys of the request that are valid, and for whom. */
  #checkKeys(keys: readonly string[], arriving: ArrivingRequest, endpoint?: Endpoint): KeyCheck | Promise<KeyCheck> {
    const [key] = keys
    const caller = keys.length === 1 && key !== undefined ? this.#access.recall(key) : null
    if (caller === null) return this.#authenticateKeys(keys, arriving, endpoint)
    this.#requireRight(caller, arriving.route, endpoint)
    return { validKeys: new Set(keys), caller }
  }

  async #authenticateKeys(keys: readonly string[], arriving: ArrivingRequest, endpoint?: Endpoint): Promise<KeyCheck> {
    const valid = new Set<string>()
    let caller: Caller | null = null
    let problem: unknown
    let failed = 0
    for (const key of keys) {
      try {
        const found = await this.#access.authenticate(key)
        valid.add(key)
        caller ??= found
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'unauthorized') throw error
        if (error instanceof InvalidKeyError) failed += 1
        problem = problem instanceof InvalidKeyError ? problem : error
      }
    }
    // Beside a valid key there may be tokens of the application, which are nobody's guesses.
    if (caller === null) {
      if (!(problem instanceof InvalidKeyError)) throw problem
      throw this.#access.failedKeys.refusal(clientOf(arriving, this.#isTrusted), problem, failed)
    }
    this.#requireRight(caller, arriving.route, endpoint)
    return { validKeys: valid, caller }
  }

  #requireRight(caller: Caller, { endpointId }: GatewayRoute, endpoint?: Endpoint): void {
    if (endpoint?.owner !== caller.owner) throw notFound('endpoint', endpointId)
    this.#access.requireJobs(caller, 'write', endpointId)
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
