/**
 * Follows all objects of a kind: a list in pages, then the events since it, and another list whenever the events
 * no longer exist. A list is the truth; events may be missed, repeated or out of order.
 */
import type { Clock } from '../../ports/clock.ts'
import { joinSignals } from '../../ports/signals.ts'
import { LoopPause } from '../base/loop-pause.ts'
import { type KubernetesApi, KubernetesError, type KubernetesObject, kubernetesError, type ObjectList } from './api.ts'

/** Options of {@link ListWatch}. */
export interface ListWatchOptions<Item extends KubernetesObject> {
  readonly api: KubernetesApi
  readonly clock: Clock
  /** As `/api/v1/namespaces/default/pods`. */
  readonly path: string
  /** Selection of the objects, as `labelSelector`. */
  readonly query: Readonly<Record<string, string>>
  /** `all` begins with the existing objects, `new` with later ones. */
  readonly from: 'all' | 'new'
  /** A page of all existing objects. A list that breaks off begins again. */
  readonly onPage: (page: ListedPage<Item>) => void
  readonly onEvent: (type: WatchEventType, item: Item) => void
  /** Called at each change: null once the API answers, else its message or that of the network. */
  readonly onAway: (problem: string | null) => void
}

/** Some of the objects of a list, which may be too many to have all of them in memory. */
export interface ListedPage<Item> {
  readonly items: readonly Item[]
  readonly isFirst: boolean
  readonly isLast: boolean
}

/** A change of an object. */
export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED'

interface WatchEvent<Item> {
  readonly type?: WatchEventType | 'BOOKMARK' | 'ERROR'
  readonly object?: Item & { readonly code?: number; readonly message?: string; readonly reason?: string }
}

const PAGE = '500'
/** A watch is asked to end after this time, so that a list follows that shows what was missed. */
const WATCH_S = 300
/** Something comes every minute, since bookmarks are asked for; without it the connection is taken for dead. */
const SILENCE_MS = 90_000
const RETRY_MS = { first: 500, most: 10_000 }
const MAX_LINE_BYTES = 8 * 1024 * 1024

/** Follows the objects until it is closed. */
export class ListWatch<Item extends KubernetesObject> {
  readonly #options
  readonly #closed = new AbortController()
  /** The version from which the events go on; null where a list has to come first. */
  #version: string | null = null
  #listedMs = Number.NEGATIVE_INFINITY
  #problem: string | null | undefined = undefined
  readonly #pause

  constructor(options: ListWatchOptions<Item>) {
    this.#options = options
    this.#pause = new LoopPause(options.clock)
    void this.#live()
  }

  /** Looks again at once, where it waits because the API was away. */
  hurry(): void {
    this.#pause.wake()
  }

  /** Ends it; no listener is called after that. */
  close(): void {
    this.#closed.abort()
    this.#pause.close()
  }

  async #live(): Promise<void> {
    let waitMs: number = RETRY_MS.first
    while (!this.#closed.signal.aborted) {
      try {
        if (this.#version === null || this.#age() >= WATCH_S * 1000) await this.#list()
        if (await this.#watch()) waitMs = RETRY_MS.first
      } catch (thrown) {
        if (this.#closed.signal.aborted) return
        const error = kubernetesError(thrown)
        const isStale = error.status === 410
        if (isStale) this.#version = null
        else this.#reportProblem(error.message)
        await this.#pause.wait(Math.max(waitMs, error.retryAfterMs))
        waitMs = Math.min(waitMs * 2, RETRY_MS.most)
      }
    }
  }

  #age(): number {
    return this.#options.clock.monotonic() - this.#listedMs
  }

  async #list(): Promise<void> {
    const { api, path, query, from, clock, onPage } = this.#options
    const listedMs = clock.monotonic()
    let next = ''
    let version = ''
    let isFirst = true
    do {
      const page: ObjectList<Item> = await api.call({
        method: 'GET',
        path,
        query: { ...query, limit: from === 'new' ? '1' : PAGE, ...(next === '' ? {} : { continue: next }) },
        signal: this.#closed.signal,
      })
      if (this.#closed.signal.aborted) return
      next = from === 'new' ? '' : (page.metadata?.continue ?? '')
      version = page.metadata?.resourceVersion ?? version
      if (from === 'all') onPage({ items: page.items ?? [], isFirst, isLast: next === '' })
      isFirst = false
    } while (next !== '')
    this.#version = version
    this.#listedMs = listedMs
    this.#reportProblem(null)
  }

  /** Reads events until the API ends the watch. @returns true if it lasted for a while, or an event came */
  async #watch(): Promise<boolean> {
    const { api, clock, path, query } = this.#options
    const stop = new AbortController()
    using either = joinSignals(stop.signal, this.#closed.signal)
    let silent = false
    const listen = () =>
      clock.after(SILENCE_MS, () => {
        silent = true
        stop.abort()
      })
    let cancel = listen()
    const startedMs = clock.monotonic()
    let count = 0
    try {
      const stream = await api.stream({
        method: 'GET',
        path,
        query: {
          ...query,
          watch: 'true',
          allowWatchBookmarks: 'true',
          resourceVersion: this.#version ?? '',
          timeoutSeconds: String(WATCH_S),
        },
        signal: either.signal,
      })
      this.#reportProblem(null)
      try {
        for await (const line of readLines(stream)) {
          cancel()
          cancel = listen()
          count += 1
          if (this.#closed.signal.aborted) return true
          this.#read(line)
        }
      } finally {
        stream.destroy()
      }
    } catch (thrown) {
      // Nothing came: the connection may no longer lead anywhere.
      if (silent && !this.#closed.signal.aborted) return false
      throw thrown
    } finally {
      cancel()
    }
    const lasted = clock.monotonic() - startedMs >= RETRY_MS.most
    // An API that ends each watch at once must not be asked in a circle.
    if (count === 0 && !lasted) await this.#pause.wait(RETRY_MS.first)
    return count > 0 || lasted
  }

  #read(line: string): void {
    const { type, object } = JSON.parse(line) as WatchEvent<Item>
    if (object === undefined || type === undefined) return
    if (type === 'ERROR') {
      throw new KubernetesError(object.message ?? 'the watch failed', object.code ?? 500, {
        reason: object.reason ?? '',
      })
    }
    this.#version = object.metadata?.resourceVersion ?? this.#version
    if (type !== 'BOOKMARK') this.#options.onEvent(type, object)
  }

  #reportProblem(problem: string | null): void {
    if (this.#problem === problem || this.#closed.signal.aborted) return
    this.#problem = problem
    this.#options.onAway(problem)
  }
}

/** The lines of a stream, without empty ones. @throws KubernetesError for a line that is too long */
export async function* readLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream) {
    let lineStart = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, lineStart)) {
      const line = Buffer.concat([...rest, chunk.subarray(lineStart, end)]).toString('utf8')
      rest = []
      length = 0
      lineStart = end + 1
      if (line.trim() !== '') yield line
    }
    if (lineStart === chunk.length) continue
    rest.push(chunk.subarray(lineStart))
    length += chunk.length - lineStart
    if (length > MAX_LINE_BYTES) throw new KubernetesError('an event is too large', null)
  }
}
