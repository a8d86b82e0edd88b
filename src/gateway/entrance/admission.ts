import { type Caller, mayUseModel } from '../../core/accounts/permission.ts'
import { type AppTarget, readAppTarget } from '../../core/apps/app.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { comparablePath } from '../../core/endpoints/sleep-hooks.ts'
import { AppError, notFound } from '../../core/errors.ts'
import { DEFAULT_OWNER, type EndpointId, type OwnerId } from '../../core/ids.ts'
import { textBefore } from '../../core/text-parts.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Access } from '../../services/accounts/access.ts'
import { InvalidKeyError } from '../../services/accounts/failed-keys.ts'
import { requireSourceRight } from '../../services/endpoints/live-endpoints.ts'
import type { ProxyRequest } from '../proxy/proxy-request.ts'
import { type Preflight, readPreflight } from './cors.ts'
import { presentedKeys, withoutKeys } from './credentials.ts'
import { type CachedEndpoint, EndpointCache } from './endpoint-cache.ts'
import { addressList, clientAddress, readSender } from './forwarded.ts'
import { notForQueue, pathReserved } from './refusal.ts'
import type { GatewayRoute } from './route.ts'

/** Endpoints that need no key, and trusted proxies. */
export interface AdmissionRules {
  /** Endpoints that need no key: ids, or names of endpoints of the first account. */
  readonly open: readonly string[]
  /** Addresses and networks of proxies whose `X-Forwarded-` headers are trusted. */
  readonly trustedProxies: readonly string[]
}

/** An endpoint as admission needs it. */
export interface AdmissibleEndpoint extends Omit<CachedEndpoint, 'endpoint'> {
  readonly endpoint: AdmissibleFields
}

type AdmissibleFields = Pick<Endpoint, 'id' | 'name' | 'owner' | 'type' | 'runsOnce'>

/** Finds endpoints. */
export interface EndpointFinder {
  /** The endpoint; null if it does not exist. Synchronous if it is known. @throws AppError `unavailable` */
  find(id: EndpointId): AdmissibleEndpoint | null | Promise<AdmissibleEndpoint | null>
  /** Stops following changes. */
  close(): void
}

/** The rights that admission checks. */
export type GatewayAccess = Pick<Access, 'authenticate' | 'recall' | 'requireJobs'> & {
  readonly failedKeys: {
    refusal(address: string, error: InvalidKeyError, count?: number): AppError | Promise<AppError>
  }
}

/** The default rules: every endpoint needs a key, and no proxy is trusted. */
export const CLOSED: AdmissionRules = { open: [], trustedProxies: [] }

/** A request that names an endpoint, before it is admitted. */
export interface ArrivingRequest {
  readonly method: string
  /** The address that opened the connection. */
  readonly peer: string
  /** True if it came to this server over TLS. */
  readonly isSecure?: boolean
  readonly host: string
  readonly rawHeaders: readonly string[]
  readonly route: GatewayRoute
  readonly requestId: string
}

/** A request whose endpoint is known. */
interface NamedRequest extends ArrivingRequest {
  readonly route: GatewayRoute & { readonly endpointId: EndpointId }
}

type Unfinished<Fields> = { -readonly [Field in keyof Fields]: Fields[Field] }

/** The endpoint at a place of an app. @throws AppError `not_found` */
export type FindTarget = (owner: OwnerId, place: AppTarget) => Promise<EndpointId>

const NO_TARGETS: FindTarget = async (_, { app }) => {
  throw notFound('app', app)
}

/** The result of admission: a request for a worker, or the response to a preflight. */
export type Admitted = ProxyRequest | Preflight

/** URL of the job operations of a queue endpoint, without a trailing slash. */
export type QueueAddress = (id: EndpointId) => string

/** The valid API keys of a request, and the caller whose permission admits it; null for an open endpoint. */
interface KeyCheck {
  readonly validKeys: readonly string[]
  readonly caller: Caller | null
}

const ANONYMOUS: KeyCheck = { validKeys: [], caller: null }

/** Maximum number of texts in one request that may be keys; no legitimate request has more. */
const MAX_KEYS = 4

