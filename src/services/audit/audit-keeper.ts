import { type AuditDetail, type AuditOrigin, type AuditRules, SERVER_ORIGIN } from '../../core/audit/entry.ts'
import type { Emit, Events } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'
import type { AuditLog } from './audit-log.ts'

/** Attempts of one caller that were refused for one reason, since they were written last. */
interface Refusals {
  readonly operation: string
  readonly origin: AuditOrigin
  readonly problem: string
  count: number
}

/**
 * Strangers cannot fill the log: so many entries at once, one more in each interval, a million in a year. Callers beyond `callers` that wait to be
 * written are counted together.
 */
const BUDGET = { entries: 20, refillMs: 30_000, callers: 200 }
/** Entries that one step removes. */
const REMOVED = 500

/** Looks after the audit log: writes what was refused, ends what could not be written as ended, and removes what is past its retention. */
export class AuditKeeper {
  readonly #ports: Pick<Ports, 'store' | 'clock'>
  readonly #log: AuditLog
  readonly #rules: AuditRules
  readonly #refusals = new Map<string, Refusals>()
  #budget = BUDGET.entries
  #filledAtMs: number

  constructor(ports: Pick<Ports, 'store' | 'clock'>, log: AuditLog, rules: AuditRules) {
    this.#ports = ports
    this.#log = log
    this.#rules = rules
    this.#filledAtMs = ports.clock.monotonic()
  }

  /** A reader of the events: those of refused attempts are counted. */
  readonly emit: Emit = (name, fields) => {
    if (name === 'right.refused') {
      const { account, keyId, right } = fields as Events['right.refused']
      this.#count({
        operation: 'useKey',
        origin: { ...SERVER_ORIGIN, account, keyId },
        problem: `no right ${right}`,
        count: 1,
      })
    } else if (name === 'key.failed') {
      const { address, reason, count } = fields as Events['key.failed']
      this.#count({ operation: 'useKey', origin: { ...SERVER_ORIGIN, address }, problem: `key ${reason}`, count })
    }
  }

  /** Does what is due. @returns whether there is more to remove */
  async step(nowMs: number): Promise<boolean> {
    await this.#log.settle()
    await this.flush()
    const { keptMs, maxEntries } = this.#rules
    return (await this.#ports.store.audit.removeOld(nowMs - keptMs, maxEntries, REMOVED)) === REMOVED
  }

  /** Writes as much of what was refused as the budget allows; the rest goes on being counted. */
  async flush(): Promise<void> {
    const nowMs = this.#ports.clock.monotonic()
    const filled = Math.floor((nowMs - this.#filledAtMs) / BUDGET.refillMs)
    this.#filledAtMs += filled * BUDGET.refillMs
    this.#budget = Math.min(BUDGET.entries, this.#budget + filled)
    for (const [key, refusals] of this.#refusals) {
      if (this.#budget === 0) return
      this.#budget -= 1
      this.#refusals.delete(key)
      const { operation, origin, problem, count } = refusals
      const detail: AuditDetail = { attempts: count }
      try {
        await this.#log.refused({ surface: 'server', operation, origin, object: null, detail }, problem)
      } catch {
        this.#count(refusals)
        return
      }
    }
  }

  #count(refusals: Refusals): void {
    const { operation, origin, problem, count } = refusals
    const key = JSON.stringify([origin, problem])
    const isNew = !this.#refusals.has(key)
    const others = isNew && this.#refusals.size >= BUDGET.callers
    const found = this.#refusals.get(others ? '' : key)
    if (found !== undefined) found.count += count
    else if (others) this.#refusals.set('', { operation, origin: SERVER_ORIGIN, problem: 'of many callers', count })
    else this.#refusals.set(key, { operation, origin, problem, count })
  }
}
