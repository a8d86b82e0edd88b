import type { JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import type { Received } from '../faults/receiver.ts'
import type { Commit } from '../ledger.ts'
import type { Database } from '../store.ts'

/** Maximum number of attempts of one delivery. */
const TRIES = 3

/** An end of a job that its webhook must report. */
interface End {
  readonly job: JobId
  readonly url: string
  readonly status: JobStatus
}

interface DeliveryRow {
  readonly id: string
  readonly job_id: JobId
  readonly job_status: JobStatus
  readonly state: 'PENDING' | 'DELIVERED' | 'FAILED'
  readonly url: string
  readonly tries: number
}

const DELIVERIES = `SELECT id, job_id, job_status, state, url,
  (SELECT COUNT(*) FROM webhook_tries WHERE delivery_id = webhook_deliveries.id) AS tries FROM webhook_deliveries`

/**
 * Reports ends of jobs that have no delivery, whose payload differs from what the client saw, or that are delivered
 * after the delivery had ended.
 */
export class WebhookChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #ends = new Map<JobId, End[]>()
  /** Deliveries to which the receiver responded with 200. */
  readonly #accepted = new Set<string>()
  readonly #payloads = new Map<string, string>()
  /** Final states that clients saw, by job. */
  readonly #seen = new Map<JobId, Set<string>>()

  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>) {
    this.#report = report
    this.#database = database
  }

  /** Number of ends that a webhook had to report. */
  get ends(): number {
    return [...this.#ends.values()].flat().length
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const { kind, job, was, now, webhook, endpoint_there } of changes) {
      if (webhook === null || was === null || isFinal(was)) continue
      const status = kind === 'delete' ? (endpoint_there === 1 ? 'TIMED_OUT' : 'CANCELLED') : now!
      if (!isFinal(status)) continue
      const ends = this.#ends.get(job) ?? []
      this.#ends.set(job, ends)
      ends.push({ job, url: webhook, status })
      const rows = this.#rows(job)
      if (rows.length !== ends.length)
        this.#report(`job ${job} has ended ${ends.length} times, and has ${rows.length} deliveries`)
    }
  }

  /** A client saw a final state in a response of `status`. */
  saw(job: JobId, text: string): void {
    const texts = this.#seen.get(job) ?? new Set()
    this.#seen.set(job, texts.add(text))
  }

  /** The receiver got a request. */
  received({ url, headers, body, accepted, isLate }: Received): void {
    const id = headers['webhook-id'] ?? ''
    const [row] = this.#database.query<DeliveryRow>(`${DELIVERIES} WHERE id = ?`, id)
    const payload = JSON.parse(body) as { id: JobId; status: JobStatus }
    if (row === undefined) {
      this.#report(`delivery ${id} was sent, and is not in the store`)
      return
    }
    if (row.state !== 'PENDING' && !isLate) this.#report(`delivery ${id} was sent although it is ${row.state}`)
    if (row.tries >= TRIES && !isLate) this.#report(`delivery ${id} was sent after ${row.tries} tries`)
    if (row.url !== url) this.#report(`delivery ${id} was sent to ${url} instead of ${row.url}`)
    if (!headers['webhook-signature']?.startsWith('v1,')) this.#report(`delivery ${id} was sent without a signature`)
    const ends = this.#ends.get(payload.id) ?? []
    if (row.job_id !== payload.id || !ends.some(({ status }) => status === payload.status)) {
      this.#report(`delivery ${id} reports an end of job ${payload.id} as ${payload.status} that did not happen`)
    }
    const previous = this.#payloads.get(id)
    if (previous !== undefined && withoutRequest(previous) !== withoutRequest(body)) {
      this.#report(`delivery ${id} says ${body} after ${previous}`)
    }
    this.#payloads.set(id, body)
    if (accepted) this.#accepted.add(id)
  }

  /** Deliveries that are not over. */
  pending(): string[] {
    const rows = this.#database.query<DeliveryRow>(`${DELIVERIES} WHERE state = 'PENDING' ORDER BY id`)
    return rows.map(({ id, tries }) => `delivery ${id} waits after ${tries} tries`)
  }

  /** At the end of a run each end is delivered, or all its attempts have failed. */
  atRest(): void {
    for (const [job, ends] of this.#ends) {
      const rows = this.#rows(job)
      if (rows.length !== ends.length)
        this.#report(`job ${job} had ${ends.length} ends, and has ${rows.length} deliveries`)
      for (const { id, state, tries } of rows) {
        if (state === 'DELIVERED' && !this.#accepted.has(id))
          this.#report(`delivery ${id} is DELIVERED, but its receiver did not accept it`)
        if (state === 'FAILED' && tries !== TRIES) this.#report(`delivery ${id} was given up after ${tries} tries`)
      }
      const payloads = rows.flatMap(({ id }) => this.#payloads.get(id) ?? [])
      if (payloads.length !== ends.length) continue
      const statuses = payloads.map(withoutRequest)
      for (const text of this.#seen.get(job) ?? []) {
        if (!statuses.includes(withoutRequest(text)))
          this.#report(`a client saw job ${job} as ${text}, its receiver got ${payloads}`)
      }
    }
  }

  #rows(job: JobId): DeliveryRow[] {
    return this.#database.query<DeliveryRow>(`${DELIVERIES} WHERE job_id = ? ORDER BY seq`, job)
  }
}

/** The members of a message about its job, without the input and the URL: the input may go between two tries. */
function withoutRequest(text: string): string {
  const message = JSON.parse(text) as Record<string, unknown>
  delete message.input
  delete message.webhook
  return JSON.stringify(message)
}
