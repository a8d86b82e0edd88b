import type { Caller } from '../../core/accounts/permission.ts'
import type { KeyId } from '../../core/ids.ts'
import { countKeyRequest, countsAt, type KeyCounts, type KeyDecision } from '../../core/key-limits.ts'
import type { Emit, Events } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'

const DAY_MS = 86_400_000
/** Limit of keys in memory; past it those whose minute is over are forgotten, and read again. */
const MAX_KEYS = 10_000

/** Counts of one key. */
interface Kept {
  counts: KeyCounts
  /** Resolves once the tokens of the day are known. */
  readonly known: Promise<void>
}

/**
 * Counts the requests and the tokens of keys that have limits. Requests are counted when they come, tokens when their
 * answer has ended. The tokens of a day are those of the store and what came since; a minute begins empty after a
 * start of the server.
 */
export class KeyLimiter {
  readonly #ports
  readonly #keys = new Map<KeyId, Kept>()

  constructor(ports: Pick<Ports, 'store' | 'clock'>) {
    this.#ports = ports
  }

  /** A sink of the event stream. */
  readonly emit: Emit = (name, fields) => {
    if (name === 'tokens.used') this.#add(fields as Events['tokens.used'])
  }

  /**
   * Counts a request of a caller whose key has limits, or refuses it.
   * @throws AppError `unavailable` if the store cannot be read
   */
  async decide({ owner, keyId, limits = {} }: Caller): Promise<KeyDecision> {
    let kept = this.#keys.get(keyId)
    if (kept === undefined) {
      this.#forget()
      const begun: Kept = { counts: countsAt(null, this.#ports.clock.now()), known: Promise.resolve() }
      kept = { ...begun, known: this.#read(owner, keyId) }
      this.#keys.set(keyId, kept)
    }
    await kept.known
    const present = this.#keys.get(keyId) ?? kept
    const decision = countKeyRequest(limits, present.counts, this.#ports.clock.now())
    present.counts = decision.counts
    return decision
  }

  #add({ keyId, usage }: Events['tokens.used']): void {
    const kept = keyId === null ? undefined : this.#keys.get(keyId)
    if (kept !== undefined && usage !== null) this.#count(kept, usage.promptTokens + usage.completionTokens)
  }

  #count(kept: Kept, tokens: number): void {
    const counts = countsAt(kept.counts, this.#ports.clock.now())
    const { minuteTokens, dayTokens } = counts
    kept.counts = { ...counts, minuteTokens: minuteTokens + tokens, dayTokens: dayTokens + tokens }
  }

  /** Adds the tokens of the day that the store has. */
  async #read(owner: Caller['owner'], keyId: KeyId): Promise<void> {
    const { dayMs } = countsAt(null, this.#ports.clock.now())
    try {
      const { sums } = await this.#ports.store.usage.tokens({ owner, keyId, bounds: [dayMs, dayMs + DAY_MS] })
      const kept = this.#keys.get(keyId)
      if (kept === undefined) return
      const counts = countsAt(kept.counts, this.#ports.clock.now())
      if (counts.dayMs !== dayMs) return
      const stored = sums.reduce((sum, { figures }) => sum + figures.promptTokens + figures.completionTokens, 0)
      kept.counts = { ...counts, dayTokens: counts.dayTokens + stored }
    } catch (error) {
      this.#keys.delete(keyId)
      throw error
    }
  }

  #forget(): void {
    if (this.#keys.size < MAX_KEYS) return
    const { minuteMs } = countsAt(null, this.#ports.clock.now())
    for (const [id, { counts }] of this.#keys) if (counts.minuteMs < minuteMs) this.#keys.delete(id)
  }
}
