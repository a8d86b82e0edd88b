import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { ClaimedJob } from '../../core/jobs/job.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Notifier } from '../../ports/notifier.ts'
import { LongPoll } from '../long-poll.ts'

/**
 * What a claim came to: the jobs, none when the queue is empty. Null: the take must not wait. `barred`: the worker gets no jobs, but
 * may wait. `held_back`: it gets none before it holds less. `left`: jobs wait that only another worker can claim.
 */
export type Claimed = ClaimedJob[] | 'barred' | 'held_back' | 'left' | null

/** A take: a worker that waits for jobs. */
export interface Taker {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
  readonly holdMs: number
  /** When the worker completed a job last, in monotonic milliseconds; 0 for never, or where its last one failed. */
  readonly completedAtMs: number
  readonly signals: readonly AbortSignal[]
  /**
   * Tries to claim jobs.
   * @param takers how many takes wait in the poll queue, this one included
   */
  readonly claim: (takers: number) => Promise<Claimed>
}

/** Time after which a take that is held back claims again: what holds it back may end without a notification. */
const HELD_BACK_MS = 1_000

/**
 * The takes that wait for jobs, one poll queue for each endpoint. A notification wakes the first take, and a take
 * that leaves the queue wakes the next: a hundred idle workers cost one claim per job, not a hundred.
 *
 * The first take is that of the worker that completed a job last, so that under little load few workers have all of it and the others end
 * when their idle time is over; in turns, each would be needed now and then. A worker whose last job failed comes behind all others:
 * else one that fails at once would be given every job.
 */
export class PollQueues {
  readonly #clock: Clock
  readonly #notifier: Notifier
  readonly #longPoll: LongPoll
  readonly #queues = new Map<EndpointId, PollQueue>()

  constructor(clock: Clock, notifier: Notifier) {
    this.#clock = clock
    this.#notifier = notifier
    this.#longPoll = new LongPoll(clock, notifier, 'workers')
  }

  /**
   * The jobs of the first claim that gets some; none when the time is over, a signal came, or the claim is null.
   * @throws AppError `rate_limited` when too many workers wait
   */
  async take({ endpointId, workerId, holdMs, completedAtMs, signals, claim }: Taker): Promise<ClaimedJob[]> {
    const place = new Place(this.#clock, completedAtMs, () => this.#queueOf(endpointId))
    const jobs = await this.#longPoll.until({
      topics: [`worker:${workerId}`],
      join: wake => place.open(wake),
      read: () => claimAt(place, claim),
      forMs: holdMs,
      signals,
    })
    return jobs ?? []
  }

  #queueOf(endpointId: EndpointId): PollQueue {
    let queue = this.#queues.get(endpointId)
    if (queue === undefined) {
      const takes: WaitingTake[] = []
      const unsubscribe = this.#notifier.subscribe(`queue:${endpointId}`, () => wakeFirst(takes))
      const close = () => {
        unsubscribe()
        this.#queues.delete(endpointId)
      }
      queue = { takes, close }
      this.#queues.set(endpointId, queue)
    }
    return queue
  }
}

/** One try of a take: the jobs that it gets, none when it is to end without any, null when it is to wait. */
async function claimAt(place: Place, claim: Taker['claim']): Promise<ClaimedJob[] | null> {
  for (;;) {
    place.cancelWake()
    const claimed = await claim(place.takers)
    if (claimed === null) return []
    if (claimed === 'barred' || claimed === 'held_back') {
      // In the queue it would be woken for jobs that it cannot have, and keep them from those behind it.
      place.leave()
      if (claimed === 'held_back') place.wakeAfter(HELD_BACK_MS)
      return null
    }
    if (claimed !== 'left' && claimed.length > 0) return claimed
    if (place.isQueued) {
      if (claimed === 'left') place.wakeNext()
      return null
    }
    // It may have jobs again. A notification that came while it was not in the queue is made up for by one more claim.
    place.join()
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
class Place {
  readonly #clock: Clock
  readonly #find: () => PollQueue
  #take: WaitingTake
  #queue: PollQueue | null = null
  #cancelTimer = () => {}

  /** @param find the poll queue of the endpoint, a new one where no take waits */
  constructor(clock: Clock, completedAtMs: number, find: () => PollQueue) {
    this.#clock = clock
    this.#take = { wake: () => {}, completedAtMs }
    this.#find = find
  }

  /** Joins the poll queue for the first time. The returned function ends the wait. */
  open(wake: () => void): () => void {
    this.#take = { ...this.#take, wake }
    this.join()
    return () => {
      this.cancelWake()
      this.leave()
    }
  }

  join(): void {
    this.#queue = this.#find()
    const { takes } = this.#queue
    const behind = takes.findIndex(({ completedAtMs }) => completedAtMs < this.#take.completedAtMs)
    takes.splice(behind < 0 ? takes.length : behind, 0, this.#take)
  }

  /** Leaves the queue and wakes the first take in it: the last notification may have been meant for that one. */
  leave(): void {
    const queue = this.#queue
    const at = queue?.takes.indexOf(this.#take) ?? -1
    if (queue === null || at < 0) return
    queue.takes.splice(at, 1)
    if (queue.takes.length > 0) wakeFirst(queue.takes)
    else queue.close()
  }

  get isQueued(): boolean {
    return this.#queue?.takes.includes(this.#take) === true
  }

  /** How many takes wait in the poll queue. */
  get takers(): number {
    return this.#queue?.takes.length ?? 0
  }

  /** Wakes the take behind this one. */
  wakeNext(): void {
    const takes = this.#queue?.takes ?? []
    takes[takes.indexOf(this.#take) + 1]?.wake()
  }

  wakeAfter(ms: number): void {
    this.#cancelTimer = this.#clock.after(ms, this.#take.wake)
  }

  /** Takes {@link wakeAfter} back. */
  cancelWake(): void {
    this.#cancelTimer()
    this.#cancelTimer = () => {}
  }
}

function wakeFirst(takes: readonly WaitingTake[]): void {
  takes[0]?.wake()
}
