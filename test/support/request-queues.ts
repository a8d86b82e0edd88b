/** Lines of load-balancing endpoints under a virtual clock, with workers that are told of by hand. */
import assert from 'node:assert/strict'
import { AppError } from '../../src/core/errors.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../src/core/ids.ts'
import type { BalancedEndpoint, ServedAt, Target } from '../../src/core/workers/socket-address.ts'
import type { Events } from '../../src/events.ts'
import { RequestQueues, type RequestQueuesOptions } from '../../src/gateway/queue/request-queues.ts'
import type { RequestOutcome, Reservation, WorkerRequest } from '../../src/gateway/queue/reservation.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { VirtualClock } from './virtual-clock.ts'

/** The endpoint of all requests that do not name another. */
export const ENDPOINT = 'endpoint' as EndpointId

const AT = { host: '127.0.0.1', port: 8000 }
const SERVED: ServedAt = { traffic: AT, health: AT }

/** A load-balancing endpoint whose workers should have two requests each. */
export function aBalanced(fields: Partial<BalancedEndpoint> = {}): BalancedEndpoint {
  const base = { id: ENDPOINT, owner: 'owner' as OwnerId, version: 1, requestCount: 2, maxConcurrency: null }
  return { ...base, paused: false, ...fields }
}

/** A worker that is ready. */
export function aTarget(name: string, fields: Partial<Target> = {}): Target {
  return { workerId: name as WorkerId, version: 1, state: 'ready', servedAt: SERVED, ...fields }
}

/** A request of a test: what came of it so far. */
export interface Asked {
  readonly name: string
  /** The worker that it got, from then on. */
  reservation: Reservation | null
  error: unknown
  readonly abort: () => void
}

/** Lines, and what became of each request. */
export class LinesRig {
  readonly clock = new VirtualClock()
  readonly lines: RequestQueues
  /** Names of requests in the order in which they got a worker. */
  readonly served: string[] = []
  readonly problems: (Events['worker.avoided'] | Events['worker.trusted'])[] = []
  #published = 0
  #count = 0

  constructor(options: RequestQueuesOptions = {}) {
    const notifier = createNotifier()
    notifier.subscribe(`load:${ENDPOINT}`, () => {
      this.#published += 1
    })
    const emit = (name: keyof Events, fields: object) => {
      if (name === 'worker.avoided' || name === 'worker.trusted') this.problems.push(fields as never)
    }
    this.lines = new RequestQueues({ clock: this.clock, notifier, emit }, options)
  }

  /** Tells of the endpoint and its workers. */
  async keep(fields: Partial<BalancedEndpoint>, ...targets: Target[]): Promise<void> {
    this.lines.keep(aBalanced(fields), targets)
    await this.clock.settle()
  }

  /** A request comes. */
  ask(wish: Partial<WorkerRequest> & { readonly name?: string } = {}): Asked {
    const controller = new AbortController()
    this.#count += 1
    const { name = `r${this.#count}`, ...rest } = wish
    const asked: Asked = { name, reservation: null, error: null, abort: () => controller.abort(new Error('gone')) }
    const wanted = { endpointId: ENDPOINT, affinity: null, avoid: [], signal: controller.signal, ...rest }
    this.lines.reserve(wanted).then(
      reservation => {
        asked.reservation = reservation
        this.served.push(name)
      },
      error => {
        asked.error = error
      },
    )
    return asked
  }

  /** A request that insists on a worker. */
  insist(worker: string, kind: 'strict' | 'strict-resume' = 'strict', name?: string): Asked {
    return this.ask({ affinity: { kind, workerId: worker as WorkerId }, ...(name === undefined ? {} : { name }) })
  }

  /** A request that gets a worker at once. */
  async claim(wish: Partial<WorkerRequest> = {}): Promise<Reservation> {
    const asked = this.ask(wish)
    await this.clock.settle()
    assert.ok(asked.reservation !== null, `it waits, or was refused: ${String(asked.error)}`)
    return asked.reservation
  }

  /** One request after another is sent to a worker, and ends like this. */
  async send(worker: string, ...outcomes: RequestOutcome[]): Promise<void> {
    for (const outcome of outcomes) {
      const affinity = { kind: 'strict', workerId: worker as WorkerId } as const
      ;(await this.claim({ affinity })).release(outcome)
    }
  }

  /** How often it was told that the load is another, since the last call. */
  async told(): Promise<number> {
    await this.clock.settle()
    const count = this.#published
    this.#published = 0
    return count
  }

  /** Requests in flight by worker. */
  get inFlight(): Record<string, number> {
    return Object.fromEntries(this.lines.load(ENDPOINT).workers.map(({ workerId, inFlight }) => [workerId, inFlight]))
  }
}

/** The status of a refusal, its words, and whether it says when to try again. */
export function refusalOf({ error }: Asked): { status: number; message: string; retries: boolean } {
  assert.ok(error instanceof AppError, String(error))
  const { status, message, retryAfterSeconds } = error
  return { status, message, retries: retryAfterSeconds !== undefined && retryAfterSeconds > 0 }
}
