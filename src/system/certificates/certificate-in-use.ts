/** The certificate of a server, which follows its files: programs that renew certificates only write them. */
import { toAppError } from '../../core/errors.ts'
import type { Emit } from '../../events.ts'
import type { CertificateFacts, KeyPair } from './key-pair.ts'

/** Interval of reads of the files. */
const LOOK_MS = 2_000

/** Reads the pair for new connections. @throws AppError with a sentence without a usable pair */
export type ReadPair = () => Promise<KeyPair>

/** A certificate that is replaced without a pause. */
export class CertificateInUse {
  readonly #read
  readonly #watchers = new Set<(pair: KeyPair) => void>()
  /** Watchers that did not receive the current pair, or could not take it, as on a full disk. */
  #unreached: readonly ((pair: KeyPair) => void)[] = []
  #current: KeyPair
  #emit: Emit = () => {}
  /** The last reported problem of a pair, so that it is reported once. */
  #problem: string | null = null
  #timer: NodeJS.Timeout | null = null
  #looking: Promise<void> | null = null

  private constructor(read: ReadPair, first: KeyPair) {
    this.#read = read
    this.#current = first
  }

  /** @throws AppError without a usable pair */
  static async open(read: ReadPair): Promise<CertificateInUse> {
    return new CertificateInUse(read, await read())
  }

  /** The pair for new connections. */
  get current(): KeyPair {
    return this.#current
  }

  /** Calls back with each pair that replaces the current one. @returns ends the calls */
  watch(changed: (pair: KeyPair) => void): () => void {
    this.#watchers.add(changed)
    return () => {
      this.#watchers.delete(changed)
      this.#unreached = this.#unreached.filter(untold => untold !== changed)
    }
  }

  /** Reports the certificate in use, and follows its files from now on. */
  follow(emit: Emit): void {
    this.#emit = emit
    emit('tls.loaded', loggedFields(this.#current.about))
    this.#timer = setInterval(() => void this.look(), LOOK_MS).unref()
  }

  /** Reads the files now. A pair that cannot be used has no effect: it may be half written. Never throws. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  /** Stops following the files. */
  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    try {
      const pair = await this.#read()
      const isNew = pair.cert !== this.#current.cert || pair.key !== this.#current.key
      this.#current = pair
      if (isNew) this.#unreached = [...this.#watchers]
      if (isNew) this.#emit('tls.reloaded', loggedFields(pair.about))
      this.#callWatchers()
      this.#problem = null
    } catch (error) {
      const problem = toAppError(error).message
      if (problem === this.#problem) return
      this.#problem = problem
      this.#emit('tls.problem', { problem, ...loggedFields(this.#current.about) })
    }
  }

  /**
   * One that cannot take the pair keeps it from no other, and is called again at the next look.
   * @throws the first error of a watcher
   */
  #callWatchers(): void {
    const problems: unknown[] = []
    this.#unreached = this.#unreached.filter(changed => {
      try {
        changed(this.#current)
        return false
      } catch (problem) {
        problems.push(problem)
        return true
      }
    })
    if (problems.length > 0) throw problems[0]
  }
}

function loggedFields({ subject, names, expiresAtMs, fingerprint }: CertificateFacts) {
  return { subject, names, expiresAt: new Date(expiresAtMs).toISOString(), fingerprint }
}
