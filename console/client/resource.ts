/** Values that a page reads from the server, kept current by events. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './api.ts'
import { Backoff } from './event-source.ts'
import { type LiveEvent, onLive } from './live.ts'
import { who } from './session.ts'

/** A value that was read. */
export interface Resource<Type> {
  /** Newest value; kept while it is read again and when that fails. Null before the first. */
  readonly data: Type | null
  readonly error: Error | null
  /** Reads again now. */
  readonly reload: () => void
}

/** Rules by which a resource stays current while the page is visible. */
export interface Freshness {
  /** True if an event means that the value may have changed; no event does unless given. */
  readonly on?: (event: LiveEvent) => boolean
  /** Reads again after this time as well. */
  readonly everyMs?: number
}

/** A first read of a value that several parts of a page show. */
interface SharedRead {
  readonly value: Promise<unknown>
  readonly end: AbortController
  /** Number of live events before it began. */
  readonly events: number
  readers: number
}
const firstReads = new Map<string, SharedRead>()
let eventCount = 0
onLive(() => {
  eventCount += 1
})

/** Reads a value, or waits for the same read that another part of the page began just now. */
function readTogether<Type>(
  key: string,
  load: (signal: AbortSignal) => Promise<Type>,
  signal: AbortSignal,
): Promise<Type> {
  const begun = firstReads.get(key)
  // An event may have changed the value since then.
  const read = begun?.events === eventCount ? begun : beginRead(key, load)
  read.readers += 1
  signal.addEventListener('abort', () => {
    read.readers -= 1
    if (read.readers === 0) read.end.abort()
  })
  return read.value as Promise<Type>
}

function beginRead(key: string, load: (signal: AbortSignal) => Promise<unknown>): SharedRead {
  const end = new AbortController()
  const value = load(end.signal)
  const read: SharedRead = { value, end, events: eventCount, readers: 0 }
  firstReads.set(key, read)
  const forget = () => firstReads.get(key) === read && firstReads.delete(key)
  value.then(forget, forget)
  end.signal.addEventListener('abort', forget)
  return read
}

/** Minimum interval between two reads. A slow read is repeated less often. */
const GAP_MS = 250
const GAP_OF_READS = 3
const MAX_CACHED = 200
/** Newest values by key, so that a page that is opened again shows something at once. */
const cache = new Map<string, unknown>()

// The next session may belong to another account.
who.subscribe(() => {
  cache.clear()
  firstReads.clear()
})

/**
 * Reads a resource while the component is mounted.
 * @param key names the value: another key is another value; null reads nothing
 */
export function useResource<Type>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<Type>,
  { on = () => false, everyMs }: Freshness = {},
): Resource<Type> {
  const [state, setState] = useState<{ key: string | null; data: Type | null; error: Error | null }>(() =>
    cachedState(key),
  )
  const latest = useRef({ load, on })
  latest.current = { load, on }
  const reload = useRef(() => {})
  useEffect(() => {
    if (key === null) return
    const session = who.peek()
    let isFirst = true
    const reader = new ResourceReader(
      signal => {
        const { load: read } = latest.current
        if (!isFirst) return read(signal)
        isFirst = false
        return readTogether(key, read, signal)
      },
      (data, error) => {
        if (who.peek() !== session) return
        if (error === null) keep(key, data)
        setState(previous => ({
          key,
          data: error === null ? data : previous.key === key ? previous.data : null,
          error,
        }))
      },
    )
    reload.current = () => reader.again()
    reader.again()
    // A hidden tab reads when it becomes visible again.
    let isStale = false
    const look = () => {
      isStale = document.hidden
      if (!isStale) reader.again()
    }
    const lookWhenVisible = () => isStale && look()
    const stop = onLive(event => {
      if (event === null || latest.current.on(event)) look()
    })
    const timer = everyMs === undefined ? undefined : setInterval(look, everyMs)
    document.addEventListener('visibilitychange', lookWhenVisible)
    return () => {
      stop()
      clearInterval(timer)
      document.removeEventListener('visibilitychange', lookWhenVisible)
      reader.end()
    }
  }, [key, everyMs])
  const { data, error } = state.key === key ? state : cachedState<Type>(key)
  return { data, error, reload: () => reload.current() }
}

function cachedState<Type>(key: string | null): { key: string | null; data: Type | null; error: Error | null } {
  return { key, data: key === null ? null : ((cache.get(key) as Type | undefined) ?? null), error: null }
}

function keep(key: string, value: unknown): void {
  cache.delete(key)
  cache.set(key, value)
  if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value!)
}

/** Reads a value repeatedly, one read at a time: at once after the first event, then no faster than reads complete. */
class ResourceReader<Type> {
  readonly #load
  readonly #done
  readonly #end = new AbortController()
  #isReading = false
  #isWanted = false
  #notBeforeMs = 0
  #timer: ReturnType<typeof setTimeout> | null = null
  #retry: ReturnType<typeof setTimeout> | undefined
  readonly #backoff = new Backoff()

  constructor(load: (signal: AbortSignal) => Promise<Type>, done: (data: Type | null, error: Error | null) => void) {
    this.#load = load
    this.#done = done
  }

  again(): void {
    if (this.#end.signal.aborted || this.#timer !== null) return
    if (this.#isReading) {
      this.#isWanted = true
      return
    }
    const waitMs = this.#notBeforeMs - performance.now()
    if (waitMs <= 0) void this.#read()
    else this.#timer = setTimeout(() => this.#read(), waitMs)
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    clearTimeout(this.#retry)
    this.#end.abort()
  }

  async #read(): Promise<void> {
    this.#timer = null
    this.#isReading = true
    this.#isWanted = false
    clearTimeout(this.#retry)
    const beganMs = performance.now()
    const { signal } = this.#end
    try {
      const data = await this.#load(signal)
      this.#backoff.reset()
      if (!signal.aborted) this.#done(data, null)
    } catch (error) {
      if (signal.aborted) return
      this.#done(null, error instanceof Error ? error : new ApiError(0, String(error)))
      if (error instanceof ApiError && error.isPassing)
        this.#retry = setTimeout(() => this.again(), this.#backoff.next())
    }
    this.#isReading = false
    const nowMs = performance.now()
    this.#notBeforeMs = nowMs + Math.max(GAP_MS, (nowMs - beganMs) * GAP_OF_READS)
    if (this.#isWanted) this.again()
  }
}
