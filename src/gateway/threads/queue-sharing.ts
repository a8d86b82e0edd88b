import type { EndpointId } from '../../core/ids.ts'
import type { BalancedEndpoint, Target } from '../../core/workers/socket-address.ts'
import type { WaitingWords, WorkerSlot, WorkerSlots } from './worker-slots.ts'

/** A load-balancing endpoint as other threads need it to choose a worker by themselves. */
export interface SharedEndpoint {
  readonly endpoint: BalancedEndpoint
  /** Place of the number of its waiting requests in {@link WaitingWords}. */
  readonly waitingWord: number
  readonly targets: readonly (Target & { readonly slot: WorkerSlot })[]
}

/** The part of the request queues that other threads see. */
export interface QueueSharing {
  readonly slots: WorkerSlots
  readonly waiting: WaitingWords
  /**
   * Shows an endpoint to all threads: a request that begins there after this sees it.
   * @param shared null if threads have to ask for each request
   */
  publish(id: EndpointId, shared: SharedEndpoint | null): void
}
