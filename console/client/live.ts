/**
 * What happens in the account, while it happens: one event stream for all tabs. A browser opens six connections to a server over HTTP/1.1,
 * so a stream for each tab would leave none for requests.
 */
import { signal } from '@preact/signals'
import { ApiError, request } from './api.ts'
import { Backoff, pause, readEvents } from './event-source.ts'

/** An event of `GET /v2/events`. */
export interface LiveEvent {
  readonly type: string
  /** Null for a change of something that is no endpoint's. */
  readonly endpointId: string | null
  readonly [field: string]: unknown
}

/** Hears events. `null`: some may be missing, so everything is to be read again. */
type Listener = (event: LiveEvent | null) => void

/** Whether events come in. `retryAtMs`: when it is tried again. */
export const liveState = signal<{ readonly isOpen: boolean; readonly retryAtMs: number | null }>({
  isOpen: true,
  retryAtMs: null,
})

const listeners = new Set<Listener>()
const CHANNEL = 'runyard.events'

/** Calls the listener for each event until the returned function is called. */
export function onLive(listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

type Message = { readonly event: LiveEvent | null } | { readonly state: typeof liveState.value }

/** Reads the stream in this tab, or hears it from the tab that does, until the signal aborts. */
export function followLive(signal: AbortSignal): void {
  if (!('locks' in navigator)) return void lead(signal, () => {})
  const channel = new BroadcastChannel(CHANNEL)
  channel.onmessage = ({ data }: MessageEvent<Message>) => receive(data)
  signal.addEventListener('abort', () => channel.close())
  navigator.locks
    .request(CHANNEL, { signal }, () => lead(signal, message => signal.aborted || channel.postMessage(message)))
    .catch(() => {})
}

/** Time between two readings by a key that may not read events. */
const POLL_MS = 5_000

/** Reads everything again and again, for a key that may not read events, until the signal aborts. */
export function pollInstead(signal: AbortSignal): void {
  const timer = setInterval(() => document.hidden || receive({ event: null }), POLL_MS)
  signal.addEventListener('abort', () => clearInterval(timer))
}

function receive(message: Message): void {
  if ('state' in message) liveState.value = message.state
  else for (const listener of [...listeners]) listener(message.event)
}

async function lead(signal: AbortSignal, tell: (message: Message) => void): Promise<void> {
  const backoff = new Backoff()
  let lastId: string | null = null
  const say = (message: Message) => {
    receive(message)
    tell(message)
  }
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = lastId === null ? {} : { 'last-event-id': lastId }
      const response = await request('GET', '/v2/events', { headers, signal })
      backoff.reset()
      say({ state: { isOpen: true, retryAtMs: null } })
      // What happened before the stream was open is in no event, unless it goes on from one.
      if (lastId === null) say({ event: null })
      for await (const { name, data, id } of readEvents(response)) {
        lastId = id
        say({ event: name === 'missed' ? null : (JSON.parse(data) as LiveEvent) })
      }
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && (error.status === 401 || error.status === 403))) return
    }
    const waitMs = backoff.next()
    if (!signal.aborted) say({ state: { isOpen: false, retryAtMs: Date.now() + waitMs } })
    await pause(waitMs, signal)
  }
}
