import { type AuditDetail, type AuditOrigin, type AuditRules, SERVER_ORIGIN } from '../../core/audit/entry.ts'
import { fairShare } from '../../core/fair-share.ts'
import type { Emit, Events } from '../../events.ts'
import type { AuditHeadNote } from '../../ports/audit-head.ts'
import type { Ports } from '../../ports/ports.ts'
import type { AuditLog } from './audit-log.ts'
import { problemOfNote } from './audit-reader.ts'

/** Refused attempts of one caller at one operation for one reason, since the last entry about them. */
interface Attempts {
  readonly operation: string
  readonly origin: AuditOrigin
  readonly problem: string
  count: number
}

/**
 * Limits of entries about refusals, so that they neither fill the log nor push other entries out: `entries` at once,
 * and one more after each `refillMs`, or longer in a short log. Of all kept entries, refusals of one kind leave
 * `left` to others. Attempts beyond `waiting` that wait to be written are counted together.
 */
const BUDGET = { entries: 20, refillMs: 30_000, left: 4 / 5, waiting: 200 }
/** Entries that one step removes. */
const REMOVED = 500

/**
 * Maintains the audit log: writes refused attempts, ends entries whose end could not be written, and removes entries
 * past their retention.
 */
export class AuditKeeper {
  readonly #ports
  readonly #log
  readonly #rules
  readonly #note
  /** Attempts of strangers have a budget of their own. */
  readonly #ofStrangers
  readonly #ofKeys

  /** @param note place for the head of the log; null to note it nowhere */
  constructor(ports: Ports, log: AuditLog, rules: AuditRules, note: AuditHeadNote | null = null) {
    this.#note = note

    this.#ports = ports
    this.#log = log
    this.#rules = rules
    this.#ofStrangers = new Refusals(rules, ports.clock.monotonic())
    this.#ofKeys = new Refusals(rules, ports.clock.monotonic())
  }

  /** A reader of the events: it counts refused attempts. */
  readonly emit: Emit = (name, fields) => {
    if (name === 'right.refused') {
      const { account, keyId, right, operation } = fields as Events['right.refused']
      const origin = { ...SERVER_ORIGIN, account, keyId }
      this.#ofKeys.add({ operation: operation ?? 'useKey', origin, problem: `no right ${right}`, count: 1 })
    } else if (name === 'key.failed') {
      const { address, reason, count } = fields as Events['key.failed']
      this.#ofStrangers.add({
        operation: 'useKey',
        origin: { ...SERVER_ORIGIN, address },
        problem: `key ${reason}`,
        count,
      })
    }
  }

  /** Does the work that is due. @returns true when more entries should be removed */
  async step(nowMs: number): Promise<boolean> {
    await this.#log.settle()
    await this.flush()
    // The note shows that the end exists; the log itself does not wait for it.
    await this.#noteHead().catch(() => {})
    const { keptMs, maxEntries } = this.#rules
    return (await this.#ports.store.audit.removeOld(nowMs - keptMs, maxEntries, REMOVED)) === REMOVED
  }

  /** A note of an entry that the log lost stays: it shows that the end was cut off. */
  async #noteHead(): Promise<void> {
    if (this.#note === null) return
    const { store } = this.#ports
    const { head } = await store.audit.ends()
    const noted = this.#note.read()
    if (noted?.sequence === head.sequence && noted.hash === head.hash) return
    if (noted === null || (await problemOfNote(store, noted)) === null) this.#note.keep(head)
  }

  /** Writes as many refused attempts as the budgets allow; the rest is counted on. */
  async flush(): Promise<void> {
    const nowMs = this.#ports.clock.monotonic()
    for (const refusals of [this.#ofKeys, this.#ofStrangers]) {
      for (const attempts of refusals.take(nowMs)) {
        const { operation, origin, problem, count } = attempts
        const detail: AuditDetail = { attempts: count }
        try {
          await this.#log.refused({ surface: 'server', operation, origin, object: null, detail }, problem)
        } catch {
          refusals.add(attempts)
        }
      }
    }
  }
}

/** Refused attempts that wait to be written, and the budget for them. */
class Refusals {
  readonly #waiting = new Map<string, Attempts>()
  readonly #refillMs: number
  readonly #most: number
  #budget: number
  #filledAtMs: number

  constructor({ keptMs, maxEntries }: AuditRules, nowMs: number) {
    const share = fairShare(maxEntries, BUDGET.left)
    this.#refillMs = Math.max(BUDGET.refillMs, Math.ceil(keptMs / share))
    this.#most = Math.min(BUDGET.entries, share)
    this.#budget = this.#most
    this.#filledAtMs = nowMs
  }

  /** Adds attempts to those of the same caller, operation and reason. */
  add(attempts: Attempts): void {
    const { operation, origin, problem, count } = attempts
    const key = JSON.stringify([origin, operation, problem])
    const isNew = !this.#waiting.has(key)
    const isOverflow = isNew && this.#waiting.size >= BUDGET.waiting
    const waiting = this.#waiting.get(isOverflow ? '' : key)
    if (waiting !== undefined) waiting.count += count
    else if (isOverflow) {
      this.#waiting.set('', { operation: 'useKey', origin: SERVER_ORIGIN, problem: 'of many callers', count })
    } else this.#waiting.set(key, { ...attempts })
  }

  /** Takes the attempts that may be written now, the longest waiting first. */
  take(nowMs: number): Attempts[] {
    const filled = Math.floor((nowMs - this.#filledAtMs) / this.#refillMs)
    this.#filledAtMs += filled * this.#refillMs
    this.#budget = Math.min(this.#most, this.#budget + filled)
    const entries = [...this.#waiting].slice(0, this.#budget)
    for (const [key] of entries) this.#waiting.delete(key)
    this.#budget -= entries.length
    return entries.map(([, attempts]) => attempts)
  }
}
