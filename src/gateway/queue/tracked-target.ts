import { type Candidate, type Ejection, NOT_EJECTED } from '../../core/balancing/balance.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { ServedAt, Target, TargetState } from '../../core/workers/socket-address.ts'

/** A worker in the table of requests in flight. */
export class TrackedTarget implements Candidate {
  readonly workerId: WorkerId
  version = 0
  state: TargetState = 'starting'
  servedAt: ServedAt | null = null
  inFlight = 0
  usedAt = 0
  trust: Ejection = NOT_EJECTED
  /** The end of its last request; before its first one, when it became ready; before that, when it was first told of. */
  idleSinceMs: number
  /** Whether it has ended; what is in flight there comes to its end. */
  ended = false
  /** Since when it has requests, of the clock that only grows; null while it has none. */
  #busySinceMs: number | null = null
  /** For how long it had some before that. */
  #busyMs = 0
  /** Takes the timer back that changes how far it is trusted. */
  cancelTimer: () => void = () => {}

  constructor(workerId: WorkerId, nowMs: number) {
    this.workerId = workerId
    this.idleSinceMs = nowMs
  }

  /** It gets one more request. @param nowMs of the clock that only grows, as for all that follows */
  begin(nowMs: number): void {
    this.inFlight += 1
    this.#busySinceMs ??= nowMs
  }

  /** One of its requests is over. */
  end(nowMs: number): void {
    this.inFlight -= 1
    if (this.inFlight > 0) return
    this.#busyMs = this.busyMs(nowMs)
    this.#busySinceMs = null
  }

  /** For how long it had requests, altogether. */
  busyMs(nowMs: number): number {
    return this.#busyMs + (this.#busySinceMs === null ? 0 : nowMs - this.#busySinceMs)
  }

  /** It is told of, for the first time or again. One that had ended is another process, which nothing is held against. */
  tell({ version, state, servedAt }: Target, nowMs: number): void {
    if (this.ended) {
      this.ended = false
      this.state = 'starting'
      this.trust = NOT_EJECTED
      this.usedAt = 0
      this.#busyMs = 0
      this.idleSinceMs = nowMs
    }
    if (state === 'ready' && this.state === 'starting' && this.usedAt === 0) this.idleSinceMs = nowMs
    this.version = version
    this.state = state
    this.servedAt = servedAt
  }
}
