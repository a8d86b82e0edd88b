import { type Caller, mayUseJobs } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import type { InvalidKeyError } from '../../services/accounts/failed-keys.ts'
import { OpenUses } from '../../services/accounts/open-uses.ts'
import { type AdmittedEndpoint, packError, type Questions, unpackError } from './messages.ts'

/** Asks the deciding thread. Rejects with its AppError. */
export type Ask = <Name extends keyof Questions>(
  name: Name,
  asked: Questions[Name]['asked'],
) => Promise<Questions[Name]['answer']>

/** Time for which an answer is used without a change, in milliseconds. */
const FRESH_MS = 5_000
const MAX_CALLERS = 1_000
const MAX_ENDPOINTS = 10_000

/** Answers of the deciding thread, by what was asked. None is used after a change of any key or endpoint. */
class Answers<Value> {
  readonly #clock
  readonly #changes
  readonly #max
  readonly #kept = new Map<string, { readonly value: Value; readonly changes: number; readonly untilMs: number }>()

  /** @param changes the number of changes of keys and endpoints until now */
  constructor(clock: Ports['clock'], changes: () => number, max: number) {
    this.#clock = clock
    this.#changes = changes
    this.#max = max
  }

  get(asked: string): Value | undefined {
    const kept = this.#kept.get(asked)
    if (kept === undefined || kept.changes !== this.#changes() || kept.untilMs <= this.#clock.monotonic())
      return undefined
    return kept.value
  }

  /** Asks, and keeps the answer unless something changed in between. */
  async from(asked: string, ask: () => Promise<Value>): Promise<Value> {
    const changes = this.#changes()
    const value = await ask()
    if (this.#kept.size >= this.#max) this.#kept.clear()
    this.#kept.set(asked, { value, changes, untilMs: this.#clock.monotonic() + FRESH_MS })
    return value
  }
}

/** Rights of callers in a thread that reads HTTP. The deciding thread knows the keys. */
export class ThreadAccess {
  /** Counts failed keys where all threads count them. */
  readonly failedKeys = {
    refusal: async (address: string, error: InvalidKeyError, count = 1): Promise<AppError> =>
      unpackError(await this.#ask('failed', { address, error: packError(error), count })),
  }
  readonly #ports
  readonly #ask
  readonly #callers
  readonly #uses

  /** @param ports `vault` for hashes of keys */
  constructor(ports: Ports, ask: Ask, changes: () => number) {
    this.#ports = ports
    this.#ask = ask
    this.#callers = new Answers<Caller>(ports.clock, changes, MAX_CALLERS)
    this.#uses = new OpenUses(ports, id => ask('key', { id }))
  }

  /** @throws AppError as `Access.authenticate` */
  async authenticate(key: string | null): Promise<Caller> {
    if (key === null) throw new AppError('unauthorized', 'the API key is missing')
    return this.#callers.from(this.#ports.vault.hash(key), () => this.#ask('authenticate', { key }))
  }

  /** The caller of a key that was authenticated before; null for all others. */
  recall(key: string): Caller | null {
    const caller = this.#callers.get(this.#ports.vault.hash(key))
    if (caller === undefined) return null
    const { expiresAtMs } = caller
    return expiresAtMs === null || expiresAtMs > this.#ports.clock.now() ? caller : null
  }

  /** @throws AppError as `Access.requireJobs` */
  requireJobs(caller: Caller, level: 'read' | 'write', endpoint: EndpointId): void {
    if (mayUseJobs(caller, level, endpoint)) return
    this.#ports.emit('right.refused', { account: caller.owner, keyId: caller.keyId, right: `jobs:${level}` })
    throw new AppError('forbidden', `this API key has no ${level} right for the jobs of endpoint ${endpoint}`)
  }

  /** See `Access.hold`. */
  hold(caller: Caller, requires: (caller: Caller) => void, end: (why: AppError) => void): () => void {
    return this.#uses.hold(caller, requires, end)
  }
}

/** Endpoints in a thread that reads HTTP. */
export class ThreadEndpoints {
  readonly #ask
  readonly #endpoints
  /** Addresses of job operations of endpoints that were asked for. */
  readonly #queueAddresses = new Map<EndpointId, string>()

  constructor(clock: Ports['clock'], ask: Ask, changes: () => number) {
    this.#ask = ask
    this.#endpoints = new Answers<AdmittedEndpoint | null>(clock, changes, MAX_ENDPOINTS)
  }

  /** The endpoint; null if it does not exist. Synchronous if it is known. @throws AppError `unavailable` */
  find(id: EndpointId): AdmittedEndpoint | null | Promise<AdmittedEndpoint | null> {
    const known = this.#endpoints.get(id)
    return known === undefined ? this.#read(id) : known
  }

  /** The address of the job operations of an endpoint that was found. */
  queueAddress(id: EndpointId): string {
    return this.#queueAddresses.get(id) ?? ''
  }

  /** Nothing is left to end. */
  close(): void {}

  async #read(id: EndpointId): Promise<AdmittedEndpoint | null> {
    const endpoint = await this.#endpoints.from(id, () => this.#ask('endpoint', { id }))
    if (this.#queueAddresses.size >= MAX_ENDPOINTS) this.#queueAddresses.clear()
    if (endpoint !== null && endpoint.endpoint.type !== 'LOAD_BALANCER')
      this.#queueAddresses.set(id, endpoint.queueAddress)
    return endpoint
  }
}
