import { toAppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Emit } from '../../events.ts'
import type { Topic } from '../../ports/notifier.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Access } from '../../services/accounts/access.ts'
import { AppWorkerKeys } from '../../services/accounts/app-worker-keys.ts'
import { InvalidKeyError } from '../../services/accounts/failed-keys.ts'
import type { EndpointDomains } from '../../services/endpoints/endpoint-domains.ts'
import type { FindTarget } from '../entrance/admission.ts'
import type { Passing } from '../gateway.ts'
import type { RequestQueues } from '../queue/request-queues.ts'
import type { Reservation } from '../queue/reservation.ts'
import { MessageBatch } from './message-batch.ts'
import {
  type AdmittedEndpoint,
  type DecidingMessage,
  type MessagesOfTerm,
  packError,
  type Question,
  type ThreadChannel,
  type ThreadMessage,
  unpackError,
} from './messages.ts'
import type { SharedEndpoint } from './queue-sharing.ts'
import { WaitingWords, WorkerSlots, workerSlotBytes } from './worker-slots.ts'

/** Limits of workers and endpoints whose requests threads count themselves; for more of them they ask each time. */
const MAX_WORKERS = 16_384
const MAX_ENDPOINTS = 16_384

/** Maximum wait for the latest events of a thread, in milliseconds. */
const SETTLE_MS = 100

/** The parts of the deciding thread that answer the others. */
export interface DecidingParts {
  readonly access: Pick<Access, 'authenticate' | 'failedKeys' | 'keyLimits' | 'watch'>
  readonly queues: Pick<RequestQueues, 'reserve' | 'released'>
  readonly findEndpoint: (id: EndpointId) => AdmittedEndpoint | null | Promise<AdmittedEndpoint | null>
  readonly findTarget: FindTarget
  readonly domains: Pick<EndpointDomains, 'all' | 'watch'>
  readonly stopping: AbortSignal
}

let terms = 0

/**
 * The deciding thread's side of the threads that read HTTP, for one term of the server: shows them the endpoints and
 * workers, answers their questions, and emits their events.
 */
export class DecidingSide {
  readonly slots
  readonly waiting
  readonly #ports
  readonly #term = ++terms
  readonly #changes = new SharedArrayBuffer(4)
  readonly #memory = { slots: workerSlotBytes(MAX_WORKERS), waiting: MAX_ENDPOINTS * 4 }
  readonly #threads: readonly ThreadSide[]
  readonly #shown = new Map<EndpointId, { readonly shared: SharedEndpoint; readonly text: string }>()
  readonly #ends: (() => void)[] = []
  readonly #slotMemory = new SharedArrayBuffer(this.#memory.slots)
  readonly #waitingMemory = new SharedArrayBuffer(this.#memory.waiting)
  #hasBegun = false

