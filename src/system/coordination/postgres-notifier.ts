import type { Notifier, Topic } from '../../ports/notifier.ts'
import { type PostgresWatch, watchPostgres } from '../../store/engines/postgres-watch.ts'

/** Options of {@link createPostgresNotifier}. */
export interface PostgresNotifierOptions {
  /** The database. */
  readonly url: string
  /** Notifies within this process. */
  readonly local: Notifier
  /** Called once per outage with the reason why the database cannot be reached. */
  readonly onError?: (error: unknown) => void
}

/** A notifier that has a connection. */
export interface PostgresNotifier extends Notifier {
  /** Resolves when it is first connected. */
  readonly ready: Promise<void>
  close(): Promise<void>
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000

/**
 * Notifications within this process, which do not depend on the database: only one server acts on it (ADR 57). After a
 * loss of the connection it wakes each listener once, since a commit whose answer was lost notifies nobody.
 */
export function createPostgresNotifier(options: PostgresNotifierOptions): PostgresNotifier {
  const { local } = options
  const subscribed = new Map<Topic, number>()
  const link = new Link(options, () => {
    for (const topic of subscribed.keys()) local.publish(topic)
  })
  return {
    ready: link.ready,
    publish: topic => local.publish(topic),
    subscribe(topic, listener) {
      subscribed.set(topic, (subscribed.get(topic) ?? 0) + 1)
      const unsubscribe = local.subscribe(topic, listener)
      let done = false
      return () => {
        unsubscribe()
        if (done) return
        done = true
        const subscriptions = (subscribed.get(topic) ?? 1) - 1
        if (subscriptions === 0) subscribed.delete(topic)
        else subscribed.set(topic, subscriptions)
      }
    },
    close: () => link.close(),
  }
}

/** Connection to the database, made again after each loss. */
class Link {
  readonly ready: Promise<void>
  readonly #options
  readonly #onReturn
  readonly #ready = Promise.withResolvers<void>()
  #watch: PostgresWatch | null = null
  #connecting: Promise<void>
  #timer: NodeJS.Timeout | undefined
  #pauseMs = FIRST_PAUSE_MS
  #wasReady = false
  #closed = false

  /** @param onReturn called when the connection is back after a loss */
  constructor(options: PostgresNotifierOptions, onReturn: () => void) {
    this.#options = options
    this.#onReturn = onReturn
    this.ready = this.#ready.promise
    this.#connecting = this.#connect()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#connecting
    const watch = this.#watch
    this.#watch = null
    await watch?.close()
  }

  async #connect(): Promise<void> {
    try {
      const watch = await watchPostgres(this.#options.url, () => this.#lost())
      if (this.#closed) return await watch.close()
      this.#watch = watch
    } catch (error) {
      return this.#again(error)
    }
    this.#pauseMs = FIRST_PAUSE_MS
    this.#ready.resolve()
    if (this.#wasReady) this.#onReturn()
    this.#wasReady = true
  }

  #lost(): void {
    this.#watch = null
    this.#again(new Error('the connection that watches PostgreSQL was lost'))
  }

  #again(error: unknown): void {
    if (this.#closed) return
    if (this.#pauseMs === FIRST_PAUSE_MS) this.#options.onError?.(error)
    this.#timer = setTimeout(() => {
      this.#connecting = this.#connect()
    }, this.#pauseMs)
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
  }
}
