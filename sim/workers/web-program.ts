import type { HealthAnswer } from '../../src/core/balancing/health-check.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import { Life } from '../life.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import { drawWebBehavior, type WebBehavior } from './web-behavior.ts'

/** A request to a program failed before its response began. */
export class ConnectionProblem extends Error {
  readonly kind: 'refused' | 'broken'

  constructor(kind: 'refused' | 'broken') {
    super(`the connection was ${kind}`)
    this.kind = kind
  }
}

/** A request to a program. */
export interface WebCall {
  /** Comes back in the response. */
  readonly nonce: string
  /** Duration of the response. */
  readonly ms: number
  readonly signal: AbortSignal
}

/** The response of a program. */
export interface WebResponse {
  readonly status: number
  readonly text: string
}

/** Parts that a program uses. */
export interface WebProgramParts {
  readonly world: World
  /** Ends its process. */
  readonly exit: (worker: WorkerId, code: number) => void
}

/** Time until a refused connection is detected, in milliseconds. */
const REFUSAL_MS = 1
const NOBODY_LISTENS: HealthAnswer = { problem: 'nothing listens there', refused: true }

/** The program of a worker that serves requests: an HTTP server without sockets. */
export class WebProgram {
  readonly id: WorkerId
  readonly endpoint: string
  readonly behavior: WebBehavior
  readonly life: Life
  /** Since when health checks get 200, in monotonic milliseconds; null while they do not. */
  healthySinceMs: number | null = null
  /** Time of the first health check that got 200, in monotonic milliseconds. */
  firstHealthyMs: number | null = null
  /** Time at which its process ended. */
  endedMs: number | null = null
  /** Time at which it received SIGTERM. */
  terminatedMs: number | null = null
  readonly #parts: WebProgramParts
  readonly #random: SeededRandom
  readonly #startMs: number
  #open = 0
  #served = 0

  constructor(parts: WebProgramParts, { workerId, endpointId }: Pick<WorkerSpec, 'workerId' | 'endpointId'>) {
    const { world } = parts
    this.id = workerId
    this.endpoint = endpointId
    this.#parts = parts
    this.#random = world.random(`program ${workerId}`)
    const drawn = drawWebBehavior(this.#random, world.faults.worker)
    this.behavior = world.crashLoop ? { ...drawn, name: 'broken server', crash: 'at start', bootMs: 500 } : drawn
    this.life = new Life(world.clock)
    this.#startMs = world.clock.monotonic()
    world.count(`programs: ${this.behavior.name}`)
    world.trace.add('program', `${workerId} starts as ${this.behavior.name}`)
    this.life.onEnd(() => {
      this.endedMs = world.clock.monotonic()
      this.healthySinceMs = null
    })
    if (this.behavior.crash === 'at start') this.life.after(this.behavior.bootMs, () => this.#exit(1))
  }

  /** Its result for a health check. */
  health(): HealthAnswer {
    const nowMs = this.#parts.world.clock.monotonic()
    const result = this.#health(nowMs - this.#startMs)
    const isHealthy = 'status' in result && result.status === 200
    if (!isHealthy) this.healthySinceMs = null
    else {
      this.healthySinceMs ??= nowMs
      this.firstHealthyMs ??= nowMs
    }
    return result
  }

  /** Serves one request. @throws ConnectionProblem, or the reason of the signal */
  serve({ nonce, ms, signal }: WebCall): Promise<WebResponse> {
    const { world } = this.#parts
    const { behavior, life } = this
    const result = Promise.withResolvers<WebResponse>()
    const fail = (kind: 'refused' | 'broken') => result.reject(new ConnectionProblem(kind))
    if (!this.#listens()) {
      world.clock.after(REFUSAL_MS, () => fail('refused'))
      return result.promise
    }
    this.#open += 1
    this.#served += 1
    const endings = [life.onEnd(() => fail('broken'))]
    const leave = () => result.reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    endings.push(() => signal.removeEventListener('abort', leave))
    const takesMs = ms * behavior.slowness
    const isStuck = behavior.hangs && this.#served % 3 === 0 && !this.#isCalm()
    if (behavior.crash === 'in a request' && this.#served >= 4) life.after(takesMs / 2, () => this.#exit(1))
    else if (behavior.breaks && this.#random.chance(0.4) && !this.#isCalm())
      life.after(takesMs / 2, () => fail('broken'))
    else if (!isStuck) {
      const status = behavior.errs && this.#random.chance(0.3) ? 500 : 200
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

  /** Freezes the program: connections are still accepted, and nothing is answered. */
  freeze(): void {
    this.#parts.world.trace.add('program', `${this.id} is frozen`)
    this.healthySinceMs = null
    this.life.freeze()
  }

  /** Thaws the program. */
  thaw(): void {
    this.#parts.world.trace.add('program', `${this.id} is thawed`)
    this.life.thaw()
  }

  /** Sends SIGTERM, which the program receives when it is not frozen. */
  terminate(): void {
    this.life.deliver(() => this.#terminate())
  }

  #terminate(): void {
    if (!this.behavior.obeysTerm || this.terminatedMs !== null) return
    this.terminatedMs = this.#parts.world.clock.monotonic()
    this.#endWhenDone()
  }

  /** Kills the program. */
  die(): void {
    this.life.end()
  }

  /** True if it accepts connections. */
  #listens(): boolean {
    const { bootMs, refusesFromMs, refusesForMs } = this.behavior
    if (this.life.over || this.terminatedMs !== null) return false
    const ageMs = this.#parts.world.clock.monotonic() - this.#startMs
    if (ageMs < bootMs) return false
    return ageMs < refusesFromMs || ageMs >= refusesFromMs + refusesForMs || this.#isCalm()
  }

  #health(ageMs: number): HealthAnswer {
    const { bootMs, initialMs, unhealthyFromMs, unhealthyForMs, neverHealthy, refusesRequestsOnly } = this.behavior
    if (this.life.over || this.terminatedMs !== null || ageMs < bootMs) return NOBODY_LISTENS
    if (!refusesRequestsOnly && !this.#listens()) return NOBODY_LISTENS
    if (neverHealthy) return { status: 503 }
    if (ageMs < bootMs + initialMs) return { status: 204 }
    if (ageMs >= unhealthyFromMs && ageMs < unhealthyFromMs + unhealthyForMs && !this.#isCalm()) return { status: 503 }
    return { status: 200 }
  }

  /** True if the faults are over: it then works without faults. */
  #isCalm(): boolean {
    return this.#parts.world.faults.worker === 0
  }

  /** Ends after its open requests when it is graceful; otherwise at once. */
  #endWhenDone(): void {
    if (this.#open === 0 || !this.behavior.graceful) this.#exit(0)
  }

  #exit(code: number): void {
    const { world, exit } = this.#parts
    if (this.life.over) return
    world.trace.add('program', `${this.id} exits with ${code}`)
    if (code !== 0) world.count('program crashes')
    this.life.end()
    exit(this.id, code)
  }
}