  constructor(ports: Ports, channels: readonly ThreadChannel[]) {
    this.#ports = ports
    this.slots = new WorkerSlots(this.#slotMemory)
    this.waiting = new WaitingWords(this.#waitingMemory)
    this.#threads = channels.map(channel => new ThreadSide(ports, channel, this.#term))
  }

  /** Requests may come to all threads from now on. */
  begin(parts: DecidingParts): void {
    const { access, domains, stopping } = parts
    const { clock, notifier } = this.#ports
    this.#hasBegun = true
    const changed = () => void Atomics.add(new Int32Array(this.#changes), 0, 1)
    const showDomains = () => this.#show({ kind: 'domains', domains: [...domains.all] })
    const stop = () => this.#show({ kind: 'stopping' })
    for (const thread of this.#threads) thread.serve(parts)
    const memory = { slots: this.#slotMemory, waiting: this.#waitingMemory, changes: this.#changes }
    this.#show({ kind: 'begin', term: { ...memory, nowMs: clock.now(), atMs: clock.monotonic() } })
    for (const [id, { shared }] of this.#shown) this.#show({ kind: 'endpoint', id, shared })
    showDomains()
    if (stopping.aborted) stop()
    else stopping.addEventListener('abort', stop, { once: true })
    this.#ends.push(access.watch(changed), notifier.subscribe('endpoints', changed), domains.watch(showDomains), () =>
      stopping.removeEventListener('abort', stop),
    )
  }

  /** See {@link QueueSharing.publish}. */
  readonly publish = (id: EndpointId, shared: SharedEndpoint | null): void => {
    const text = shared === null ? '' : JSON.stringify(shared)
    if ((this.#shown.get(id)?.text ?? '') === text) return
    if (shared === null) this.#shown.delete(id)
    else this.#shown.set(id, { shared, text })
    if (this.#hasBegun) this.#show({ kind: 'endpoint', id, shared })
  }

  /** Requests and sockets of an endpoint in all threads, as they reported it some milliseconds ago. */
  passing(id: EndpointId): Passing {
    let requests = 0
    let sockets = 0
    for (const { passing } of this.#threads) {
      requests += passing.get(id)?.requests ?? 0
      sockets += passing.get(id)?.sockets ?? 0
    }
    return { requests, sockets }
  }

  /** True if any request or socket passes through a thread. */
  get isBusy(): boolean {
    return this.#threads.some(({ passing }) => passing.size > 0)
  }

  /** Resolves once the events of all threads until now are emitted, or after a moment without an answer. */
  async settle(): Promise<void> {
    if (this.#hasBegun) await Promise.all(this.#threads.map(thread => thread.settle()))
  }

  /** Ends all that passes through the threads. */
  close(): void {
    for (const end of this.#ends.splice(0)) end()
    if (this.#hasBegun) this.#show({ kind: 'end' })
    this.#hasBegun = false
    for (const thread of this.#threads) thread.close()
  }

  #show(message: DecidingMessage): void {
    for (const thread of this.#threads) thread.show(message)
  }
}

/** One thread as the deciding thread sees it. */
class ThreadSide {
  readonly passing = new Map<EndpointId, Passing>()
  readonly #ports
  readonly #batch
  readonly #channel
  readonly #term
  /** Requests that wait, by their numbers. */
  readonly #waiting = new Map<number, AbortController>()
  /** Reservations that only this thread counts. */
  readonly #reservations = new Map<number, Reservation>()
  readonly #topics = new Map<Topic, () => void>()
  #parts: DecidingParts | null = null
  #settling: PromiseWithResolvers<void> | null = null

  constructor(ports: Ports, channel: ThreadChannel, term: number) {
    this.#ports = ports
    this.#channel = channel
    this.#term = term
    this.#batch = new MessageBatch<DecidingMessage>(ports.clock, messages => channel.send({ term, messages }))
  }

  serve(parts: DecidingParts): void {
    this.#parts = parts
    this.#channel.receive(batch => this.#receive(batch))
  }

  settle(): Promise<void> {
    this.#settling ??= Promise.withResolvers()
    this.show({ kind: 'settle' })
    this.#ports.clock.after(SETTLE_MS, () => this.#settled())
    return this.#settling.promise
  }

  #settled(): void {
    this.#settling?.resolve()
    this.#settling = null
  }

  /** Sends a message before its next request. */
  show(message: DecidingMessage): void {
    this.#batch.add(message)
    this.#batch.flush()
  }

  close(): void {
    this.#parts = null
    for (const unsubscribe of this.#topics.values()) unsubscribe()
    this.#topics.clear()
    this.#batch.close()
    this.passing.clear()
    for (const controller of this.#waiting.values()) controller.abort()
    for (const reservation of this.#reservations.values()) reservation.release('aborted')
    this.#reservations.clear()
  }

  #receive({ term, messages }: MessagesOfTerm<ThreadMessage>): void {
    if (term !== this.#term) return
    for (const message of messages) {
      // Those of requests that the end of the term cut come after it.
      if (message.kind === 'events') this.#emit(message.text)
      else if (this.#parts !== null) this.#handle(message, this.#parts)
    }
  }

  /** A thread emits only events of its own gateway. */
  #emit(text: string): void {
    const events = JSON.parse(text) as [name: Parameters<Emit>[0], fields: Parameters<Emit>[1]][]
    for (const [name, fields] of events) this.#ports.emit(name, fields)
  }

  #handle(message: Exclude<ThreadMessage, { kind: 'events' }>, parts: DecidingParts): void {
    switch (message.kind) {
      case 'settled':
        this.#settled()
        break
      case 'released':
        parts.queues.released(message.endpointId, message.workerId, message.slot, message.outcome)
        break
      case 'passing':
        if (message.requests + message.sockets === 0) this.passing.delete(message.id)
        else this.passing.set(message.id, message)
        break
      case 'reserve':
        void this.#reserve(message, parts)
        break
      case 'leave':
        this.#waiting.get(message.id)?.abort()
        break
      case 'release':
        this.#reservations.get(message.id)?.release(message.outcome)
        this.#reservations.delete(message.id)
        break
      case 'ask':
        void this.#answer(message.id, message, parts)
        break
      case 'publish':
        this.#ports.notifier.publish(message.topic)
        break
      case 'subscribe':
        this.#subscribe(message.topic)
        break
      case 'unsubscribe':
        this.#topics.get(message.topic)?.()
        this.#topics.delete(message.topic)
        break
    }
  }

  async #reserve({ id, ...asked }: Extract<ThreadMessage, { kind: 'reserve' }>, parts: DecidingParts): Promise<void> {
    const controller = new AbortController()
    this.#waiting.set(id, controller)
    const { maxWaitMs, waitedMs = 0, ...request } = asked
    const limit = maxWaitMs === undefined ? {} : { maxWaitMs }
    try {
      const reservation = await parts.queues.reserve({ ...request, ...limit, waitedMs, signal: controller.signal })
      const { workerId, servedAt, slot = null } = reservation
      if (slot === null) this.#reservations.set(id, reservation)
      const { endpointId } = request
      this.#batch.add({
        kind: 'reserved',
        id,
        reservation: { endpointId, workerId, servedAt, waitedMs: reservation.waitedMs, slot },
      })
    } catch (error) {
      this.#batch.add({ kind: 'refused', id, error: packError(toAppError(error)) })
    } finally {
      this.#waiting.delete(id)
    }
  }

  async #answer(id: number, question: Question, parts: DecidingParts): Promise<void> {
    try {
      this.#batch.add({ kind: 'answer', id, value: await this.#ask(question, parts) })
    } catch (error) {
      this.#batch.add({ kind: 'refused', id, error: packError(toAppError(error)) })
    }
  }

  #ask(question: Question, { access, findEndpoint, findTarget }: DecidingParts): unknown {
    switch (question.name) {
      case 'authenticate':
        return access.authenticate(question.asked.key)
      case 'key':
        return new AppWorkerKeys(this.#ports).find(question.asked.id)
      case 'endpoint':
        return findEndpoint(question.asked.id)
      case 'target':
        return findTarget(question.asked.owner, question.asked.place)
      case 'limit':
        return access.keyLimits.decide(question.asked.caller)
      case 'failed': {
        const { address, error, count } = question.asked
        const failure = unpackError(error)
        return failure instanceof InvalidKeyError
          ? packError(access.failedKeys.refusal(address, failure, count))
          : packError(failure)
      }
    }
  }

  #subscribe(topic: Topic): void {
    if (this.#topics.has(topic)) return
    this.#topics.set(
      topic,
      this.#ports.notifier.subscribe(topic, () => this.#batch.add({ kind: 'topic', topic })),
    )
  }
}
