import type { EndpointId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

/** Tells the control loops that the requests of an endpoint are other than before, and not for each of ten thousand a second. */
export class LoadNotifier {
  readonly #ports: Pick<Ports, 'clock' | 'notifier'>
  readonly #id: EndpointId
  #lastMs = Number.NEGATIVE_INFINITY
  #dueMs = Number.POSITIVE_INFINITY
  #cancelTimer: () => void = () => {}

  constructor(ports: Pick<Ports, 'clock' | 'notifier'>, id: EndpointId) {
    this.#ports = ports
    this.#id = id
  }

  /** Tells it at once. */
  now(): void {
    this.close()
    this.#lastMs = this.#ports.clock.monotonic()
    this.#ports.notifier.publish(`load:${this.#id}`)
  }

  /** Tells it at once, unless it was told a moment ago: then so long after that. */
  within(ms: number): void {
    const { clock } = this.#ports
    const nowMs = clock.monotonic()
    const dueMs = this.#lastMs + ms
    if (dueMs <= nowMs) this.now()
    if (dueMs <= nowMs || dueMs >= this.#dueMs) return
    this.#cancelTimer()
    this.#dueMs = dueMs
    this.#cancelTimer = clock.after(dueMs - nowMs, () => this.now())
  }

  /** Takes back what has not been told yet. */
  close(): void {
    this.#cancelTimer()
    this.#cancelTimer = () => {}
    this.#dueMs = Number.POSITIVE_INFINITY
  }
}
