import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { NO_TRAFFIC } from '../../core/balancing/traffic.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Notifier, Topic } from '../../ports/notifier.ts'
import type { Ports } from '../../ports/ports.ts'
import type { AdmissionRules } from '../entrance/admission.ts'
import { serverStopping } from '../entrance/refusal.ts'
import type { Entrance, GatewayRoute } from '../entrance/route.ts'
import { Gateway } from '../gateway.ts'
import { Forwarder } from '../proxy/forwarder.ts'
import { MessageBatch } from './message-batch.ts'
import {
  type DecidingMessage,
  type MessagesOfTerm,
  type Questions,
  type ThreadMessage,
  type ThreadTerm,
  unpackError,
} from './messages.ts'
import { type Ask, ThreadAccess, ThreadEndpoints } from './thread-access.ts'
import { ThreadReservations } from './thread-reservations.ts'
import { WaitingWords, WorkerSlots } from './worker-slots.ts'

/** Time within which events of requests travel to the deciding thread, in milliseconds. */
const EVENT_MS = 10

/** Parts of a thread that reads HTTP. */
export interface ThreadParts {
  readonly clock: Clock
  /** A hash of a text with a secret of the thread. */
  readonly hash: (text: string) => string
  readonly send: (batch: MessagesOfTerm<ThreadMessage>) => void
  readonly rules: AdmissionRules
  /** Limit of bytes of the body of a request. */
  readonly bodyBytes: number
}

/** The gateway in a thread that reads HTTP: that of the present term of the server. */
export class ThreadGateway implements Entrance {
  readonly #parts
  #term: ActingTerm | null = null
  #domains: ReadonlyMap<string, EndpointId> = new Map()

  constructor(parts: ThreadParts) {
    this.#parts = parts
  }

  /** True while the server acts, and requests for endpoints may come here. */
  get isActing(): boolean {
    return this.#term !== null
  }

  /** The endpoint that has a name as its domain; null without one. */
  findEndpoint(name: string): EndpointId | null {
    return this.#domains.get(name) ?? null
  }

  handle(incoming: IncomingMessage, outgoing: ServerResponse, route: GatewayRoute): void {
    this.#term?.gateway.handle(incoming, outgoing, route)
  }

  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, route: GatewayRoute): void {
    this.#term?.gateway.upgrade(incoming, socket, head, route)
  }

  /** Sends the events of requests that have ended. */
  flush(): void {
    this.#term?.flush()
  }

  /** A batch of the deciding thread has arrived. */
  receive({ term, messages }: MessagesOfTerm<DecidingMessage>): void {
    for (const message of messages) {
      if (message.kind === 'begin') {
        this.#term?.end()
        this.#term = new ActingTerm(this.#parts, term, message.term)
      } else if (this.#term?.number === term) this.#handle(message, this.#term)
    }
  }

  #handle(message: DecidingMessage, term: ActingTerm): void {
    if (message.kind === 'end') {
      term.end()
      this.#term = null
      this.#domains = new Map()
    } else if (message.kind === 'domains') this.#domains = new Map(message.domains)
    else term.handle(message)
  }
}

/** The gateway of one term, with what it needs of the deciding thread. */
class ActingTerm {
  readonly number: number
  readonly gateway: Gateway
  readonly #batch
  readonly #reservations
  readonly #forwarder
  readonly #stopping = new AbortController()
  readonly #asked = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #topics = new Map<Topic, Set<() => void>>()
  readonly #passing = new Set<EndpointId>()
  #events: (readonly [name: string, fields: object])[] = []

