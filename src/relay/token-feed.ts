/** The server's side of the relay's tokens: sends the whole list first, then changes. */
import type { TokenUpdate } from './known-tokens.ts'

/** Workers in one message to the relay. */
const PAGE_SIZE = 1_000
/** Limit of collected changes; with more of them the whole list is sent again. */
const MAX_CHANGES = 10_000
/** Interval between attempts. */
const PAUSE_MS = 1_000

/** A worker as a relay knows it. */
export interface LiveToken {
  readonly id: string
  readonly owner: string
  readonly tokenHash: string
  readonly ended: boolean
}

/** Reads tokens of workers. */
export interface TokenSource {
  /** At most `limit` workers that have not ended, by their ids, after an id. */
  listLive(after: string, limit: number): Promise<LiveToken[]>
  /** The workers with these ids, ended or not. */
  listByIds(ids: readonly string[]): Promise<LiveToken[]>
}

/** Sends the tokens of workers to a relay. */
export class TokenFeed {
  readonly #send
  readonly #onError
  #source: TokenSource | null = null
  #changed = new Set<string>()
  #all = false
  #running: Promise<void> | null = null
  #closed = false

  /**
   * @param send sends one part to the relay
   * @param onError called for each failed attempt; another one follows
   */
  constructor(send: (update: TokenUpdate) => Promise<void>, onError: (error: unknown) => void) {
    this.#send = send
    this.#onError = onError
  }

  /** Sends the whole list. Resolves after the first attempt. */
  async start(source: TokenSource): Promise<void> {
    this.#source = source
    await this.restart()
  }

  /** Sends the whole list again, to another relay. Resolves after the first attempt. */
  restart(): Promise<void> {
    this.#all = true
    return this.#go()
  }

  /** Records that a worker was created or has ended. */
  changed(id: string): void {
    if (this.#changed.size < MAX_CHANGES) this.#changed.add(id)
    else this.#all = true
    if (this.#source !== null) void this.#go()
  }

  /** Sends nothing more. */
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
        if (this.#all) await this.#sendAll()
        else await this.#sendChanges()
      } catch (error) {
        this.#onError(error)
        this.#all = true
        setTimeout(() => void this.#go(), PAUSE_MS).unref()
        return
      }
    }
  }

  async #sendAll(): Promise<void> {
    this.#all = false
    this.#changed.clear()
    let after = ''
    for (let first = true; ; first = false) {
      const page = await this.#source!.listLive(after, PAGE_SIZE)
      const last = page.length < PAGE_SIZE
      await this.#send({ first, last, live: page.map(tokenPair), ended: [] })
      if (last) return
      after = page.at(-1)!.id
    }
  }

  async #sendChanges(): Promise<void> {
    const ids = [...this.#changed].slice(0, PAGE_SIZE)
    for (const id of ids) this.#changed.delete(id)
    const workers = await this.#source!.listByIds(ids)
    const live = workers.filter(({ ended }) => !ended).map(tokenPair)
    const ended = workers.filter(worker => worker.ended).map(({ tokenHash }) => tokenHash)
    if (workers.length > 0) await this.#send({ first: false, last: false, live, ended })
  }
}

function tokenPair({ tokenHash, owner }: LiveToken): readonly [string, string] {
  return [tokenHash, owner]
}
