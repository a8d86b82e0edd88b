import type { EndpointId } from '../../core/ids.ts'
import { takesJobs } from '../../core/workers/worker.ts'
import type { Store } from '../../ports/store/store.ts'

/** How many jobs a take may claim: at most what it wants, and no more than an equal share of the queue for each worker of the endpoint. */
export async function claimShare(
  { endpoints }: Pick<Store, 'endpoints'>,
  id: EndpointId,
  wanted: number,
): Promise<number> {
  if (wanted <= 1) return 1
  const snapshot = await endpoints.snapshot(id)
  if (snapshot === null) return 1
  const { queued, queuedLowPriority } = snapshot.queue
  const workers = Math.max(1, snapshot.workers.filter(takesJobs).length)
  return Math.min(wanted, Math.max(1, Math.ceil((queued + queuedLowPriority) / workers)))
}
