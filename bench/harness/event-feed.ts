/** The live events of an endpoint, as a server reports them while a benchmark runs. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunyardServer } from './runyard.ts'

/** One event, with the members that benchmarks read. */
export interface FedEvent {
  readonly type: string
  readonly atMs: number
  readonly from: string | null
  readonly to: string | null
}

/** Reads the events of one endpoint until it is closed. */
export class EventFeed {
  readonly #events: FedEvent[] = []
  readonly #over = new AbortController()

  /** Opens a feed with all events from now on. */
  static async open({ url, key }: RunyardServer, endpoint: string): Promise<EventFeed> {
    const feed = new EventFeed()
    const { body } = await fetch(`${url}/v2/events?endpoint=${endpoint}`, {
      headers: { authorization: `Bearer ${key}` },
      signal: feed.#over.signal,
    })
    if (body === null) throw new Error('the feed of events has no body')
    feed.#read(body).catch(() => {})
    return feed
  }

  /** The wanted events so far. */
  of(isWanted: (event: FedEvent) => boolean): FedEvent[] {
    return this.#events.filter(isWanted)
  }

  /** Waits for this number of wanted events. */
  async whenThere(isWanted: (event: FedEvent) => boolean, count: number): Promise<FedEvent[]> {
    for (;;) {
      const events = this.of(isWanted)
      if (events.length >= count) return events
      await sleep(50)
    }
  }

  /** Ends the reading. */
  close(): void {
    this.#over.abort()
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let rest = ''
    const decoder = new TextDecoder()
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line.startsWith('data:')) this.#add(JSON.parse(line.slice('data:'.length)))
    }
  }

  #add({ type, at, from = null, to = null }: { type: string; at: string; from?: string | null; to?: string | null }) {
    this.#events.push({ type, atMs: Date.parse(at), from, to })
  }
}