/** Admits requests to the workers of an endpoint, and removes API keys from them. */
export class GatewayAdmission {
  readonly #access
  readonly #endpoints
  readonly #keyFilter
  readonly #queueAddress
  readonly #findTarget
  readonly #open: ReadonlySet<string>
  readonly #isTrusted: (address: string) => boolean

  /** @param endpoints by default those of the store, which it keeps */
  constructor(
    ports: Ports,
    access: GatewayAccess,
    { open, trustedProxies }: AdmissionRules,
    queueAddress: QueueAddress,
    findTarget: FindTarget = NO_TARGETS,
    endpoints: EndpointFinder = new EndpointCache(ports),
  ) {
    this.#findTarget = findTarget
    this.#queueAddress = queueAddress
    this.#access = access
    this.#endpoints = endpoints
    this.#keyFilter = new ApiKeyFilter(ports, access)
    this.#open = new Set(open)
    this.#isTrusted = addressList(trustedProxies)
  }

  /** Stops following changes of endpoints. */
  close(): void {
    this.#endpoints.close()
  }

  /** An endpoint as admission knows it. @throws AppError `unavailable` */
  find(id: EndpointId): ReturnType<EndpointFinder['find']> {
    return this.#endpoints.find(id)
  }

  /**
   * The request for a worker, or the response to a preflight. Synchronous if the endpoint and the key are cached.
   * @throws AppError (or rejects with one) `unauthorized` without a valid key; `not_found` if the endpoint does not
   * exist, or belongs to another account; `forbidden` without permission to write jobs of the endpoint; `invalid` for
   * a queue endpoint and for too many keys; `unavailable` if the store cannot be read
   */
  admit(arriving: ArrivingRequest): Admitted | Promise<Admitted> {
    const preflight = readPreflight(arriving.method, arriving.rawHeaders)
    return preflight === null ? this.#admit(arriving) : this.#admitPreflight(preflight, arriving)
  }

