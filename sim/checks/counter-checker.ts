import type { EndpointId } from '../../src/core/ids.ts'
import type { Change, Commit } from '../ledger.ts'
import { transitionOf } from './job-checker.ts'

/** What an endpoint has counted. */
export interface Counters {
  readonly completed: number
  readonly failed: number
  readonly retried: number
}

/** A model of what `/health` counts: ends and second tries of jobs since the endpoint was made. */
export class CounterChecker {
  readonly #report: (problem: string) => void
  readonly #counts = new Map<EndpointId, { completed: number; failed: number; retried: number }>()

  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** The store has committed something. */
  committed({ changes }: Commit): void {
    for (const change of changes) this.#count(change)
  }

  /** What the endpoint should have counted. */
  of(endpoint: EndpointId): Counters {
    return this.#counts.get(endpoint) ?? { completed: 0, failed: 0, retried: 0 }
  }

  /** Compares with what the endpoint says. */
  compare(endpoint: EndpointId, said: Counters, where: string): void {
    const counted = this.of(endpoint)
    const wrong = (['completed', 'failed', 'retried'] as const).filter(name => counted[name] !== said[name])
    for (const name of wrong) {
      this.#report(`endpoint ${endpoint} has ${said[name]} ${name} in ${where}, and ${counted[name]} by the changes`)
    }
  }

  #count(change: Change): void {
    const transition = transitionOf(change)
    if (transition === null) return
    const counts = this.#counts.get(change.endpoint) ?? { completed: 0, failed: 0, retried: 0 }
    this.#counts.set(change.endpoint, counts)
    if (change.now === 'COMPLETED') counts.completed += 1
    if (change.now === 'FAILED' || change.now === 'TIMED_OUT') counts.failed += 1
    if (transition === 'retry' || (transition === 'requeue' && change.now === 'IN_QUEUE')) counts.retried += 1
  }
}
