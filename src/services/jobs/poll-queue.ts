import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import { type HeldCall, LongPoll } from '../long-poll.ts'
import type { ComingJobs } from './coming-jobs.ts'
import type { ClaimAnswer } from './jobs.ts'

/** A take that joins the poll queue of its endpoint. */
export interface Taker {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
  /** Maximum time of its wait, in ms. */
  readonly holdMs: number
  /**
   * Time at which the worker completed a job last, in monotonic milliseconds; 0 for never, or where its last one
   * failed.
   */
  readonly completedAtMs: number
  /** End the wait early: the worker's connection is gone, or the server stops. */
  readonly signals: readonly AbortSignal[]
}

/** A claim that got no jobs, after which a take may wait. */
export type Miss = Exclude<ClaimAnswer['kind'], 'jobs' | 'over'>

/** Time after which a take that is held back claims again: the reason may end without a notification. */
const HELD_BACK_MS = 1_000

/**
 * The takes that wait for jobs, one poll queue for each endpoint. A notification wakes the first take, and a take that
 * leaves the queue wakes the next: a hundred idle workers cost one claim per job, not a hundred.
 *
 * The first take is that of the worker that completed a job last, so that under little load few workers have all of it
 * and the others end when their idle time is over; in turns, each would be needed now and then. A worker whose last
 * job failed comes behind all others: else one that fails at once would be given every job.
 */
export class PollQueues {
  readonly #ports
  readonly #coming
  readonly #longPoll
  readonly #queues = new Map<EndpointId, PollQueue>()

  /** @param coming jobs for which a take may claim before they are stored */
  constructor(ports: Ports, coming: ComingJobs) {
    this.#ports = ports
    this.#coming = coming
    this.#longPoll = new LongPoll(ports, 'workers')
  }

  /**
   * A place in the poll queue of an endpoint until the block ends that declares it with `using`. The take claims, then
   * waits for {@link PollPlace.next}, in a loop.
   * @throws AppError `rate_limited` when too many workers wait
   */
  join({ endpointId, workerId, holdMs, completedAtMs, signals }: Taker): PollPlace {
    const call = this.#longPoll.hold({ topics: [`worker:${workerId}`], forMs: holdMs, signals })
    return new PollPlace(call, completedAtMs, () => this.#openQueue(endpointId))
  }

  #openQueue(endpointId: EndpointId): PollQueue {
    let queue = this.#queues.get(endpointId)
    if (queue === undefined) {
      const takes: WaitingTake[] = []
      const unsubscribe = this.#ports.notifier.subscribe(`queue:${endpointId}`, () => wakeFirst(takes))
      const unlisten = this.#coming.listen(endpointId, this.#wakeSoon(takes))
      const close = () => {
        unsubscribe()
        unlisten()
        this.#queues.delete(endpointId)
      }
      queue = { takes, close }
      this.#queues.set(endpointId, queue)
    }
    return queue
  }

  /**
   * Wakes the first take once for all jobs that come in one turn: its claim follows their inserts, and the store
   * does not work on them yet.
   */
  #wakeSoon(takes: readonly WaitingTake[]): () => void {
    let isPlanned = false
    const wake = () => {
      isPlanned = false
      wakeFirst(takes)
    }
    return () => {
      if (isPlanned) return
      isPlanned = true
      this.#ports.clock.after(0, wake)
    }
  }
}

/** A take in a poll queue. */
interface WaitingTake {
  readonly wake: () => void
  readonly completedAtMs: number
}

/** The waiting takes of one endpoint, in their order. */
interface PollQueue {
  readonly takes: WaitingTake[]
  /** Called when the last take has left. */
  readonly close: () => void
}

/** The place of one take in the poll queue of its endpoint. The take leaves the queue while it can have no job. */
export class PollPlace implements Disposable {
  readonly #call
  readonly #find
  readonly #take: WaitingTake
  #queue: PollQueue

  /** @param find the poll queue of the endpoint, a new one where no take waits */
  constructor(call: HeldCall, completedAtMs: number, find: () => PollQueue) {
    this.#call = call
    this.#take = { wake: call.wake, completedAtMs }
    this.#find = find
    this.#queue = this.#join()
  }

  /** Number of takes that wait in the poll queue, this one included. */
  get takers(): number {
    return this.#queue.takes.length
  }

  /**
   * Waits after a claim without jobs until the take should claim again.
   * @returns false when the time is over or a signal came
   */
  async next(miss: Miss): Promise<boolean> {
    if (miss === 'barred' || miss === 'held_back') {
      // In the queue it would be woken for jobs that it cannot have, and keep them from those behind it.
      this.#leave()
    } else if (!this.#queue.takes.includes(this.#take)) {
      // The queue may have jobs again. One more claim makes up for a notification that came while the take was out.
      this.#queue = this.#join()
      return true
    } else if (miss === 'for_others') this.#wakeNext()
    if (this.#call.isOver) return false
    await this.#call.next(miss === 'held_back' ? HELD_BACK_MS : undefined)
    return true
  }

  /** Ends the wait. */
  [Symbol.dispose](): void {
    this.#leave()
    this.#call[Symbol.dispose]()
  }

  #join(): PollQueue {
    const queue = this.#find()
    const { takes } = queue
    const behind = takes.findIndex(({ completedAtMs }) => completedAtMs < this.#take.completedAtMs)
    takes.splice(behind < 0 ? takes.length : behind, 0, this.#take)
    return queue
  }

  /** Leaves the queue and wakes the first take in it: the last notification may have been meant for that one. */
  #leave(): void {
    const { takes, close } = this.#queue
    const at = takes.indexOf(this.#take)
    if (at < 0) return
    takes.splice(at, 1)
    if (takes.length > 0) wakeFirst(takes)
    else close()
  }

  #wakeNext(): void {
    const { takes } = this.#queue
    takes[takes.indexOf(this.#take) + 1]?.wake()
  }
}

function wakeFirst(takes: readonly WaitingTake[]): void {
  takes[0]?.wake()
}
