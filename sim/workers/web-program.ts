import type { HealthAnswer } from '../../src/core/balancing/health-check.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { drawWebBehaviour, type WebBehaviour } from './web-behaviour.ts'

/** How a request to a program fails before its answer begins. */
export class ConnectionProblem extends Error {
  readonly kind: 'unreachable' | 'broken'

  constructor(kind: 'unreachable' | 'broken') {
    super(`the connection was ${kind}`)
    this.kind = kind
  }
}

/** What a program is asked for. */
export interface WebCall {
  /** Comes back in the answer. */
  readonly nonce: string
  /** How long the answer takes. */
  readonly ms: number
  readonly signal: AbortSignal
}

/** What a program answers. */
export interface WebAnswer {
  readonly status: number
  readonly text: string
}

/** What a program can do to the world around it. */
export interface WebSurroundings {
  readonly world: World
  /** Its process ends by itself. */
  readonly exit: (worker: WorkerId, code: number) => void
}

/** A refused connection is noticed at once, or almost. */
const REFUSAL_MS = 1
const NOBODY_LISTENS: HealthAnswer = { problem: 'nothing listens there', refused: true }

/** The program of a worker that serves requests: an HTTP server without sockets. */
export class WebProgram {
  readonly id: WorkerId
  readonly endpoint: string
  readonly behaviour: WebBehaviour
  readonly life: Life
  /** Since when each health check was answered 200, in monotonic milliseconds; null while they are not. */
  wellSinceMs: number | null = null
  /** The first health check that was answered 200. */
  firstWellMs: number | null = null
  /** When its process has ended. */
  endedMs: number | null = null
  /** When it was asked to end. */
  terminatedMs: number | null = null
  readonly #around: WebSurroundings
  readonly #random: SeededRandom
  readonly #startMs: number
  #open = 0
  #served = 0

  constructor(around: WebSurroundings, { workerId, endpointId }: WorkerSpec) {
    const { world } = around
    this.id = workerId
    this.endpoint = endpointId
    this.#around = around
    this.#random = world.random(`program ${workerId}`)
    const drawn = drawWebBehaviour(this.#random, world.faults.worker)
    this.behaviour = world.crashLoop ? { ...drawn, name: 'broken server', crash: 'at start', bootMs: 500 } : drawn
    this.life = new Life(world.clock)
    this.#startMs = world.clock.monotonic()
    world.count(`programs: ${this.behaviour.name}`)
    world.trace.add('program', `${workerId} starts as ${this.behaviour.name}`)
    this.life.onEnd(() => {
      this.endedMs = world.clock.monotonic()
      this.wellSinceMs = null
    })
    if (this.behaviour.crash === 'at start') this.life.after(this.behaviour.bootMs, () => this.#exit(1))
  }

  /** What it answers to a health check. */
  health(): HealthAnswer {
    const nowMs = this.#around.world.clock.monotonic()
    const answer = this.#health(nowMs - this.#startMs)
    const isWell = 'status' in answer && answer.status === 200
    if (!isWell) this.wellSinceMs = null
    else {
      this.wellSinceMs ??= nowMs
      this.firstWellMs ??= nowMs
    }
    return answer
  }

  /** Answers one request. @throws ConnectionProblem, or the reason of the signal */
  serve({ nonce, ms, signal }: WebCall): Promise<WebAnswer> {
    const { world } = this.#around
    const { behaviour, life } = this
    const result = Promise.withResolvers<WebAnswer>()
    const fail = (kind: 'unreachable' | 'broken') => result.reject(new ConnectionProblem(kind))
    if (!this.#listens()) {
      world.clock.after(REFUSAL_MS, () => fail('unreachable'))
      return result.promise
    }
    this.#open += 1
    this.#served += 1
    const endings = [life.onEnd(() => fail('broken'))]
    const leave = () => result.reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    endings.push(() => signal.removeEventListener('abort', leave))
    const takesMs = ms * behaviour.slowness
    const isStuck = behaviour.hangs && this.#served % 3 === 0 && !this.#isCalm()
    if (behaviour.crash === 'in a request' && this.#served >= 4) life.after(takesMs / 2, () => this.#exit(1))
    else if (behaviour.breaks && this.#random.chance(0.4) && !this.#isCalm())
      life.after(takesMs / 2, () => fail('broken'))
    else if (!isStuck) {
      const status = behaviour.errs && this.#random.chance(0.3) ? 500 : 200
      life.after(takesMs, () => result.resolve({ status, text: JSON.stringify({ nonce, worker: this.id }) }))
    }
    const over = () => {
      for (const end of endings) end()
      this.#open -= 1
      if (this.terminatedMs !== null) this.#endWhenDone()
    }
    result.promise.then(over, over)
    return result.promise
  }

  /** It is asked to end. */
  terminate(): void {
    if (!this.behaviour.obeysTerm || this.terminatedMs !== null) return
    this.terminatedMs = this.#around.world.clock.monotonic()
    this.#endWhenDone()
  }

  /** It has been killed. */
  die(): void {
    this.life.end()
  }

  /** Whether requests reach it, however well it is. */
  #listens(): boolean {
    const { bootMs, deafFromMs, deafForMs } = this.behaviour
    if (this.life.over || this.terminatedMs !== null) return false
    const ageMs = this.#around.world.clock.monotonic() - this.#startMs
    if (ageMs < bootMs) return false
    return ageMs < deafFromMs || ageMs >= deafFromMs + deafForMs || this.#isCalm()
  }

  #health(ageMs: number): HealthAnswer {
    const { bootMs, initialMs, illFromMs, illForMs, neverWell, deafToRequestsOnly } = this.behaviour
    if (this.life.over || this.terminatedMs !== null || ageMs < bootMs) return NOBODY_LISTENS
    if (!deafToRequestsOnly && !this.#listens()) return NOBODY_LISTENS
    if (neverWell) return { status: 503 }
    if (ageMs < bootMs + initialMs) return { status: 204 }
    if (ageMs >= illFromMs && ageMs < illFromMs + illForMs && !this.#isCalm()) return { status: 503 }
    return { status: 200 }
  }

  /** Once the faults are over, nothing new goes wrong in it. */
  #isCalm(): boolean {
    return this.#around.world.faults.worker === 0
  }

  /** A server that ends in order serves what it has. */
  #endWhenDone(): void {
    if (this.#open === 0 || !this.behaviour.graceful) this.#exit(0)
  }

  #exit(code: number): void {
    const { world, exit } = this.#around
    if (this.life.over) return
    world.trace.add('program', `${this.id} exits with ${code}`)
    if (code !== 0) world.count('program crashes')
    this.life.end()
    exit(this.id, code)
  }
}
