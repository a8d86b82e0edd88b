import type { OwnerId } from '../../core/ids.ts'
import type { UrgentNames } from '../../core/observing/pause-words.ts'
import { isPaused, type Worker } from '../../core/workers/worker.ts'
import type { Store } from '../../ports/store/store.ts'

/** The names of the endpoints for which workers are paused, as far as the account owns them. */
export async function readUrgentNames(
  store: Pick<Store, 'endpoints'>,
  owner: OwnerId,
  workers: readonly Worker[],
): Promise<UrgentNames> {
  const ids = new Set(workers.flatMap(worker => (isPaused(worker) && worker.pause !== null ? [worker.pause.for] : [])))
  const endpoints = await Promise.all([...ids].map(id => store.endpoints.find(id)))
  return new Map(endpoints.flatMap(one => (one !== null && one.owner === owner ? [[one.id, one.name] as const] : [])))
}
