/** Pods of an installation that this server has not taken over yet: a server that becomes active need not ask for each of them. */
import type { WorkerId } from '../../core/ids.ts'
import type { PodObject } from './api.ts'
import { workerOf } from './names.ts'

/** The pods that the cluster has told of and that belong to no worker of this server. */
export class UnclaimedPods {
  readonly #installation: string
  readonly #pods = new Map<WorkerId, PodObject>()

  constructor(installation: string) {
    this.#installation = installation
  }

  /** A complete list comes: what was known before counts no more. */
  clear(): void {
    this.#pods.clear()
  }

  /** The cluster has a pod, or has it no more. */
  note(object: PodObject, isThere: boolean): void {
    const worker = workerOf(object, this.#installation)
    if (worker === null) return
    if (isThere) this.#pods.set(worker, object)
    else if (this.#pods.get(worker)?.metadata.uid === object.metadata.uid) this.#pods.delete(worker)
  }

  /** The pod of a worker that is taken over; undefined when the cluster has not told of one. */
  take(worker: WorkerId): PodObject | undefined {
    const found = this.#pods.get(worker)
    this.#pods.delete(worker)
    return found
  }
}
