import type { JobId } from '../../core/ids.ts'
import type { Job } from '../../core/jobs/job.ts'

/** Number of the last ends that are kept. */
const REMEMBERED = 1_024

/** Called with a job that has ended; null where it may have, and has to be read. */
export type EndListener = (job: Job | null) => void

/** A listener; null after its end, since a set may keep removed items (core/slots). */
interface Listening {
  listener: EndListener | null
}

/**
 * Ends of jobs that this server stores. A caller that waits for a job gets its final state from here, without a read
 * of the row that the server has just written.
 */
export class JobEnds {
  readonly #listeners = new Map<JobId, Set<Listening>>()
  /** Ids of the last ends, in a ring. */
  readonly #last: JobId[] = []
  #count = 0

  /** Number of ends so far, for {@link mayHaveEndedSince}. */
  get count(): number {
    return this.#count
  }

  /** Notes an end. @param job its final state; null when its end is uncertain */
  note(id: JobId, job: Job | null): void {
    this.#last[this.#count % REMEMBERED] = id
    this.#count += 1
    for (const { listener } of [...(this.#listeners.get(id) ?? [])]) listener?.(job)
  }

  /**
   * True when a job may have ended since there were this many ends. Exact for the last {@link REMEMBERED} ends, else
   * true.
   */
  mayHaveEndedSince(id: JobId, count: number): boolean {
    if (this.#count - count > REMEMBERED) return true
    for (let end = count; end < this.#count; end += 1) if (this.#last[end % REMEMBERED] === id) return true
    return false
  }

  /** Calls `listener` at each end of a job until the returned function is called. */
  listen(id: JobId, listener: EndListener): () => void {
    const listeners = this.#listeners.getOrInsertComputed(id, () => new Set())
    const listening: Listening = { listener }
    listeners.add(listening)
    return () => {
      listeners.delete(listening)
      listening.listener = null
      if (listeners.size === 0) this.#listeners.delete(id)
    }
  }
}
