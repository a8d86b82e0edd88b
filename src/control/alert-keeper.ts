import { ALERT_TIMES } from '../core/alerts/alert.ts'
import type { OwnerId } from '../core/ids.ts'
import { earliest } from '../core/scaling/plan.ts'
import type { Alerts } from '../services/alerts/alerts.ts'
import { mapConcurrently } from '../services/map-concurrently.ts'

/** Owners that are read at once. */
const OWNERS = 100
/** Due messages that are read, one of each receiver, and those of them that are sent at once. */
const DUE = { read: 1_000, atOnce: 20, ofOwner: 4 } as const

/** Looks at the endpoints of accounts that have receivers of alerts, and sends the messages. */
export class AlertKeeper {
  readonly #alerts
  readonly #ending = new AbortController()
  #nextLookMs = 0

  constructor(alerts: Alerts) {
    this.#alerts = alerts
  }

  /** One step of the loop. A slow receiver holds the next one up by 20 s at most. */
  async step(nowMs: number): Promise<number | null> {
    if (nowMs >= this.#nextLookMs) {
      this.#nextLookMs = nowMs + ALERT_TIMES.lookMs
      await this.#look()
    }
    await this.#send()
    return earliest([this.#nextLookMs, await this.#alerts.nextDue()])
  }

  /** Gives up open calls; the messages are sent by the next server. */
  end(): void {
    this.#ending.abort()
  }

  async #look(): Promise<void> {
    let after = ''
    for (;;) {
      const owners = await this.#alerts.owners(after, OWNERS)
      for (const owner of owners) await this.#alerts.look(owner)
      if (owners.length < OWNERS || this.#ending.signal.aborted) return
      after = owners.at(-1)!
    }
  }

  async #send(): Promise<void> {
    const counts = new Map<OwnerId, number>()
    const chosen = (await this.#alerts.due(DUE.read)).filter(({ message: { owner } }) => {
      const count = (counts.get(owner) ?? 0) + 1
      counts.set(owner, count)
      return count <= DUE.ofOwner
    })
    const { signal } = this.#ending
    await mapConcurrently(chosen.slice(0, DUE.atOnce), DUE.atOnce, due => this.#alerts.deliver(due, signal))
  }
}
