import type { EndpointId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { NumberedEvent, RecentEvents } from './recent-events.ts'

/** Events that a reader asks for. */
export interface EventQuery {
  /** Events of one endpoint; null for all of the account. */
  readonly endpointId: EndpointId | null
  /** Id of the last event that the reader has; null for new events only. */
  readonly after: string | null
}

/** Limit of events that one step inspects. */
const MAX_STEP = 500

/** Events that are sent at once; empty when no event came in time. */
export interface EventBatch {
  readonly events: readonly NumberedEvent[]
  /** Number of requested events that are no longer kept; null when the server cannot know it. */
  readonly missed: number | null
}

/** The events of an account for one reader, as fast as the reader asks for them. */
export class LiveEventStream {
  readonly #clock
  readonly #endpointId: string | null
  readonly #onClose
  readonly #recent
  readonly #unsubscribe: () => void
  #read: number
  #isOfOtherList = false
  #closed = false
  #wake: () => void = () => {}
  /** False: events continue until the reader leaves. */
  readonly ended = false

  /**
   * @param recent the events of the account
   * @param onClose called once
   */
  constructor(clock: Clock, recent: RecentEvents, { endpointId, after }: EventQuery, onClose: () => void) {
    this.#clock = clock
    this.#recent = recent
    this.#endpointId = endpointId
    this.#onClose = onClose
    const number = after === null ? recent.newest : recent.numberFromId(after)
    this.#isOfOtherList = number === null
    this.#read = number ?? recent.newest
    this.#unsubscribe = recent.subscribe(() => this.#wake())
  }

  /** The id from which a reader goes on. */
  get id(): string {
    return this.#recent.eventId(this.#read)
  }

  /** The next events, empty when no event comes within `forMs`; null for a closed stream. */
  async next(forMs: number): Promise<EventBatch | null> {
    const untilMs = this.#clock.monotonic() + forMs
    while (!this.#closed) {
      const batch = this.#take()
      if (batch.events.length > 0 || batch.missed !== 0) return batch
      if (this.#read < this.#recent.newest) continue
      const leftMs = untilMs - this.#clock.monotonic()
      if (leftMs <= 0) return batch
      await this.#pause(leftMs)
    }
    return null
  }

  /** Ends the stream. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#unsubscribe()
    this.#onClose()
    this.#wake()
  }

  #take(): EventBatch {
    if (this.#isOfOtherList) {
      this.#isOfOtherList = false
      return { events: [], missed: null }
    }
    const { events, missed } = this.#recent.after(this.#read, MAX_STEP)
    this.#read += events.length + missed
    const shownEvents =
      this.#endpointId === null ? events : events.filter(event => event.endpointId === this.#endpointId)
    return { events: shownEvents, missed }
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>(resolve => {
      const cancel = this.#clock.after(ms, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
    this.#wake = () => {}
  }
}
