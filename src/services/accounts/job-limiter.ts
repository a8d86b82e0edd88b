import type { Caller } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import {
  countCall,
  type JobCount,
  type JobLimit,
  jobLimit,
  type LimitedOperation,
  NO_CALLS,
} from '../../core/jobs/job-limits.ts'
import type { Ports } from '../../ports/ports.ts'

/** Time for which the number of workers is cached. */
const WORKERS_MS = 5_000
/** Limit of idle endpoints and operations in memory. */
const MAX_KNOWN = 10_000

const nothing = () => {}

/** Limits on the job operations of each endpoint, counted by this process alone. */
export class JobLimiter {
  readonly #ports
  readonly #on
  readonly #counts = new Map<string, JobCount>()
  readonly #workers = new Map<EndpointId, { count: number; untilMs: number }>()

  /** @param on false to count nothing */
  constructor(ports: Ports, on: boolean) {
    this.#ports = ports
    this.#on = on
  }

  /**
   * Counts a call at its beginning.
   * @returns a function to call once when the call has ended
   * @throws AppError `rate_limited` when the endpoint takes no more of these now
   */
  async begin(caller: Caller, endpointId: EndpointId, operation: LimitedOperation): Promise<() => void> {
    if (!this.#on || caller.exempt) return nothing
    const limit = jobLimit(operation, await this.#countWorkers(endpointId))
    const name = `${endpointId} ${operation}`
    const decision = countCall(this.#counts.get(name) ?? NO_CALLS, limit, this.#ports.clock.now())
    if ('refused' in decision) throw refusal(operation, limit, decision)
    this.#set(name, decision.count)
    let ended = false
    return () => {
      const count = this.#counts.get(name)
      if (ended || count === undefined) return
      ended = true
      this.#counts.set(name, { ...count, open: count.open - 1 })
    }
  }

  #set(name: string, count: JobCount): void {
    if (this.#counts.size >= MAX_KNOWN && !this.#counts.has(name)) {
      for (const [idle, { open }] of this.#counts) if (open === 0) this.#counts.delete(idle)
    }
    this.#counts.set(name, count)
  }

  async #countWorkers(id: EndpointId): Promise<number> {
    const { store, clock } = this.#ports
    const cached = this.#workers.get(id)
    if (cached !== undefined && cached.untilMs > clock.now()) return cached.count
    const workers = (await store.endpoints.snapshot(id))?.workers ?? []
    const count = workers.filter(({ state }) => state === 'READY').length
    if (this.#workers.size >= MAX_KNOWN) this.#workers.clear()
    this.#workers.set(id, { count, untilMs: clock.now() + WORKERS_MS })
    return count
  }
}

function refusal(
  operation: LimitedOperation,
  { perWindow, concurrent }: JobLimit,
  { refused, retryAfterSeconds }: { refused: 'window' | 'concurrent'; retryAfterSeconds: number },
): AppError {
  const limit = refused === 'window' ? `${perWindow} calls in 10 seconds` : `${concurrent} calls at once`
  const message = `the limit of ${limit} of ${operation} on this endpoint is reached`
  return new AppError('rate_limited', message, { retryAfterSeconds })
}
