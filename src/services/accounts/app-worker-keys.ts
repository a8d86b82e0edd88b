import type { ApiKey } from '../../core/accounts/permission.ts'
import { isDevWorker } from '../../core/endpoints/runtime-image.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { givesWorkerKey } from '../../core/endpoints/worker-key.ts'
import type { KeyId, WorkerId } from '../../core/ids.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'

/** The beginning of the ids of keys that are tokens of workers. No key of an account has such an id. */
const WORKER = 'worker:'
/** The beginning of tokens of workers. */
const TOKEN = 'rpw_'

/**
 * Tokens of workers of apps as API keys. Functions of an app call others with the key in RUNPOD_API_KEY, for which
 * clients give the whole key of the person who deploys; workers get their token in its place. It opens the jobs of the
 * account, in a dev session also the list of endpoints, and ends with the worker.
 */
export class AppWorkerKeys {
  readonly #ports

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** True for a text that may be the token of a worker. */
  isToken(key: string): boolean {
    return key.startsWith(TOKEN)
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

  async #keyOf({ id, endpointId, owner, createdAtMs, state }: Worker, hash: string): Promise<ApiKey | null> {
    if (state === 'EXITED') return null
    const { endpoints, templates } = this.#ports.store
    const endpoint = await endpoints.find(endpointId)
    const template = endpoint === null ? null : await templates.find(owner, endpoint.templateId)
    if (endpoint === null || template === null) return null
    const env = savedEnv(endpoint, template)
    if (!givesWorkerKey(template.image, env)) return null
    return {
      id: `${WORKER}${id}` as KeyId,
      owner,
      kind: 'server',
      name: `worker ${id}`,
      hash,
      hint: '',
      scope: { type: 'restricted', management: isDevWorker(env) ? 'read' : 'none', jobs: 'write' },
      exempt: false,
      disabled: false,
      expiresAtMs: null,
      createdAtMs,
      lastUsedAtMs: null,
      endpointId,
    }
  }
}
