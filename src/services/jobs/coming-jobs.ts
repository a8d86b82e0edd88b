import type { EndpointId } from '../../core/ids.ts'
import type { Store } from '../../ports/store/store.ts'

/**
 * Jobs whose insert is under way, by endpoint. A store that keeps the order of calls claims such a job in the
 * transaction that inserts it, so that the claim for a worker that waits has no transaction of its own. With any
 * other store none counts.
 */
export class ComingJobs {
  readonly #store
  readonly #counts = new Map<EndpointId, number>()
  readonly #listeners = new Map<EndpointId, () => void>()

  constructor(store: Pick<Store, 'keepsOrder'>) {
    this.#store = store
  }

  /** Number of jobs of an endpoint whose insert is under way. */
  count(endpointId: EndpointId): number {
    return this.#counts.get(endpointId) ?? 0
  }

  /**
   * Begins an insert, which lasts until the end of the block that declares it with `using`. Calls the listener of the
   * endpoint before it returns.
   */
  begin(endpointId: EndpointId): Disposable | null {
    if (!this.#store.keepsOrder) return null
    this.#counts.set(endpointId, this.count(endpointId) + 1)
    this.#listeners.get(endpointId)?.()
    return { [Symbol.dispose]: () => this.#end(endpointId) }
  }

  /** Calls `listener` at each begin until the returned function is called. An endpoint has one listener. */
  listen(endpointId: EndpointId, listener: () => void): () => void {
    this.#listeners.set(endpointId, listener)
    return () => {
      if (this.#listeners.get(endpointId) === listener) this.#listeners.delete(endpointId)
    }
  }

  #end(endpointId: EndpointId): void {
    const left = this.count(endpointId) - 1
    if (left > 0) this.#counts.set(endpointId, left)
    else this.#counts.delete(endpointId)
  }
}
