import type { EndpointId } from '../../src/core/ids.ts'
import type { Change, Commit } from '../ledger.ts'
import { transitionFromChange } from './job-checker.ts'

/** The job counters of an endpoint. */
export interface Counters {
  readonly completed: number
  readonly failed: number
  readonly retried: number
}

/** A model of the counters of `/health`: ends and retries of jobs since the endpoint was created. */
export class CounterChecker {
  readonly #report: (problem: string) => void
  readonly #counts = new Map<EndpointId, { completed: number; failed: number; retried: number }>()

  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const change of changes) this.#count(change)
  }

  /** The counters that the endpoint should have. */
  of(endpoint: EndpointId): Counters {
    return this.#counts.get(endpoint) ?? { completed: 0, failed: 0, retried: 0 }
  }

  /** Compares the counters with those that the server shows. */
  compare(endpoint: EndpointId, shown: Counters, source: string): void {
    const counted = this.of(endpoint)
    const wrong = (['completed', 'failed', 'retried'] as const).filter(name => counted[name] !== shown[name])
    for (const name of wrong) {
      this.#report(`endpoint ${endpoint} has ${shown[name]} ${name} in ${source}, and ${counted[name]} by the changes`)
    }
  }

  #count(change: Change): void {
    const transition = transitionFromChange(change)
    if (transition === null) return
    const counts = this.#counts.get(change.endpoint) ?? { completed: 0, failed: 0, retried: 0 }
    this.#counts.set(change.endpoint, counts)
    if (change.now === 'COMPLETED') counts.completed += 1
    if (change.now === 'FAILED' || change.now === 'TIMED_OUT') counts.failed += 1
    if (transition === 'retry' || (transition === 'requeue' && change.now === 'IN_QUEUE')) counts.retried += 1
  }
}
