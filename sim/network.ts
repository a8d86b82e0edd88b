import type { App } from '../src/app.ts'
import type { Life } from './life.ts'
import type { SeededRandom } from './random.ts'
import type { World } from './world.ts'

/** What a listener calls: all surfaces as one function. */
export type Surface = ReturnType<App['fetch']>

/** A request, as its caller sees it. */
export interface Call {
  /** Who calls, for the trace. */
  readonly who: string
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** When its process ends, the connection goes with it. */
  readonly life: Life
  /** How long the caller waits for the answer. */
  readonly timeoutMs: number
  /** Has left its process for good once it is sent, and arrives even when that process ends. */
  readonly outlives?: true
  /** Further time on its way to the server. */
  readonly extraMs?: number
}

/** An answer, or why there is none. */
export type Reply =
  | { readonly ok: true; readonly status: number; readonly text: string }
  | { readonly ok: false; readonly why: 'refused' | 'reset' | 'timeout' }

/** What will happen to one request. */
interface Fate {
  readonly thereMs: number
  readonly backMs: number
  readonly loss: 'none' | 'request' | 'answer' | 'vanished' | 'doubted'
}

interface Connection {
  readonly surface: Surface
  readonly life: Life
  readonly flights: Set<Flight>
}

/** A request on its way, at the server, or on its way back. */
class Flight {
  readonly controller = new AbortController()
  readonly settled: ((delivered: boolean) => void)[] = []
  /** Kept, because a request that nobody holds loses the tie to its signal. */
  request: Request | null = null
  /** The caller has hung up. */
  left = false
  answered = false
  reply: ((reply: Reply) => void) | null

  constructor(reply: (reply: Reply) => void) {
    this.reply = reply
  }

  /** Tells the caller; only the first call counts. */
  end(reply: Reply): void {
    this.reply?.(reply)
    this.reply = null
  }

  /** Tells the server what became of its answer. */
  settle(delivered: boolean): void {
    for (const callback of this.settled.splice(0)) callback(delivered)
  }
}

/** Carries requests to the server that runs at the moment, and loses some. */
export class Network {
  readonly #world: World
  readonly #random: SeededRandom
  readonly #arrived: (call: Call) => void
  #connection: Connection | null = null

  /** @param arrived is told of each request that reaches the server */
  constructor(world: World, arrived: (call: Call) => void) {
    this.#world = world
    this.#random = world.random('network')
    this.#arrived = arrived
  }

  /** A server listens from now on. */
  connect(surface: Surface, life: Life): void {
    this.#connection = { surface, life, flights: new Set() }
  }

  /** The server is gone: all open connections break, and new ones are refused. */
  disconnect(): void {
    const flights = this.#connection?.flights ?? new Set()
    this.#connection = null
    for (const flight of [...flights]) flight.end({ ok: false, why: 'reset' })
  }

  /** Sends a request. Never rejects; in a process that has ended it does not return. */
  async send(call: Call): Promise<Reply> {
    const { clock, trace } = this.#world
    const fate = this.#draw()
    this.#world.activity += 1
    const reply = await new Promise<Reply>(resolve => {
      const flight = new Flight(resolve)
      const hangUp = () => this.#hangUp(flight, fate, call.outlives === true)
      const forget = call.life.onEnd(hangUp)
      const cancelTimer = clock.after(call.timeoutMs, hangUp)
      flight.reply = result => {
        forget()
        cancelTimer()
        resolve(result)
      }
      clock.after(fate.thereMs + (call.extraMs ?? 0), () => this.#arrive(call, flight, fate))
    })
    this.#world.activity += 1
    const { pathname, search } = new URL(call.url)
    const outcome = reply.ok ? `${reply.status} ${reply.text}` : reply.why
    trace.add('reply', `${call.who} ${call.method} ${pathname}${search} ${outcome}`)
    return call.life.guard(Promise.resolve(reply))
  }

  #draw(): Fate {
    const { faults } = this.#world
    const random = this.#random
    const delay = () => (random.chance(faults.delay) ? random.int(200, 4_000) : random.int(1, 20))
    const losses = [
      ['request', faults.lostRequest],
      ['answer', faults.lostAnswer],
      ['vanished', faults.vanishedAnswer],
      ['doubted', faults.doubtedAnswer],
    ] as const
    let left = random.fraction()
    let loss: Fate['loss'] = 'none'
    for (const [name, probability] of losses) {
      if (loss === 'none' && left < probability) loss = name
      left -= probability
    }
    return { thereMs: delay(), backMs: delay(), loss }
  }

  #hangUp(flight: Flight, fate: Fate, outlives: boolean): void {
    flight.end({ ok: false, why: 'timeout' })
    if (outlives) return
    flight.left = true
    this.#world.clock.after(fate.thereMs, () => {
      if (!flight.answered) flight.controller.abort()
    })
  }

  #arrive(call: Call, flight: Flight, fate: Fate): void {
    const connection = this.#connection
    if (flight.left && call.life.over) return
    if (fate.loss === 'request') this.#world.count('lost requests')
    if (fate.loss === 'request' || connection === null) {
      flight.end({ ok: false, why: fate.loss === 'request' ? 'reset' : 'refused' })
      return
    }
    const { method, url, headers, body } = call
    const signal = flight.controller.signal
    flight.request = new Request(url, { method, headers, signal, ...(body === undefined ? {} : { body }) })
    connection.flights.add(flight)
    this.#arrived(call)
    void this.#serve(connection, flight, fate)
  }

  async #serve(connection: Connection, flight: Flight, fate: Fate): Promise<void> {
    const delivery = { onSettled: (callback: (delivered: boolean) => void) => void flight.settled.push(callback) }
    const { status, text } = await connection.life.guard(
      connection
        .surface(flight.request!, { delivery })
        .then(async response => ({ status: response.status, text: await response.text() })),
    )
    this.#world.activity += 1
    flight.answered = true
    connection.flights.delete(flight)
    this.#answer(flight, fate, { ok: true, status, text })
  }

  #answer(flight: Flight, fate: Fate, reply: Reply): void {
    const { clock } = this.#world
    if (flight.controller.signal.aborted) {
      flight.settle(false)
      return
    }
    if (fate.loss !== 'none') this.#world.count(`${fate.loss} answers`)
    flight.settle(fate.loss !== 'answer' && fate.loss !== 'doubted')
    const lost = fate.loss === 'answer' || fate.loss === 'vanished'
    clock.after(fate.backMs, () => flight.end(lost ? { ok: false, why: 'reset' } : reply))
  }
}
