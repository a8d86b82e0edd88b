import { AppError } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { ClaimedJob } from '../../core/jobs/job.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Notifier } from '../../ports/notifier.ts'
import { Alarm, MAX_HELD } from '../long-poll.ts'

/**
 * What a try to get jobs came to: the jobs; null when waiting for more makes no sense, `barred` when this worker will get none but may
 * wait, `held_back` when it will get none before it holds less, `left` when there are some that only another one can have.
 */
export type Taken = ClaimedJob[] | 'barred' | 'held_back' | 'left' | null

/** A worker that waits for jobs. */
export interface Taker {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
  readonly holdMs: number
  readonly signals: readonly AbortSignal[]
  /**
   * Tries to get jobs.
   * @param takersInLine how many workers wait in this line, this one included
   */
  readonly claim: (takersInLine: number) => Promise<Taken>
}

/** What keeps a worker from getting jobs that wait may end without a word to it, so it looks again after this time. */
const HELD_BACK_MS = 1_000

/**
 * The workers that wait for jobs, one line for each endpoint. A notification wakes the one that waits longest, and one
 * that got something wakes the next: a hundred idle workers cost one claim per job, not a hundred.
 */
export class PollQueues {
  readonly #clock: Clock
  readonly #notifier: Notifier
  readonly #lines = new Map<EndpointId, { alarms: Set<Alarm>; unsubscribe: () => void }>()
  #held = 0

  constructor(clock: Clock, notifier: Notifier) {
    this.#clock = clock
    this.#notifier = notifier
  }

  /**
   * Jobs as soon as the claim gives some; none when the time is over, a signal came, or the claim said null.
   * @throws AppError `rate_limited` when too many workers wait
   */
  async take(taker: Taker): Promise<ClaimedJob[]> {
    if (this.#held >= MAX_HELD) {
      throw new AppError('rate_limited', 'too many workers are waiting on this server', { retryAfterSeconds: 5 })
    }
    this.#held += 1
    const alarm = new Alarm(this.#clock, taker.holdMs, taker.signals)
    const unsubscribe = this.#notifier.subscribe(`worker:${taker.workerId}`, () => alarm.ring())
    let line = this.#join(taker.endpointId, alarm)
    try {
      for (;;) {
        const claimed = await taker.claim(line.size)
        if (claimed === null) return []
        // In line it would be woken for jobs that it cannot have, and keep them from those behind it.
        if (claimed === 'barred' || claimed === 'held_back') this.#leave(taker.endpointId, alarm)
        else if (claimed !== 'left' && claimed.length > 0) return claimed
        else if (!line.has(alarm)) {
          // It may have jobs again. What came before it was back in line is found by trying once more.
          line = this.#join(taker.endpointId, alarm)
          continue
        } else if (claimed === 'left') wakeNext(line, alarm)
        if (alarm.over) return []
        await this.#next(alarm, claimed === 'held_back')
      }
    } finally {
      unsubscribe()
      alarm.close()
      this.#leave(taker.endpointId, alarm)
      this.#held -= 1
    }
  }

  async #next(alarm: Alarm, heldBack: boolean): Promise<void> {
    const cancelTimer = heldBack ? this.#clock.after(HELD_BACK_MS, () => alarm.ring()) : () => {}
    await alarm.next()
    cancelTimer()
  }

  #join(endpointId: EndpointId, alarm: Alarm): ReadonlySet<Alarm> {
    let line = this.#lines.get(endpointId)
    if (line === undefined) {
      const alarms = new Set<Alarm>()
      line = { alarms, unsubscribe: this.#notifier.subscribe(`queue:${endpointId}`, () => wakeFirst(alarms)) }
      this.#lines.set(endpointId, line)
    }
    line.alarms.add(alarm)
    return line.alarms
  }

  /** Whoever leaves passes a wake-up on: it may have been meant for a worker that is still there. */
  #leave(endpointId: EndpointId, alarm: Alarm): void {
    const line = this.#lines.get(endpointId)
    if (line?.alarms.delete(alarm) !== true) return
    if (line.alarms.size > 0) {
      wakeFirst(line.alarms)
      return
    }
    line.unsubscribe()
    this.#lines.delete(endpointId)
  }
}

/** Wakes the one that stands behind it. */
function wakeNext(alarms: ReadonlySet<Alarm>, before: Alarm): void {
  let passed = false
  for (const alarm of alarms) {
    if (passed) {
      alarm.ring()
      return
    }
    passed = alarm === before
  }
}

function wakeFirst(alarms: ReadonlySet<Alarm>): void {
  for (const alarm of alarms) {
    alarm.ring()
    return
  }
}
