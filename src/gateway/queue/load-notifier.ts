import type { EndpointId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

/** Minimum interval between notifications that workers are idle, in milliseconds. */
export const MIN_IDLE_NOTICE_MS = 1_000
/** Minimum interval between notifications that workers are overloaded, in milliseconds. */
const MIN_LOAD_NOTICE_MS = 100

type LoadNotifierPorts = Pick<Ports, 'clock'> & { readonly notifier: Pick<Ports['notifier'], 'publish'> }

/** Notifies the control loops of changes in the load of an endpoint, at a bounded rate. */
export class LoadNotifier {
  readonly #ports
  readonly #id
  #lastMs = Number.NEGATIVE_INFINITY
  #dueMs = Number.POSITIVE_INFINITY
  #cancelTimer: () => void = () => {}

  constructor(ports: LoadNotifierPorts, id: EndpointId) {
    this.#ports = ports
    this.#id = id
  }

  /** Notifies at once. */
  notify(): void {
    this.close()
    this.#lastMs = this.#ports.clock.monotonic()
    this.#ports.notifier.publish(`load:${this.#id}`)
  }

  /**
   * Notifies once within an interval since the last notification: at once if that is over.
   * @param ms the interval
   */
  notifyWithin(ms: number): void {
    const { clock } = this.#ports
    const nowMs = clock.monotonic()
    const dueMs = this.#lastMs + ms
    if (dueMs <= nowMs) this.notify()
    if (dueMs <= nowMs || dueMs >= this.#dueMs) return
    this.#cancelTimer()
    this.#dueMs = dueMs
    this.#cancelTimer = clock.after(dueMs - nowMs, () => this.notify())
  }

  /**
   * Notifies soon if a worker has more requests than its target, once for each further target of requests.
   * @param requestCount the target
   */
  notifyAbove(inFlight: number, requestCount: number): void {
    const above = inFlight - requestCount
    if (above > 0 && (requestCount === 1 || above % requestCount === 1)) this.notifyWithin(MIN_LOAD_NOTICE_MS)
  }

  /** Cancels a notification that is due. */
  close(): void {
    this.#cancelTimer()
    this.#cancelTimer = () => {}
    this.#dueMs = Number.POSITIVE_INFINITY
  }
}