  async #admitPreflight(preflight: Preflight, arriving: ArrivingRequest): Promise<Admitted> {
    try {
      return await this.#admit(arriving)
    } catch (error) {
      // Browsers send no key with a preflight, and hide its error from the page; the error of the request itself is
      // shown. Where the endpoint cannot be read it may be an open one, whose application answers preflights itself.
      if (error instanceof AppError && error.status < 500) return preflight
      throw error
    }
  }

  #admit(arriving: ArrivingRequest): ProxyRequest | Promise<ProxyRequest> {
    const { route, rawHeaders } = arriving
    const keys = presentedKeys({ path: route.path, rawHeaders })
    if (keys.length > MAX_KEYS) throw new AppError('invalid', `a request has at most ${MAX_KEYS} keys`)
    const { endpointId } = route
    if (endpointId === null) return this.#admitTarget(arriving, keys)
    return this.#admitNamed(arriving as NamedRequest, keys)
  }

  /** A request whose headers name the endpoint, for which the account of its key must be known first. */
  async #admitTarget(arriving: ArrivingRequest, keys: readonly string[]): Promise<ProxyRequest> {
    if (keys.length === 0) throw keyMissing()
    const { caller } = await this.#validKeys(keys, arriving)
    const headers = new Map<string, string>()
    for (let at = 0; at + 1 < arriving.rawHeaders.length; at += 2) {
      headers.set(arriving.rawHeaders[at]!.toLowerCase(), arriving.rawHeaders[at + 1]!)
    }
    const endpointId = await this.#findTarget(
      caller.owner,
      readAppTarget(name => headers.get(name)),
    )
    return this.#admitNamed({ ...arriving, route: { ...arriving.route, endpointId } }, keys)
  }

  #admitNamed(arriving: NamedRequest, keys: readonly string[]): ProxyRequest | Promise<ProxyRequest> {
    const { route } = arriving
    if (route.caller !== undefined) return this.#admitCaller(arriving, keys, route.caller)
    // A request without a key causes no read of the store unless some endpoint is open.
    if (keys.length === 0 && this.#open.size === 0 && route.isTask !== true) throw keyMissing()
    const cached = this.#endpoints.find(route.endpointId)
    if (cached instanceof Promise) return cached.then(endpoint => this.#authorize(arriving, keys, endpoint))
    return this.#authorize(arriving, keys, cached)
  }

  /** A request whose caller is known: none of its keys is for the worker. */
  async #admitCaller(arriving: NamedRequest, keys: readonly string[], caller: Caller): Promise<ProxyRequest> {
    const cached = await this.#endpoints.find(arriving.route.endpointId)
    this.#requireRight(caller, arriving.route, cached?.endpoint)
    return this.#toProxyRequest(arriving, cached, { validKeys: keys, caller })
  }

  #authorize(
    arriving: NamedRequest,
    keys: readonly string[],
    cached: AdmissibleEndpoint | null,
  ): ProxyRequest | Promise<ProxyRequest> {
    if (arriving.route.isTask === true && cached?.endpoint.runsOnce !== true) {
      throw notFound('task', arriving.route.endpointId)
    }
    const isOpen = cached !== null && this.#isOpen(arriving, cached.endpoint)
    if (keys.length === 0 && !isOpen) throw keyMissing()
    if (keys.length === 0) return this.#toProxyRequest(arriving, cached, ANONYMOUS)
    const check = isOpen ? this.#findValidKeys(keys) : this.#checkKeys(keys, arriving, cached?.endpoint)
    if (check instanceof Promise) return check.then(keyCheck => this.#toProxyRequest(arriving, cached, keyCheck))
    return this.#toProxyRequest(arriving, cached, check)
  }

  /** For an open endpoint, which needs no key: the valid keys are found only to remove them. */
  async #findValidKeys(keys: readonly string[]): Promise<KeyCheck> {
    return { validKeys: await this.#keyFilter.validKeysAmong(keys), caller: null }
  }

  #toProxyRequest(
    arriving: NamedRequest,
    cached: AdmissibleEndpoint | null,
    { validKeys, caller }: KeyCheck,
  ): ProxyRequest {
    const { route, rawHeaders, method } = arriving
    const { endpointId } = route
    if (cached === null) throw notFound('endpoint', endpointId)
    // The program of a task asks for the token that its owner gave it.
    if (cached.runsSentSource && route.isTask !== true) requireSourceRight(caller)
    if (cached.endpoint.type !== 'LOAD_BALANCER') throw notForQueue(endpointId, this.#queueAddress(endpointId))
    const stripped = withoutKeys({ path: route.path, rawHeaders }, validKeys)
    const { path, subprotocol } = stripped
    if (cached.reserved.length > 0 && cached.reserved.includes(comparablePath(path))) throw pathReserved()
    const sender = readSender(arriving, this.#isTrusted, stripped.rawHeaders)
    const prefix = sender.prefix + (route.prefix ?? '')
    const request: Unfinished<ProxyRequest> = {
      endpointId,
      owner: cached.endpoint.owner,
      requestId: arriving.requestId,
      path,
      prefix: prefix === '' ? null : prefix,
      rawHeaders: sender.rawHeaders,
      client: sender.client,
      protocol: sender.protocol,
      host: sender.host,
      isOpen: this.#isOpen(arriving, cached.endpoint),
      toHealth: (method === 'GET' || method === 'HEAD') && textBefore(path, '?') === cached.healthPath,
    }
    if (caller !== null) request.caller = caller
    if (subprotocol !== null) request.subprotocol = subprotocol
    if (route.model !== undefined) request.model = route.model
    if (route.waitsFor !== undefined) request.waitsFor = route.waitsFor
    if (route.answerFields !== undefined && route.answerFields.length > 0) request.answerFields = route.answerFields
    if (route.hidesUsage === true) request.hidesUsage = true
    if (route.errorForm !== undefined) request.errorForm = route.errorForm
    if (route.complete !== undefined) request.complete = route.complete
    return request
  }

  /** Names count for the first account only: other accounts could choose the same name. */
  #isOpen({ route }: NamedRequest, { id, name, owner, runsOnce }: AdmissibleFields): boolean {
    if (runsOnce) return route.isTask === true
    return this.#open.has(id) || (owner === DEFAULT_OWNER && this.#open.has(name))
  }

  /** The valid keys and the caller. Synchronous if the only key is cached. */
  #checkKeys(
    keys: readonly string[],
    arriving: NamedRequest,
    endpoint?: AdmissibleFields,
  ): KeyCheck | Promise<KeyCheck> {
    const [key] = keys
    const caller = keys.length === 1 && key !== undefined ? this.#access.recall(key) : null
    if (caller === null) return this.#authenticateKeys(keys, arriving, endpoint)
    this.#requireRight(caller, arriving.route, endpoint)
    return { validKeys: keys, caller }
  }

  async #authenticateKeys(
    keys: readonly string[],
    arriving: NamedRequest,
    endpoint?: AdmissibleFields,
  ): Promise<KeyCheck> {
    const check = await this.#validKeys(keys, arriving)
    this.#requireRight(check.caller, arriving.route, endpoint)
    return check
  }

  async #validKeys(
    keys: readonly string[],
    arriving: ArrivingRequest,
  ): Promise<KeyCheck & { readonly caller: Caller }> {
    const validKeys: string[] = []
    let caller: Caller | null = null
    let problem: unknown
    let failed = 0
    for (const key of keys) {
      try {
        const keyCaller = await this.#access.authenticate(key)
        validKeys.push(key)
        caller ??= keyCaller
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'unauthorized') throw error
        if (error instanceof InvalidKeyError) failed += 1
        problem = problem instanceof InvalidKeyError ? problem : error
      }
    }
    // Other texts beside a valid key may be tokens of the application: they do not count as failed keys.
    if (caller === null) {
      if (!(problem instanceof InvalidKeyError)) throw problem
      throw await this.#access.failedKeys.refusal(clientAddress(arriving, this.#isTrusted), problem, failed)
    }
    return { validKeys, caller }
  }

  #requireRight(caller: Caller, { endpointId, model }: NamedRequest['route'], endpoint?: AdmissibleFields): void {
    if (endpoint?.owner !== caller.owner) throw notFound('endpoint', endpointId)
    if (model === undefined || !mayUseModel(caller, model)) this.#access.requireJobs(caller, 'write', endpointId)
  }
}

