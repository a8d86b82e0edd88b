import type { App } from '../src/app.ts'
import type { Life } from './life.ts'
import type { SeededRandom } from './random.ts'
import type { World } from './world.ts'

/** The request handler of the server for all surfaces. */
export type Surface = ReturnType<App['fetch']>

/** A request of a caller. */
export interface Call {
  /** Name of the caller in the trace. */
  readonly who: string
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** The calling process. The connection closes when it ends. */
  readonly life: Life
  /** Longest wait of the caller for the response. */
  readonly timeoutMs: number
  /** The request arrives even when its process ends after it was sent. */
  readonly outlives?: true
  /** Additional delay on the way to the server. */
  readonly extraMs?: number
  /**
   * Called with each part of the response.
   * @param mark number of disturbances when the part was requested from the server
   */
  readonly onPart?: (text: string, mark: number) => void
}

/** Loss of a request or its response on the way. Checkers see it, callers do not. */
export type Loss = 'none' | 'request' | 'answer' | 'vanished' | 'doubted'

/** A response, or the reason of its absence. */
export type Reply =
  | {
      readonly ok: true
      readonly status: number
      readonly text: string
      readonly headers: Headers
      readonly loss: Loss
      /** Grows with each response of the server. */
      readonly order: number
    }
  | { readonly ok: false; readonly why: 'refused' | 'reset' | 'timeout'; readonly loss: Loss }

/** A request and its response, at the instant at which the response is ready. */
export interface Exchange {
  readonly call: Call
  readonly status: number
  readonly text: string
  /** Times at which the request arrived and its response was ready, in monotonic milliseconds. */
  readonly fromMs: number
  readonly toMs: number
}

/** Observes requests and responses. */
export interface NetworkWatch {
  readonly arrived: (call: Call) => void
  readonly answered: (answered: Exchange) => void
}

/** Planned delays and losses of one request and its response. */
interface Fate {
  readonly thereMs: number
  readonly backMs: number
  readonly loss: Loss
  /** Number of parts after which a stream with a loss breaks. */
  readonly parts: number
}

interface Connection {
  readonly surface: Surface
  readonly life: Life
  readonly flights: Set<Flight>
}

/** A request that is under way, at the server, or on its way back. */
class Flight {
  readonly controller = new AbortController()
  readonly settled: ((delivered: boolean) => void)[] = []
  /** Kept here: a request that is garbage-collected loses its signal. */
  request: Request | null = null
  /** True if the caller closed the connection. */
  isClosed = false
  answered = false
  fromMs = 0
  reply: ((reply: Reply) => void) | null
  readonly call: Call
  readonly loss: Loss

  constructor(call: Call, loss: Loss, reply: (reply: Reply) => void) {
    this.call = call
    this.loss = loss
    this.reply = reply
  }

  /** Delivers a part of the response, unless the request has ended. */
  part(text: string, mark: number): void {
    if (this.reply !== null) this.call.onPart?.(text, mark)
  }

  /** Ends the request without a response. */
  fail(cause: 'refused' | 'reset' | 'timeout'): void {
    this.end({ ok: false, why: cause, loss: this.loss })
  }

  /** Ends the request with a reply; only the first call counts. */
  end(reply: Reply): void {
    this.reply?.(reply)
    this.reply = null
  }

  /** Tells the server whether its response was delivered. */
  settle(delivered: boolean): void {
    for (const callback of this.settled.splice(0)) callback(delivered)
  }
}

/** A body that ends with an error. */
const BROKEN = { done: true, value: new Uint8Array() } as const

/** The name of a server that is the only one. */
const ONLY = 'server'

/** Delivers requests to servers, and loses some. */
export class Network {
  readonly #world: World
  readonly #random: SeededRandom
  readonly #watch: NetworkWatch
  readonly #connections = new Map<string, Connection>()
  #responses = 0
  /** Name of the server that a request reaches; the only server unless there are several. */
  route: () => string = () => ONLY

  constructor(world: World, watch: NetworkWatch) {
    this.#world = world
    this.#random = world.random('network')
    this.#watch = watch
  }

