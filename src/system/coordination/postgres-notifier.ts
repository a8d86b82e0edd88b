import type { Notifier, Topic } from '../../ports/notifier.ts'
import { type Channel, MAX_MESSAGE_BYTES, openChannel } from '../../store/engines/postgres-channel.ts'

/** Options of {@link createPostgresNotifier}. */
export interface PostgresNotifierOptions {
  /** The database. */
  readonly url: string
  /** Notifies within this process. */
  readonly local: Notifier
  /** Called once per outage with the reason why the others cannot be reached. */
  readonly onError?: (error: unknown) => void
}

/** A notifier that has a connection. */
export interface PostgresNotifier extends Notifier {
  /** Resolves when it first listens. */
  readonly ready: Promise<void>
  close(): Promise<void>
}

const CHANNEL = 'runyard'
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
/** Limit of topics that wait for the others while they cannot be reached. */
const MAX_PENDING = 10_000

/**
 * Notifications within this process, and to and from all others on the same database. Those within do not depend on
 * the database. After a loss of the connection it wakes each listener once, since notifications of others may be
 * lost.
 */
export function createPostgresNotifier(options: PostgresNotifierOptions): PostgresNotifier {
  const { local } = options
  const subscribed = new Map<Topic, number>()
  const link = new Link(options, {
    received: topic => local.publish(topic as Topic),
    missed: () => {
      for (const topic of subscribed.keys()) local.publish(topic)
    },
  })
  return {
    ready: link.ready,
    publish(topic) {
      local.publish(topic)
      link.send(topic)
    },
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

/** Connection to the others. */
class Link {
  readonly ready: Promise<void>
  readonly #options
  readonly #on: { readonly received: (topic: string) => void; readonly missed: () => void }
  readonly #ready = Promise.withResolvers<void>()
  readonly #pending = new Set<string>()
  #channel: Channel | null = null
  #connecting: Promise<void>
  #timer: NodeJS.Timeout | undefined
  #pauseMs = FIRST_PAUSE_MS
  #sending = false
  #wasReady = false
  #closed = false

  constructor(options: PostgresNotifierOptions, on: { received: (topic: string) => void; missed: () => void }) {
    this.#options = options
    this.#on = on
    this.ready = this.#ready.promise
    this.#connecting = this.#connect()
  }

  send(topic: string): void {
    if (this.#closed || Buffer.byteLength(topic) > MAX_MESSAGE_BYTES) return
    if (this.#pending.size >= MAX_PENDING) this.#pending.clear()
    this.#pending.add(topic)
    if (this.#sending) return
    this.#sending = true
    queueMicrotask(() => void this.#flush())
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#connecting
    const channel = this.#channel
    this.#channel = null
    await channel?.close()
  }

  /** Sends the waiting topics; the rest stays for the next connection. */
  async #flush(): Promise<void> {
    while (this.#channel !== null && this.#pending.size > 0) {
      const topics = [...this.#pending]
      this.#pending.clear()
      try {
        await this.#channel.send(topics)
      } catch {
        for (const topic of topics) this.#pending.add(topic)
      }
    }
    this.#sending = false
  }

  async #connect(): Promise<void> {
    try {
      const lost = () => this.#lost()
      const channel = await openChannel(this.#options.url, CHANNEL, { message: this.#on.received, lost })
      if (this.#closed) return await channel.close()
      this.#channel = channel
    } catch (error) {
      return this.#again(error)
    }
    this.#pauseMs = FIRST_PAUSE_MS
    this.#ready.resolve()
    if (this.#wasReady) this.#on.missed()
    this.#wasReady = true
    if (!this.#sending) {
      this.#sending = true
      void this.#flush()
    }
  }

  #lost(): void {
    this.#channel = null
    this.#again(new Error('the connection to PostgreSQL for notifications was lost'))
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
