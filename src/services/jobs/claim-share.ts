import type { EndpointId } from '../../core/ids.ts'
import type { Store } from '../../ports/store/store.ts'

/** How many jobs a take may claim: at most what it wants, and no more than an equal share of the queue for each worker of the endpoint. */
export async function claimShare(
  { endpoints }: Pick<Store, 'endpoints'>,
  id: EndpointId,
  wanted: number,
): Promise<number> {
  if (wanted <= 1) return 1
  const { queued, takers } = await endpoints.demand(id)
  return Math.min(wanted, Math.max(1, Math.ceil(queued / Math.max(1, takers))))
}
