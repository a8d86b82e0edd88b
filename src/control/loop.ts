import type { Emit } from '../events.ts'
import type { Clock } from '../ports/clock.ts'
import type { Leader } from '../ports/leader.ts'

/** Minimum time between the starts of two steps, so that a flood of notifications costs a bounded amount. */
const GAP_MS = 20
/** Time after which a step that failed is made again. */
const RETRY_MS = 1_000

/** Does the due work. @returns time of the next step without a wake; null to wait for a wake */
export type Step = (nowMs: number) => Promise<number | null>

/**
 * Runs steps one at a time, each when its time comes or when the loop is woken. A step that fails is
 * retried after 1 s. The step is given to {@link start}, because the object that makes the steps may need
 * {@link wake} in its constructor.
 */
export class Loop {
  readonly #name
  readonly #ports
  #step: Step = async () => null
  #cancelTimer: () => void = () => {}
  #state: 'new' | 'waiting' | 'stepping' | 'stopped' = 'new'
  #woken = false
  #lastMs = Number.NEGATIVE_INFINITY
  #idle: (() => void) | null = null

  constructor(name: string, ports: { readonly clock: Clock; readonly leader: Leader; readonly emit: Emit }) {
    this.#name = name
    this.#ports = ports
  }

  /** Makes the first step soon. */
  start(step: Step): void {
    if (this.#state !== 'new') return
    this.#step = step
    this.#schedule(0)
  }

  /** Asks for a step soon; cheap to call often. */
  readonly wake = (): void => {
    if (this.#state === 'stepping') this.#woken = true
    if (this.#state === 'waiting') this.#schedule(this.#gap())
  }

  /** Ends the loop; resolves when a running step is over. */
  async stop(): Promise<void> {
    this.#cancelTimer()
    const stepping = this.#state === 'stepping'
    this.#state = 'stopped'
    if (stepping) await new Promise<void>(resolve => (this.#idle = resolve))
  }

  #gap(): number {
    return Math.max(0, this.#lastMs + GAP_MS - this.#ports.clock.monotonic())
  }

  #schedule(afterMs: number): void {
    this.#cancelTimer()
    this.#state = 'waiting'
    this.#cancelTimer = this.#ports.clock.after(afterMs, () => void this.#run())
  }

  async #run(): Promise<void> {
    const { clock, leader } = this.#ports
    this.#state = 'stepping'
    this.#woken = false
    this.#lastMs = clock.monotonic()
    const nextMs = leader.isLeader() ? await this.#guarded(clock.now()) : clock.now() + RETRY_MS
    if ((this.#state as string) === 'stopped') {
      this.#idle?.()
      return
    }
    if (this.#woken) this.#schedule(this.#gap())
    else if (nextMs === null) this.#state = 'waiting'
    else this.#schedule(Math.max(this.#gap(), nextMs - clock.now()))
  }

  async #guarded(nowMs: number): Promise<number | null> {
    try {
      return await this.#step(nowMs)
    } catch (error) {
      this.#ports.emit('loop.failed', { loop: this.#name, problem: String(error) })
      return nowMs + RETRY_MS
    }
  }
}
