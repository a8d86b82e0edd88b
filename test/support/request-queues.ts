/** Request queues under a virtual clock, with workers that a test sets. */
import assert from 'node:assert/strict'
import { AppError } from '../../src/core/errors.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../src/core/ids.ts'
import type { BalancedEndpoint, ServedAt, Target } from '../../src/core/workers/socket-address.ts'
import type { Events } from '../../src/events.ts'
import { RequestQueues, type RequestQueuesOptions } from '../../src/gateway/queue/request-queues.ts'
import type { RequestOutcome, Reservation, Reservations, WorkerRequest } from '../../src/gateway/queue/reservation.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { portsWith } from './ports.ts'
import { queuesOfThreads } from './threads.ts'
import { VirtualClock } from './virtual-clock.ts'

/** The default endpoint of requests. */
export const ENDPOINT = 'endpoint' as EndpointId

const AT = { host: '127.0.0.1', port: 8000 }
const SERVED: ServedAt = { traffic: AT, health: AT }

/** A load-balancing endpoint with a target of two requests per worker. */
export function aBalanced(fields: Partial<BalancedEndpoint> = {}): BalancedEndpoint {
  const base = { id: ENDPOINT, owner: 'owner' as OwnerId, version: 1, requestCount: 2, maxConcurrency: null }
  return { ...base, paused: false, ...fields }
}

/** A worker that is ready. */
export function aTarget(name: string, fields: Partial<Target> = {}): Target {
  return { workerId: name as WorkerId, version: 1, state: 'ready', servedAt: SERVED, ...fields }
}

/** A request of a test and its current result. */
export interface Asked {
  readonly name: string
  /** Its worker; null while it waits. */
  reservation: Reservation | null
  error: unknown
  readonly abort: () => void
}

/** Number of threads that send requests: 1 unless `RUNYARD_TEST_HTTP_THREADS` has another one. */
const THREADS = Number(process.env.RUNYARD_TEST_HTTP_THREADS ?? 1)

/** Request queues that record the result of each request. */
export class RequestQueuesRig {
  readonly clock = new VirtualClock()
  readonly queues: RequestQueues
  /** Those to which requests go in turn: the queues themselves, or threads that ask them. */
  readonly #reservations: readonly Reservations[]
  /** Names of requests in the order in which they got a worker. */
  readonly served: string[] = []
  /** Number of threads that send requests. */
  readonly threads: number
  readonly problems: (Events['worker.avoided'] | Events['worker.trusted'])[] = []
  #published = 0
  #count = 0
  /** Requests of one turn that got a worker, by their numbers. */
  #burst: { readonly number: number; readonly name: string }[] = []

  /** @param threads number of threads that send requests */
  constructor(options: RequestQueuesOptions = {}, threads = THREADS) {
    this.threads = threads
    const notifier = createNotifier()
    notifier.subscribe(`load:${ENDPOINT}`, () => {
      this.#published += 1
    })
    const emit = (name: keyof Events, fields: object) => {
      if (name === 'worker.avoided' || name === 'worker.trusted') this.problems.push(fields as never)
    }
    const ports = portsWith({ clock: this.clock, notifier, emit })
    if (threads === 1) {
      this.queues = new RequestQueues(ports, options)
      this.#reservations = [this.queues]
    } else {
      const { queues, reservations } = queuesOfThreads(ports, options, threads)
      this.queues = queues
      this.#reservations = reservations
    }
  }

  /** Sets the endpoint and its workers. */
  async keep(fields: Partial<BalancedEndpoint>, ...targets: Target[]): Promise<void> {
    this.queues.keep(aBalanced(fields), targets)
    await this.clock.settle()
  }

  /** Sends a request. */
  ask(wish: Partial<WorkerRequest> & { readonly name?: string } = {}): Asked {
    const controller = new AbortController()
    this.#count += 1
    const number = this.#count
    const { name = `r${number}`, ...rest } = wish
    const request: Asked = { name, reservation: null, error: null, abort: () => controller.abort(new Error('gone')) }
    const wanted = { endpointId: ENDPOINT, affinity: null, avoid: [], signal: controller.signal, ...rest }
    const reservations = this.#reservations[this.#count % this.#reservations.length]!
    reservations.reserve(wanted).then(
      reservation => {
        request.reservation = reservation
        if (this.#reservations.length === 1) this.served.push(name)
        else this.#serve(number, name)
      },
      error => {
        request.error = error
      },
    )
    return request
  }

  /** Threads hear of the requests of one turn each in its own message, in any order. */
  #serve(number: number, name: string): void {
    if (this.#burst.length === 0) {
      setImmediate(() => {
        const inOrder = this.#burst.toSorted((a, b) => a.number - b.number)
        this.served.push(...inOrder.map(served => served.name))
        this.#burst = []
      })
    }
    this.#burst.push({ number, name })
  }

  /** Sends a request that requires a worker. */
  insist(worker: string, kind: 'strict' | 'strict-resume' = 'strict', name?: string): Asked {
    return this.ask({ affinity: { kind, workerId: worker as WorkerId }, ...(name === undefined ? {} : { name }) })
  }

  /** Sends a request that gets a worker at once. */
  async claim(wish: Partial<WorkerRequest> = {}): Promise<Reservation> {
    const request = this.ask(wish)
    await this.clock.settle()
    assert.ok(request.reservation !== null, `the request waits or was refused: ${String(request.error)}`)
    return request.reservation
  }

  /** Sends requests to a worker one after another, each with an outcome. */
  async send(worker: string, ...outcomes: RequestOutcome[]): Promise<void> {
    for (const outcome of outcomes) {
      const affinity = { kind: 'strict', workerId: worker as WorkerId } as const
      ;(await this.claim({ affinity })).release(outcome)
    }
  }

  /** Number of notifications of a changed load since the last call. */
  async told(): Promise<number> {
    await this.clock.settle()
    const count = this.#published
    this.#published = 0
    return count
  }

  /** Requests in flight by worker. */
  get inFlight(): Record<string, number> {
    return Object.fromEntries(this.queues.load(ENDPOINT).workers.map(({ workerId, inFlight }) => [workerId, inFlight]))
  }
}

/** The status and message of a refusal, and whether it has Retry-After. */
export function refusalOf({ error }: Asked): { status: number; message: string; retries: boolean } {
  assert.ok(error instanceof AppError, String(error))
  const { status, message, retryAfterSeconds } = error
  return { status, message, retries: retryAfterSeconds !== undefined && retryAfterSeconds > 0 }
}