  constructor({ clock: machine, hash, send, rules, bodyBytes }: ThreadParts, number: number, term: ThreadTerm) {
    const clock: Clock = {
      now: () => term.nowMs + machine.monotonic() - term.atMs,
      monotonic: () => machine.monotonic(),
      after: (ms, callback) => machine.after(ms, callback),
    }
    this.number = number
    this.#batch = new MessageBatch<ThreadMessage>(clock, messages => {
      const events = this.#takeEvents()
      const loads = [...this.#passing].map(id => ({ kind: 'passing' as const, id, ...this.gateway.passing(id) }))
      this.#passing.clear()
      send({ term: number, messages: [...messages, ...events, ...loads] })
    })
    const post = (message: ThreadMessage) => this.#batch.add(message)
    const changed = new Int32Array(term.changes)
    const changes = () => Atomics.load(changed, 0)
    const notifier: Notifier = {
      publish: topic => post({ kind: 'publish', topic }),
      subscribe: (topic, listener) => this.#subscribe(topic, listener),
    }
    const ask: Ask = (name, asked) => this.#ask(name, asked)
    const ports = {
      clock,
      notifier,
      emit: (name: string, fields: object) => {
        this.#events.push([name, fields])
        this.#batch.wake(EVENT_MS)
      },
      vault: { hash },
      // The gateway uses these ports alone.
    } as unknown as Ports
    const memory = { slots: new WorkerSlots(term.slots), waiting: new WaitingWords(term.waiting) }
    this.#reservations = new ThreadReservations({ clock, notifier, post, ...memory })
    const nextTurn = (callback: () => void) => void clock.after(0, callback)
    this.#forwarder = new Forwarder({ clock, reservations: this.#reservations, nextTurn }, { bodyBytes })
    const endpoints = new ThreadEndpoints(clock, ask, changes)
    this.gateway = new Gateway(ports, {
      access: new ThreadAccess(ports, ask, changes),
      endpoints,
      forwarding: this.#forwarder,
      keyLimits: { decide: caller => ask('limit', { caller }) },
      traffic: { load: () => NO_TRAFFIC, busyMs: () => 0 },
      stopping: this.#stopping.signal,
      queueAddress: id => endpoints.queueAddress(id),
      findTarget: (owner, place) => ask('target', { owner, place }),
      rules,
      passed: id => {
        this.#passing.add(id)
        this.#batch.wake(EVENT_MS)
      },
    })
  }

  handle(message: DecidingMessage): void {
    switch (message.kind) {
      case 'stopping':
        this.#stopping.abort()
        this.#reservations.stop()
        break
      case 'endpoint':
        this.#reservations.keep(message.id, message.shared)
        break
      case 'topic':
        for (const listener of this.#topics.get(message.topic) ?? []) listener()
        break
      case 'reserved':
        this.#reservations.reserved(message.id, message.reservation)
        break
      case 'settle':
        this.#batch.add({ kind: 'settled' })
        this.#batch.flush()
        break
      case 'answer':
        this.#take(message.id)?.resolve(message.value)
        break
      case 'refused':
        if (!this.#reservations.refused(message.id, message.error))
          this.#take(message.id)?.reject(unpackError(message.error))
        break
    }
  }

  flush(): void {
    this.#batch.flush()
  }

  /** Ends all that passes. */
  end(): void {
    this.#stopping.abort()
    this.gateway.close()
    this.#reservations.close()
    this.#forwarder.close()
    for (const { reject } of this.#asked.values()) reject(serverStopping())
    this.#asked.clear()
  }

  #takeEvents(): ThreadMessage[] {
    if (this.#events.length === 0) return []
    const text = JSON.stringify(this.#events)
    this.#events = []
    return [{ kind: 'events', text }]
  }

  #take(id: number): PromiseWithResolvers<unknown> | undefined {
    const asked = this.#asked.get(id)
    this.#asked.delete(id)
    return asked
  }

  #ask<Name extends keyof Questions>(name: Name, asked: Questions[Name]['asked']): Promise<Questions[Name]['answer']> {
    const id = this.#reservations.nextNumber()
    const answer = Promise.withResolvers<unknown>()
    this.#asked.set(id, answer)
    this.#batch.add({ kind: 'ask', id, name, asked } as ThreadMessage)
    return answer.promise as Promise<Questions[Name]['answer']>
  }

  #subscribe(topic: Topic, listener: () => void): () => void {
    const listeners = this.#topics.get(topic) ?? new Set()
    this.#topics.set(topic, listeners)
    listeners.add(listener)
    if (listeners.size === 1) this.#batch.add({ kind: 'subscribe', topic })
    return () => {
      listeners.delete(listener)
      if (listeners.size > 0 || this.#topics.get(topic) !== listeners) return
      this.#topics.delete(topic)
      this.#batch.add({ kind: 'unsubscribe', topic })
    }
  }
}
