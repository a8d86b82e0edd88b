import type { WorkerId } from '../../core/ids.ts'
import type { Loss } from '../http1/worker-connection.ts'
import type { Reservation } from '../queue/reservation.ts'

/** Number of workers that one request is sent to. One that refused the connection got nothing, and does not count. */
const MAX_WORKERS = 2
const NOBODY: readonly WorkerId[] = []

/** The workers of one request, one after another. */
export class Tries {
  /** Number of workers that it had. */
  count = 0
  /** Workers that failed it. */
  avoid: readonly WorkerId[] = NOBODY
  #refusedBy: readonly WorkerId[] = NOBODY
  #sent = 0

  /**
   * Notes a worker that failed the request, which may be sent again. After a refusal it waits for the next worker; the
   * same one again without a wait means that the request queue has no better one, and expects none.
   * @returns true if the request may have another worker
   */
  hasNext({ workerId, waitedMs }: Reservation, kind: Loss['kind']): boolean {
    this.avoid = withWorker(this.avoid, workerId)
    if (kind !== 'refused') {
      this.#sent += 1
      return this.#sent < MAX_WORKERS
    }
    const isFirst = !this.#refusedBy.includes(workerId)
    this.#refusedBy = withWorker(this.#refusedBy, workerId)
    return isFirst || waitedMs > 0
  }
}

function withWorker(workers: readonly WorkerId[], worker: WorkerId): readonly WorkerId[] {
  return workers.includes(worker) ? workers : [...workers, worker]
}
