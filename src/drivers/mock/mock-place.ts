/** The place of a worker on a mock platform, which places workers by itself. */
import type { Reclaim, ReportedPlace, WaitForPlace } from '../../core/workers/platform-report.ts'
import type { Observation } from '../../ports/driver.ts'

/** Where a worker of a mock platform is at its start: a place, or what it waits for. */
export type MockArrival = ReportedPlace | WaitForPlace

/** Where a worker is, and whether its platform is about to take it away. */
export class MockPlace {
  #waits: WaitForPlace | null
  #place: ReportedPlace | null
  #leaves: Reclaim | null = null
  readonly #placed = Promise.withResolvers<void>()

  constructor(arrival: MockArrival) {
    this.#place = 'node' in arrival ? arrival : null
    this.#waits = 'node' in arrival ? null : arrival
    if (this.#place !== null) this.#placed.resolve()
  }

  /** Whether it has no place yet. */
  get isWaiting(): boolean {
    return this.#place === null
  }

  /** Resolves when it has a place, or has ended without one. */
  whenSettled(): Promise<void> {
    return this.#placed.promise
  }

  /** It waits for something else now. Does nothing once it has a place. */
  wait(reason: WaitForPlace): void {
    if (this.isWaiting) this.#waits = reason
  }

  /** It gets a place. */
  arrive(place: ReportedPlace): void {
    this.#place ??= place
    this.#waits = null
    this.#placed.resolve()
  }

  /** Its platform is about to take it away. */
  leave(why: Reclaim): void {
    this.#leaves = why
  }

  /** It has ended, so that nobody waits for its place any more. */
  end(): void {
    this.#placed.resolve()
  }

  /** What a driver sees of it while it has not ended. */
  seen(): Observation {
    const place = this.#place === null ? {} : { place: this.#place }
    if (this.#leaves !== null) return { state: 'leaving', why: this.#leaves, ...place }
    return this.#waits === null ? { state: 'running', ...place } : { state: 'unplaced', reason: this.#waits }
  }
}
