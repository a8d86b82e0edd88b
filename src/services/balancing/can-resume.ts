import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { Store } from '../../ports/store/store.ts'

/**
 * True if a worker of this endpoint has ended and still has its record, so that it can be started again under its id.
 */
export async function canResume(
  { workers }: Pick<Store, 'workers'>,
  endpointId: EndpointId,
  workerId: WorkerId,
): Promise<boolean> {
  const worker = await workers.find(workerId)
  return worker !== null && worker.endpointId === endpointId && worker.state === 'EXITED' && worker.serves !== null
}
