/** The server's side of what the relay knows of tokens: tells it all at the beginning, and then what changes. */
import type { TokenNews } from './known-tokens.ts'

/** Workers in one message to the relay. */
const CONCURRENCY = 1_000
/** Changes that are gathered; with more of them all are told anew. */
const MAX_CHANGES = 10_000
/** Between two tries. */
const PAUSE_MS = 1_000

/** A worker, as far as a relay has to know it. */
export interface TokenOf {
  readonly id: string
  readonly owner: string
  readonly tokenHash: string
  readonly ended: boolean
}

/** Reads tokens of workers, at most `limit` or as many as were asked for. */
export interface TokenSource {
  /** Those that have not ended, by their ids, from behind an id on. */
  live(after: string, limit: number): Promise<TokenOf[]>
  /** Those with these ids, ended or not. */
  of(ids: readonly string[]): Promise<TokenOf[]>
}

/** Tells a relay which tokens are those of workers. */
export class TokenFeed {
  readonly #tell: (news: TokenNews) => Promise<void>
  readonly #onError: (error: unknown) => void
  #source: TokenSource | null = null
  #changed = new Set<string>()
  #all = false
  #running: Promise<void> | null = null
  #closed = false

  /**
   * @param tell hands it to the relay
   * @param onError is told of each failed try; there is another one
   */
  constructor(tell: (news: TokenNews) => Promise<void>, onError: (error: unknown) => void) {
    this.#tell = tell
    this.#onError = onError
  }

  /** Tells all, now. Resolves after the first try. */
  async start(source: TokenSource): Promise<void> {
    this.#source = source
    await this.restart()
  }

  /** Tells all again: there is another relay. Resolves after the first try. */
  restart(): Promise<void> {
    this.#all = true
    return this.#go()
  }

  /** A worker was made, or has ended. */
  changed(id: string): void {
    if (this.#changed.size < MAX_CHANGES) this.#changed.add(id)
    else this.#all = true
    if (this.#source !== null) void this.#go()
  }

  /** Tells nothing more. */
  close(): void {
    this.#closed = true
  }

  #go(): Promise<void> {
    this.#running ??= this.#work().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #work(): Promise<void> {
    while (!this.#closed && (this.#all || this.#changed.size > 0)) {
      try {
        if (this.#all) await this.#tellAll()
        else await this.#tellChanges()
      } catch (error) {
        this.#onError(error)
        this.#all = true
        setTimeout(() => void this.#go(), PAUSE_MS).unref()
        return
      }
    }
  }

  async #tellAll(): Promise<void> {
    this.#all = false
    this.#changed.clear()
    let after = ''
    for (let first = true; ; first = false) {
      const page = await this.#source!.live(after, CONCURRENCY)
      const last = page.length < CONCURRENCY
      await this.#tell({ first, last, live: page.map(pairOf), ended: [] })
      if (last) return
      after = page.at(-1)!.id
    }
  }

  async #tellChanges(): Promise<void> {
    const ids = [...this.#changed].slice(0, CONCURRENCY)
    for (const id of ids) this.#changed.delete(id)
    const found = await this.#source!.of(ids)
    const live = found.filter(({ ended }) => !ended).map(pairOf)
    const ended = found.filter(worker => worker.ended).map(({ tokenHash }) => tokenHash)
    if (found.length > 0) await this.#tell({ first: false, last: false, live, ended })
  }
}

function pairOf({ tokenHash, owner }: TokenOf): readonly [string, string] {
  return [tokenHash, owner]
}