/** The error of a request without a key. */
export function keyMissing(): AppError {
  return new AppError('unauthorized', 'the API key is missing')
}

/** Time for which a text that was not a valid key is not checked again, in milliseconds. */
const FRESH_MS = 10_000
/** The same while the store is unavailable, in milliseconds. */
const STALE_MS = 300_000
const MAX_ENTRIES = 1_000

/**
 * Separates Runyard's API keys from the tokens of applications in requests to open endpoints. API keys are not
 * forwarded to workers, tokens are. A token comes with each request, so its rejection as a key is cached for a while.
 */
class ApiKeyFilter {
  readonly #ports
  readonly #access
  /** Time of the rejection of each text, by its hash. */
  readonly #rejectedAtMs = new Map<string, number>()

  constructor(ports: Pick<Ports, 'clock' | 'vault'>, access: Pick<Access, 'authenticate'>) {
    this.#ports = ports
    this.#access = access
  }

  /**
   * The texts that are valid API keys.
   * @throws AppError `unavailable` if the store cannot be read and a text was not checked recently
   */
  async validKeysAmong(texts: readonly string[]): Promise<readonly string[]> {
    const validKeys: string[] = []
    for (const text of texts) if (await this.#isValidKey(text)) validKeys.push(text)
    return validKeys
  }

  async #isValidKey(text: string): Promise<boolean> {
    const { clock, vault } = this.#ports
    const hash = vault.hash(text)
    const ageMs = clock.monotonic() - (this.#rejectedAtMs.get(hash) ?? Number.NEGATIVE_INFINITY)
    if (ageMs < FRESH_MS) return false
    try {
      await this.#access.authenticate(text)
      return true
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (error.code === 'unavailable' && ageMs < STALE_MS) return false
      if (error.code !== 'unauthorized') throw error
    }
    if (this.#rejectedAtMs.size >= MAX_ENTRIES) this.#rejectedAtMs.clear()
    this.#rejectedAtMs.set(hash, clock.monotonic())
    return false
  }
}