  /** Requests that arrived at a server and have no response yet, with the time of their arrival. */
  open(server = ONLY): { readonly call: Call; readonly fromMs: number }[] {
    return [...(this.#connections.get(server)?.flights ?? [])]
  }

  /** Connects a server that listens. */
  connect(surface: Surface, life: Life, server = ONLY): void {
    this.#connections.set(server, { surface, life, flights: new Set() })
  }

  /** A server has ended: all its open connections break, and new ones are refused. */
  disconnect(server = ONLY): void {
    const flights = this.#connections.get(server)?.flights ?? new Set()
    this.#connections.delete(server)
    for (const flight of [...flights]) flight.fail('reset')
  }

  /** Sends a request. Never rejects. Never resolves once the calling process has ended. */
  async send(call: Call): Promise<Reply> {
    const { clock, trace } = this.#world
    const fate = this.#draw()
    this.#world.activity += 1
    const reply = await new Promise<Reply>(resolve => {
      const flight = new Flight(call, fate.loss, resolve)
      let isSettled = false
      let forget = () => {}
      let cancelTimer = () => {}
      const settle = (result: Reply) => {
        if (isSettled) return
        isSettled = true
        forget()
        cancelTimer()
        resolve(result)
      }
      // A caller that was frozen past its own limit gives up, even if a response arrived in the
      // meantime: its timers run first.
      const hangUp = () => {
        settle({ ok: false, why: 'timeout', loss: fate.loss })
        this.#hangUp(flight, fate, call.outlives === true)
      }
      forget = call.life.onEnd(hangUp)
      cancelTimer = call.life.after(call.timeoutMs, hangUp)
      flight.reply = result => call.life.deliver(() => settle(result))
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
    let fraction = random.fraction()
    let loss: Fate['loss'] = 'none'
    for (const [name, probability] of losses) {
      if (loss === 'none' && fraction < probability) loss = name
      fraction -= probability
    }
    return { thereMs: delay(), backMs: delay(), loss, parts: random.int(0, 4) }
  }

  #hangUp(flight: Flight, fate: Fate, outlives: boolean): void {
    flight.fail('timeout')
    if (outlives) return
    flight.isClosed = true
    this.#world.clock.after(fate.thereMs, () => {
      if (!flight.answered) flight.controller.abort()
    })
  }

  #arrive(call: Call, flight: Flight, fate: Fate): void {
    const connection = this.#connections.get(this.route())
    if (flight.isClosed && call.life.over) return
    if (fate.loss === 'request') this.#world.count('lost requests')
    if (fate.loss === 'request' || connection === undefined) {
      flight.fail(fate.loss === 'request' ? 'reset' : 'refused')
      return
    }
    const { method, url, headers, body } = call
    const signal = flight.controller.signal
    flight.request = new Request(url, { method, headers, signal, ...(body === undefined ? {} : { body }) })
    connection.flights.add(flight)
    flight.fromMs = this.#world.clock.monotonic()
    this.#watch.arrived(call)
    connection.life.deliver(() => void this.#serve(connection, flight, fate))
  }

  async #serve(connection: Connection, flight: Flight, fate: Fate): Promise<void> {
    const { life, surface } = connection
    const delivery = { onSettled: (callback: (delivered: boolean) => void) => void flight.settled.push(callback) }
    const response = await life.guard(surface(flight.request!, { delivery, requestId: 'request' }))
    const { status, headers } = response
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true
    if (isStream && response.body !== null) return this.#stream(connection, flight, fate, response)
    const text = await life.guard(response.text())
    this.#done(connection, flight, status, text)
    this.#respond(flight, fate, { ok: true, status, text, headers, loss: fate.loss, order: this.#responses })
  }

  #done(connection: Connection, flight: Flight, status: number, text: string): void {
    this.#world.activity += 1
    this.#responses += 1
    flight.answered = true
    connection.flights.delete(flight)
    const toMs = this.#world.clock.monotonic()
    this.#watch.answered({ call: flight.call, status, text, fromMs: flight.fromMs, toMs })
  }

  /** Sends the parts of a stream one by one; each is requested from the server after the one before was sent. */
  async #stream(connection: Connection, flight: Flight, fate: Fate, response: Response): Promise<void> {
    const { clock } = this.#world
    const { signal } = flight.controller
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const decoder = new TextDecoder()
    const cutAt = fate.loss === 'none' ? Number.POSITIVE_INFINITY : fate.parts
    const cancel = () => void reader.cancel().catch(() => {})
    signal.addEventListener('abort', cancel)
    // Node keeps the signal of a request, and so all that its listeners hold: the whole world of the seed.
    const forget = () => signal.removeEventListener('abort', cancel)
    const stay = connection.life.onEnd(forget)
    let whole = ''
    for (let part = 0; ; part += 1) {
      const mark = this.#world.disturbances
      const { done, value } = await connection.life.guard(reader.read().catch(() => BROKEN))
      this.#world.activity += 1
      // The response head was sent: the server can only break the connection after a failure.
      if (value === BROKEN.value) {
        this.#world.count('streams broken by the server')
        flight.fail('reset')
      }
      if (done || signal.aborted) break
      if (part >= cutAt) {
        this.#world.count('broken streams')
        flight.fail('reset')
        flight.controller.abort()
        break
      }
      const text = decoder.decode(value)
      whole += text
      clock.after(fate.backMs, () => flight.part(text, mark))
      await connection.life.sleep(1)
    }
    stay()
    forget()
    this.#done(connection, flight, response.status, whole)
    flight.settle(!signal.aborted)
    const { status, headers } = response
    const order = this.#responses
    clock.after(fate.backMs, () => flight.end({ ok: true, status, text: whole, headers, loss: fate.loss, order }))
  }

  #respond(flight: Flight, fate: Fate, reply: Reply): void {
    const { clock } = this.#world
    if (flight.controller.signal.aborted) {
      flight.settle(false)
      return
    }
    if (fate.loss !== 'none') this.#world.count(`${fate.loss} answers`)
    flight.settle(fate.loss !== 'answer' && fate.loss !== 'doubted')
    const lost = fate.loss === 'answer' || fate.loss === 'vanished'
    clock.after(fate.backMs, () => (lost ? flight.fail('reset') : flight.end(reply)))
  }
}
