/**
 * Live events of the account, in one stream for all tabs. A browser opens six connections to a server over HTTP/1.1,
 * so a stream for each tab would leave none for requests.
 */

import { signal } from '@preact/signals'
import { serverNow } from '../server-clock.ts'
import { ApiError, request } from './api.ts'
import { Backoff, pause, readEvents } from './event-source.ts'

/** An event of `GET /v2/events`. */
export interface LiveEvent {
  readonly type: string
  /** Null for a change that concerns no endpoint. */
  readonly endpointId: string | null
  readonly [field: string]: unknown
}

/** Receives events. `null`: some may be missing, so everything should be read again. */
type Listener = (event: LiveEvent | null) => void

interface LiveState {
  readonly isOpen: boolean
  readonly retryAtMs: number | null
}

/** State of the stream. `retryAtMs`: instant of the next try to connect. */
export const liveState = signal<LiveState>({ isOpen: true, retryAtMs: null })

const listeners = new Set<Listener>()
/** Tabs with the same key share a stream; another key may be allowed to read other events. */
const channelName = (keyId: string) => `runyard.events ${keyId}`
/** Silence after which the stream is cut. The server sends something every 15 seconds. */
const SILENCE_MS = 40_000

/** Calls the listener for each event until the returned function is called. */
export function onLive(listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

type Message = { readonly event: LiveEvent | null } | { readonly state: LiveState }

/** Time in which a page makes its first reads, in milliseconds. Later its place in the events is an old one. */
const LOAD_MS = 10_000

/**
 * Reads the stream of a key in this tab, or receives its events from the tab that does, until the signal aborts.
 * @param after the newest event before the page read anything; null if that is not known
 */
export function followLive(keyId: string, after: string | null, signal: AbortSignal): void {
  liveState.value = { isOpen: true, retryAtMs: null }
  const tries = new Tries(signal)
  const beganMs = performance.now()
  const firstId = () => (performance.now() - beganMs < LOAD_MS ? after : null)
  if (!('locks' in navigator)) return void lead(signal, tries, () => {}, firstId())
  const channel = new BroadcastChannel(channelName(keyId))
  channel.onmessage = ({ data }: MessageEvent<Message | 'retry'>) => (data === 'retry' ? tries.now() : receive(data))
  // Browsers slow down the timers of a hidden tab, and that tab may read the stream.
  const retryWhenVisible = () => {
    if (document.hidden || liveState.value.isOpen) return
    tries.now()
    channel.postMessage('retry')
  }
  document.addEventListener('visibilitychange', retryWhenVisible)
  signal.addEventListener('abort', () => {
    channel.close()
    document.removeEventListener('visibilitychange', retryWhenVisible)
  })
  const tell = (message: Message) => signal.aborted || channel.postMessage(message)
  navigator.locks.request(channelName(keyId), { signal }, () => lead(signal, tries, tell, firstId())).catch(() => {})
}

/** Waits between tries to connect. */
class Tries {
  readonly backoff = new Backoff()
  readonly #signal
  #end = new AbortController()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  async wait(ms: number): Promise<void> {
    this.#end = new AbortController()
    await pause(ms, AbortSignal.any([this.#signal, this.#end.signal]))
  }

  /** Ends the wait: the next try is due. */
  now(): void {
    this.#end.abort()
  }
}

/** Time between two readings by a key that may not read events. */
const POLL_MS = 5_000

/** Reads everything in intervals until the signal aborts, for a key that may not read events. */
export function pollInstead(signal: AbortSignal): void {
  liveState.value = { isOpen: true, retryAtMs: null }
  const timer = setInterval(() => receive({ event: null }), POLL_MS)
  signal.addEventListener('abort', () => clearInterval(timer))
}

function receive(message: Message): void {
  if ('state' in message) liveState.value = message.state
  else for (const listener of [...listeners]) listener(message.event)
}

async function lead(
  signal: AbortSignal,
  tries: Tries,
  tell: (message: Message) => void,
  firstId: string | null,
): Promise<void> {
  const { backoff } = tries
  let lastId = firstId
  const say = (message: Message) => {
    if (signal.aborted) return
    receive(message)
    tell(message)
  }
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = lastId === null ? {} : { 'last-event-id': lastId }
      const response = await request('GET', '/v2/events', { headers, signal })
      backoff.reset()
      say({ state: { isOpen: true, retryAtMs: null } })
      // Changes before the stream was open are in no event, unless the stream resumes after one.
      if (lastId === null) say({ event: null })
      const onPlace = (id: string) => {
        lastId = id
      }
      for await (const { name, data, id } of readEvents(response, onPlace, SILENCE_MS)) {
        lastId = id
        say({ event: name === 'missed' ? null : (JSON.parse(data) as LiveEvent) })
      }
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && (error.status === 401 || error.status === 403))) return
    }
    const waitMs = backoff.next()
    say({ state: { isOpen: false, retryAtMs: serverNow() + waitMs } })
    await tries.wait(waitMs)
  }
}
