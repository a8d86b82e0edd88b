/** The time of the server: ages and ranges are counted by it, since the clock of a browser may be wrong. */
import { signal } from '@preact/signals'

/** Difference below which the two clocks count as equal: `Date` has whole seconds, and responses take time. */
const TOLERANCE_MS = 3_000

/** The clock of the server, as far as its responses show it. */
export class ServerClock {
  readonly #local
  #offsetMs = 0

  /** @param local milliseconds since 1970 by the clock of the browser */
  constructor(local: () => number) {
    this.#local = local
  }

  /** Milliseconds since 1970. */
  now(): number {
    return this.#local() + this.#offsetMs
  }

  /**
   * Takes the time from a response that has just come; one without a date changes nothing.
   * @returns true if the time of this clock jumps
   */
  note({ headers }: Pick<Response, 'headers'>): boolean {
    const serverMs = Date.parse(headers.get('date') ?? '')
    if (Number.isNaN(serverMs)) return false
    const previousMs = this.#offsetMs
    const foundMs = serverMs - this.#local()
    if (Math.abs(foundMs) < TOLERANCE_MS) this.#offsetMs = 0
    else if (Math.abs(foundMs - this.#offsetMs) >= TOLERANCE_MS) this.#offsetMs = foundMs
    return this.#offsetMs !== previousMs
  }
}

const clock = new ServerClock(() => Date.now())

/** Milliseconds since 1970 by the clock of the server. */
export const serverNow = () => clock.now()

/** The present time of the server, updated each second while the page is visible. Ages are counted by it. */
export const now = signal(serverNow())

/** Takes the clock of the server from a response that has just come. */
export function noteServerDate(response: Response): void {
  if (clock.note(response)) now.value = serverNow()
}

// Tests use these functions without a page.
if (typeof document !== 'undefined') {
  setInterval(() => {
    if (!document.hidden) now.value = serverNow()
  }, 1_000)
}
