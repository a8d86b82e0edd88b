/** The calls of the API that concern the pods and secrets of an installation. Objects of others are never changed. */
import type { WorkerId } from '../../core/ids.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import {
  type KubernetesApi,
  type KubernetesCall,
  KubernetesError,
  type KubernetesObject,
  kubernetesError,
  type ObjectList,
  type ObjectMeta,
  type PodObject,
} from './api.ts'
import { ownSelector, podName, workerFromObject } from './names.ts'
import { type Manifest, ownedBy } from './pod-spec.ts'

/** An object of ours in the list of its kind. */
export interface OwnObject {
  readonly worker: WorkerId
  readonly name: string
  readonly uid: string
  /** The time at which the cluster made it, in epoch milliseconds. */
  readonly createdMs: number
}

type Kind = 'pods' | 'secrets'

const PAGE = '500'

/** Makes, finds and deletes pods and secrets. All methods throw KubernetesError. */
export class PodCalls {
  readonly #options

  constructor(options: {
    readonly api: KubernetesApi
    readonly namespace: string
    readonly installation: string
  }) {
    this.#options = options
  }

  /** The path of the objects of a kind. */
  path(kind: Kind, name = ''): string {
    return `/api/v1/namespaces/${this.#options.namespace}/${kind}${name === '' ? '' : `/${name}`}`
  }

  /**
   * Makes the pod of a worker, unless it exists.
   * @throws WorkerStartError when another owner has a pod of that name
   */
  async create(worker: WorkerId, manifest: Manifest): Promise<PodObject> {
    try {
      return await this.#call<PodObject>({ method: 'POST', path: this.path('pods'), body: manifest })
    } catch (thrown) {
      if (kubernetesError(thrown).status !== 409) throw thrown
    }
    // An earlier call has made it, whose answer was lost.
    const object = await this.find(worker)
    if (object !== null) return object
    throw new WorkerStartError({ kind: 'cluster_name_taken', name: podName(worker) })
  }

  /** Makes or replaces a secret of a worker. @throws WorkerStartError when another owner has one of that name */
  async save(worker: WorkerId, manifest: Manifest): Promise<OwnObject> {
    const { name } = (manifest as { metadata: ObjectMeta }).metadata
    const created = await this.#createSecret(manifest)
    if (created !== null) return ownObject(created, worker)
    const existing = await this.#metadata('secrets', name)
    if (existing === null) return this.save(worker, manifest)
    if (workerFromObject(existing, this.#options.installation) !== worker) {
      throw new WorkerStartError({ kind: 'cluster_name_taken', name })
    }
    const call = { method: 'PUT', path: this.path('secrets', name), body: manifest } as const
    return ownObject(await this.#call<KubernetesObject>(call), worker)
  }

  /** Makes the end of a pod the end of a secret. */
  async own(secret: OwnObject, pod: { readonly name: string; readonly uid: string }): Promise<void> {
    await this.#call({ method: 'PATCH', path: this.path('secrets', secret.name), body: ownedBy(pod) })
  }

  /** The pod of a worker; null without one, and for that of another owner. */
  async find(worker: WorkerId): Promise<PodObject | null> {
    try {
      const object = await this.#call<PodObject>({ method: 'GET', path: this.path('pods', podName(worker)) })
      return workerFromObject(object, this.#options.installation) === worker ? object : null
    } catch (thrown) {
      if (kubernetesError(thrown).status === 404) return null
      throw thrown
    }
  }

  /**
   * Deletes one object, and no other of its name.
   * @param graceS seconds that its program may take to end; 0 does not wait for its node; by default its own time
   * @returns true if it existed
   */
  async remove(kind: Kind, { name, uid }: Pick<OwnObject, 'name' | 'uid'>, graceS?: number): Promise<boolean> {
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid },
      ...(graceS === undefined ? {} : { gracePeriodSeconds: graceS }),
    }
    try {
      await this.#call({ method: 'DELETE', path: this.path(kind, name), body })
      return true
    } catch (thrown) {
      const { status } = kubernetesError(thrown)
      // The object is gone, or another one has its name.
      if (status === 404 || status === 409) return false
      throw thrown
    }
  }

  /** All objects of a kind that are of this installation. Their content is not asked for. */
  async list(kind: Kind): Promise<OwnObject[]> {
    const { installation } = this.#options
    const objects: OwnObject[] = []
    let next = ''
    do {
      const page: ObjectList<KubernetesObject> = await this.#call({
        method: 'GET',
        path: this.path(kind),
        query: { labelSelector: ownSelector(installation), limit: PAGE, ...(next === '' ? {} : { continue: next }) },
        metadataOnly: 'list',
      })
      for (const item of page.items ?? []) {
        const worker = workerFromObject(item, installation)
        if (worker !== null) objects.push(ownObject(item, worker))
      }
      next = page.metadata?.continue ?? ''
    } while (next !== '')
    return objects
  }

  async #createSecret(manifest: Manifest): Promise<KubernetesObject | null> {
    try {
      return await this.#call({ method: 'POST', path: this.path('secrets'), body: manifest })
    } catch (thrown) {
      if (kubernetesError(thrown).status === 409) return null
      throw thrown
    }
  }

  async #metadata(kind: Kind, name: string): Promise<KubernetesObject | null> {
    try {
      return await this.#call({ method: 'GET', path: this.path(kind, name), metadataOnly: 'one' })
    } catch (thrown) {
      if (kubernetesError(thrown).status === 404) return null
      throw thrown
    }
  }

  async #call<Result>(call: KubernetesCall): Promise<Result> {
    try {
      return await this.#options.api.call<Result>(call)
    } catch (thrown) {
      throw thrown instanceof KubernetesError ? thrown : kubernetesError(thrown)
    }
  }
}

function ownObject({ metadata }: KubernetesObject, worker: WorkerId): OwnObject {
  const { name, uid = '', creationTimestamp = '' } = metadata
  return { worker, name, uid, createdMs: Date.parse(creationTimestamp) || 0 }
}
