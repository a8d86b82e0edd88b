import { AppError } from '../../core/errors.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Access } from '../../services/accounts/access.ts'

/** Time for which a text that was not a valid key is not checked again, in milliseconds. */
const FRESH_MS = 10_000
/** The same while the store is unavailable, in milliseconds. */
const STALE_MS = 300_000
const MAX_ENTRIES = 1_000

/**
 * Separates Runyard's API keys from the tokens of applications in requests to open endpoints. API keys are not
 * forwarded to workers, tokens are. A token comes with each request, so its rejection as a key is cached for a while.
 */
export class ApiKeyFilter {
  readonly #ports
  readonly #access
  /** Time of the rejection of each text, by its hash. */
  readonly #rejectedAtMs = new Map<string, number>()

  constructor(ports: Ports, access: Pick<Access, 'authenticate'>) {
    this.#ports = ports
    this.#access = access
  }

  /**
   * The texts that are valid API keys.
   * @throws AppError `unavailable` if the store cannot be read and a text was not checked recently
   */
  async validKeysAmong(texts: readonly string[]): Promise<ReadonlySet<string>> {
    const valid = new Set<string>()
    for (const text of texts) if (await this.#isValidKey(text)) valid.add(text)
    return valid
  }

  async #isValidKey(text: string): Promise<boolean> {
    const { clock, vault } = this.#ports
    const hash = vault.hash(text)
    const ageMs = clock.monotonic() - (this.#rejectedAtMs.get(hash) ?? Number.NEGATIVE_INFINITY)
    if (ageMs < FRESH_MS) return false
    try {
      await this.#access.authenticate(text)
      return true
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (error.code === 'unavailable' && ageMs < STALE_MS) return false
      if (error.code !== 'unauthorized') throw error
    }
    if (this.#rejectedAtMs.size >= MAX_ENTRIES) this.#rejectedAtMs.clear()
    this.#rejectedAtMs.set(hash, clock.monotonic())
    return false
  }
}
