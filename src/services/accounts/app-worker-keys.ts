import { type ApiKey, type Caller, MAX_SCOPE_ENDPOINTS } from '../../core/accounts/permission.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { devApp, devNames } from '../../core/endpoints/runtime-image.ts'
import { type EndpointWithTemplate, savedEnv } from '../../core/endpoints/saved-env.ts'
import { givesWorkerKey } from '../../core/endpoints/worker-key.ts'
import type { EndpointId, EnvironmentId, KeyId, WorkerId } from '../../core/ids.ts'
import { PROCESS_DRIVER } from '../../core/workers/host-folder.ts'
import { WORKER_TOKEN, type Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'

/** The beginning of the ids of keys that are tokens of workers. No key of an account has such an id. */
const WORKER = 'worker:'

/**
 * Tokens of workers of apps as API keys. Functions of an app call others with the key in RUNPOD_API_KEY, for which
 * clients give the whole key of the person who deploys; workers get their token in its place. It opens the jobs of the
 * endpoints of their app and the list of these, and ends with the worker.
 */
export class AppWorkerKeys {
  readonly #ports

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** True for a text that may be the token of a worker. */
  isToken(key: string): boolean {
    return key.startsWith(WORKER_TOKEN)
  }

  /** The key of a token by its hash; null for one of no worker of an app. */
  async findByHash(hash: string): Promise<ApiKey | null> {
    const worker = await this.#ports.store.workers.findByToken(hash)
    return worker === null ? null : this.#keyOf(worker, hash)
  }

  /** The record of a key, of a worker too; null for one that does not exist, or has ended. */
  async find(id: KeyId): Promise<ApiKey | null> {
    const { store } = this.#ports
    if (!id.startsWith(WORKER)) return store.keys.find(id)
    const worker = await store.workers.find(id.slice(WORKER.length) as WorkerId)
    return worker === null ? null : this.#keyOf(worker, '')
  }

  async #keyOf({ id, endpointId, owner, createdAtMs, state, driver }: Worker, hash: string): Promise<ApiKey | null> {
    const endpoint = state === 'EXITED' ? null : await this.#ports.store.endpoints.find(endpointId)
    const endpoints = endpoint === null ? null : await this.#endpointsOf(endpoint, driver === PROCESS_DRIVER)
    if (endpoints === null) return null
    return {
      id: `${WORKER}${id}` as KeyId,
      owner,
      kind: 'server',
      name: `worker ${id}`,
      hash,
      hint: '',
      scope: {
        type: 'restricted',
        management: 'none',
        jobs: Object.fromEntries(endpoints.map(one => [one, 'write' as const])),
      },
      exempt: false,
      disabled: false,
      expiresAtMs: null,
      createdAtMs,
      lastUsedAtMs: null,
      endpointId,
    }
  }

  /**
   * The endpoints that functions of an endpoint may call: those of its app in the same environment or dev session, at
   * most {@link MAX_SCOPE_ENDPOINTS}. Null for one whose workers have no key.
   * @param isOnMachine false for a worker that is no process of the machine. In a dev session it calls no processes:
   *   its call would choose their program, and others than the operator choose its own
   */
  async #endpointsOf(endpoint: Endpoint, isOnMachine: boolean): Promise<EndpointId[] | null> {
    const { store } = this.#ports
    const template = await store.templates.find(endpoint.owner, endpoint.templateId)
    if (template === null || !givesWorkerKey(template.image, savedEnv(endpoint, template))) return null
    const [root] = endpoint.starters
    if (root !== undefined) {
      // Whatever its own variables say, it belongs to the app of the function that started the first task.
      const first = await store.endpoints.find(root)
      return (first === null ? null : await this.#endpointsOf(first, isOnMachine)) ?? [endpoint.id]
    }
    const app = devApp(savedEnv(endpoint, template))
    if (app !== null) return this.#ofDevSession({ endpoint, template }, app, isOnMachine)
    const environmentId = endpoint.flashEnvironmentId as EnvironmentId | null
    const places = environmentId === null ? [] : await store.apps.endpoints(endpoint.owner, environmentId)
    // An environment that does not exist has no other functions.
    return places.length === 0 ? [endpoint.id] : places.slice(0, MAX_SCOPE_ENDPOINTS).map(({ id }) => id)
  }

  /** The endpoints of a dev session; the SDK finds them by names that begin with that of their app. */
  async #ofDevSession(own: EndpointWithTemplate, app: string, isOnMachine: boolean): Promise<EndpointId[]> {
    const { driver, store } = this.#ports
    const { id, owner } = own.endpoint
    const named = await store.endpoints.beginning(owner, devNames(app), MAX_SCOPE_ENDPOINTS)
    const mayCall = ({ endpoint, template }: EndpointWithTemplate) => {
      if (template === null || devApp(savedEnv(endpoint, template)) !== app) return false
      return isOnMachine || driver.nameFor(template.image) !== PROCESS_DRIVER
    }
    const others = named.filter(({ endpoint }) => endpoint.id !== id)
    return [own, ...others]
      .filter(mayCall)
      .slice(0, MAX_SCOPE_ENDPOINTS)
      .map(({ endpoint }) => endpoint.id)
  }
}

/** The worker whose token a caller has, for which {@link isAppWorker} is true. */
export function workerOfKey({ keyId }: Pick<Caller, 'keyId'>): WorkerId {
  return keyId.slice(WORKER.length) as WorkerId
}

/** True for a caller who has the token of a worker of an app. */
export function isAppWorker({ keyId }: Pick<Caller, 'keyId'>): boolean {
  return keyId.startsWith(WORKER)
}
