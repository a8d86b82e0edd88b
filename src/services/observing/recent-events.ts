import type { LiveEvent } from './live-event.ts'

/** Number of events that are kept of an account. */
export const MAX_RECENT = 2_000

/** An event with the id after which a reader continues. */
export interface NumberedEvent extends LiveEvent {
  readonly id: string
}

/** The newest events of one account, numbered from 1. */
export class RecentEvents {
  readonly #name
  readonly #listeners = new Set<() => void>()
  #events: LiveEvent[] = []
  /** Number of the newest event; 0 before the first. */
  newest = 0

  /**
   * @param name beginning of the ids, so that ids of another list, as before a restart, are not mistaken for its own
   */
  constructor(name: string) {
    this.#name = name
  }

  /** Number of kept events. */
  get size(): number {
    return this.#events.length
  }

  /** Adds an event. @returns the change in the number of kept events; negative when old ones were dropped */
  add(event: LiveEvent): number {
    const previousCount = this.#events.length
    this.#events.push(event)
    this.newest += 1
    // Drops many at once: each removal from the front moves the rest.
    if (this.#events.length >= 2 * MAX_RECENT) this.#events = this.#events.slice(-MAX_RECENT)
    for (const listener of this.#listeners) listener()
    return this.#events.length - previousCount
  }

  /** Drops all events. */
  clear(): void {
    this.#events = []
  }

  /** The id of an event by its number. */
  eventId(number: number): string {
    return `${this.#name}-${number}`
  }

  /** The number in an id; null for an id of another list. */
  numberFromId(id: string): number | null {
    const [, name, number] = /^(\w+)-(\d{1,15})$/.exec(id) ?? []
    return name === this.#name && Number(number) <= this.newest ? Number(number) : null
  }

  /**
   * The kept events after a number, and the number of those that are no longer kept.
   * @param limit maximum number of inspected events
   */
  after(number: number, limit: number): { readonly events: readonly NumberedEvent[]; readonly missed: number } {
    const droppedCount = this.newest - this.#events.length
    const start = Math.max(number, droppedCount)
    const events = this.#events.slice(start - droppedCount, start - droppedCount + limit)
    return {
      events: events.map((event, index) => ({ ...event, id: this.eventId(start + index + 1) })),
      missed: start - number,
    }
  }

  /**
   * The kept events that match, newest first.
   * @param before number of the event before which they begin; null for the newest
   */
  newestFirst(before: number | null, limit: number, matches: (event: LiveEvent) => boolean): readonly NumberedEvent[] {
    const found: NumberedEvent[] = []
    const droppedCount = this.newest - this.#events.length
    for (let number = (before ?? this.newest + 1) - 1; number > droppedCount && found.length < limit; number -= 1) {
      const event = this.#events[number - droppedCount - 1]!
      if (matches(event)) found.push({ ...event, id: this.eventId(number) })
    }
    return found
  }

  /** Calls `listener` at each new event until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
