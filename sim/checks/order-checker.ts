import type { EndpointId, JobId } from '../../src/core/ids.ts'
import type { Change, Commit } from '../ledger.ts'

interface Waiting {
  readonly job: JobId
  readonly low: 0 | 1
  /** Grows with each submission and retry. A job that is taken back keeps it. */
  readonly place: number
  readonly queuedAtMs: number
  expiresAtMs: number
}

/** Reports claims that jump the line: first in, first out, jobs of low priority after all others. */
export class OrderChecker {
  readonly #report: (problem: string) => void
  readonly #nowMs: () => number
  readonly #lines = new Map<EndpointId, Map<JobId, Waiting>>()
  readonly #places = new Map<JobId, Waiting>()

  /** @param nowMs what the clock on the wall shows */
  constructor(report: (problem: string) => void, nowMs: () => number) {
    this.#report = report
    this.#nowMs = nowMs
  }

  /** The store has committed something. */
  committed({ changes }: Commit): void {
    const claimed = changes.filter(isClaim)
    const here = new Set(claimed.map(({ job }) => job))
    for (const change of changes) {
      if (isClaim(change)) this.#checkClaim(change, here)
      this.#note(change)
    }
  }

  /** Jobs that wait at an endpoint, the first to be claimed first. */
  line(endpoint: EndpointId): JobId[] {
    const waiting = [...(this.#lines.get(endpoint)?.values() ?? [])]
    return waiting.sort((a, b) => a.low - b.low || a.place - b.place).map(({ job }) => job)
  }

  /** Jobs of this commit are left out: the rows of one statement come in any order. */
  #checkClaim({ job, endpoint, n }: Change, here: ReadonlySet<JobId>): void {
    const mine = this.#places.get(job)
    if (mine === undefined) return
    for (const other of this.#lines.get(endpoint)?.values() ?? []) {
      if (here.has(other.job) || other.expiresAtMs <= this.#nowMs() || other.low > mine.low) continue
      // Where the clock was set back in between, and the server started anew, nobody knows which was first.
      const isBefore = other.low < mine.low || (other.place < mine.place && other.queuedAtMs <= mine.queuedAtMs)
      if (isBefore) this.#report(`job ${job} was claimed (change ${n}) before job ${other.job}, which was there first`)
    }
  }

  #note(change: Change): void {
    const { kind, job, endpoint, was, now, n, low, queued_at_ms: queuedAtMs, expires_at_ms: expiresAtMs } = change
    const line = this.#lines.get(endpoint) ?? new Map<JobId, Waiting>()
    this.#lines.set(endpoint, line)
    const isNew = kind === 'insert' || was === 'FAILED' || was === 'TIMED_OUT'
    if (isNew && now === 'IN_QUEUE') this.#places.set(job, { job, low, place: n, queuedAtMs, expiresAtMs })
    const place = this.#places.get(job)
    if (kind === 'delete') this.#places.delete(job)
    if (now !== 'IN_QUEUE') line.delete(job)
    else if (place !== undefined) {
      place.expiresAtMs = expiresAtMs
      line.set(job, place)
    }
  }
}

function isClaim({ was, now }: Change): boolean {
  return was === 'IN_QUEUE' && now === 'IN_PROGRESS'
}
