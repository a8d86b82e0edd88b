import { AppError } from '../../core/errors.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Access } from '../../services/accounts/access.ts'

/** For so long a text that was no key is taken for none. */
const FRESH_MS = 10_000
/** The same while the store is away. */
const STALE_MS = 300_000
const MAX_ENTRIES = 1_000

/**
 * Tells our keys from the tokens of applications, in requests that need no key. What is ours does not go on to a worker,
 * the others do; those come with each request, so they are remembered.
 */
export class ApiKeyFilter {
  readonly #ports: Pick<Ports, 'clock' | 'vault'>
  readonly #access: Pick<Access, 'authenticate'>
  /** When each was found to be none, by its hash. */
  readonly #rejectedAtMs = new Map<string, number>()

  constructor(ports: Pick<Ports, 'clock' | 'vault'>, access: Pick<Access, 'authenticate'>) {
    this.#ports = ports
    this.#access = access
  }

  /**
   * Those that are valid keys of ours.
   * @throws AppError `unavailable` when that cannot be told
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
