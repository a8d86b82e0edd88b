import type { JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import type { Received } from '../faults/receiver.ts'
import type { Commit } from '../ledger.ts'
import type { Database } from '../store.ts'

/** Tries of one delivery at most. */
const TRIES = 3

/** An end of a job that its receiver has to be told of. */
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
 * Reports ends of jobs that their receiver is not told of, told of in other words than the client, or told of after the
 * delivery was over.
 */
export class WebhookChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #ends = new Map<JobId, End[]>()
  /** What a receiver has said 200 to, by delivery. */
  readonly #accepted = new Set<string>()
  readonly #payloads = new Map<string, string>()
  /** Final states as clients have seen them, by job. */
  readonly #seen = new Map<JobId, Set<string>>()

  constructor(report: (problem: string) => void, database: Pick<Database, 'query'>) {
    this.#report = report
    this.#database = database
  }

  /** How many ends there were that a receiver had to be told of. */
  get ends(): number {
    return [...this.#ends.values()].flat().length
  }

  /** The store has committed something. */
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

  /** A client was shown a final state by `status`. */
  saw(job: JobId, text: string): void {
    const seen = this.#seen.get(job) ?? new Set()
    this.#seen.set(job, seen.add(text))
  }

  /** A call has come to the receiver. */
  received({ url, headers, body, accepted }: Received): void {
    const id = headers['webhook-id'] ?? ''
    const [row] = this.#database.query<DeliveryRow>(`${DELIVERIES} WHERE id = ?`, id)
    const payload = JSON.parse(body) as { id: JobId; status: JobStatus }
    if (row === undefined) {
      this.#report(`delivery ${id} was sent, and is not in the store`)
      return
    }
    if (row.state !== 'PENDING') this.#report(`delivery ${id} was sent although it is ${row.state}`)
    if (row.tries >= TRIES) this.#report(`delivery ${id} was sent after ${row.tries} tries`)
    if (row.url !== url) this.#report(`delivery ${id} was sent to ${url} instead of ${row.url}`)
    if (!headers['webhook-signature']?.startsWith('v1,')) this.#report(`delivery ${id} was sent without a signature`)
    const ends = this.#ends.get(payload.id) ?? []
    if (row.job_id !== payload.id || !ends.some(({ status }) => status === payload.status)) {
      this.#report(`delivery ${id} tells of an end of job ${payload.id} as ${payload.status} that was not`)
    }
    const before = this.#payloads.get(id)
    if (before !== undefined && before !== body) this.#report(`delivery ${id} says ${body} after ${before}`)
    this.#payloads.set(id, body)
    if (accepted) this.#accepted.add(id)
  }

  /** What is still to be sent. */
  pending(): string[] {
    const rows = this.#database.query<DeliveryRow>(`${DELIVERIES} WHERE state = 'PENDING' ORDER BY id`)
    return rows.map(({ id, tries }) => `delivery ${id} waits after ${tries} tries`)
  }

  /** At the end each receiver must know, or its three tries must have failed. */
  atRest(): void {
    for (const [job, ends] of this.#ends) {
      const rows = this.#rows(job)
      if (rows.length !== ends.length)
        this.#report(`job ${job} had ${ends.length} ends, and has ${rows.length} deliveries`)
      for (const { id, state, tries } of rows) {
        if (state === 'DELIVERED' && !this.#accepted.has(id)) this.#report(`delivery ${id} is done, but nobody took it`)
        if (state === 'FAILED' && tries !== TRIES) this.#report(`delivery ${id} was given up after ${tries} tries`)
      }
      const payloads = rows.flatMap(({ id }) => this.#payloads.get(id) ?? [])
      if (payloads.length !== ends.length) continue
      for (const text of this.#seen.get(job) ?? []) {
        if (!payloads.includes(text)) this.#report(`job ${job} was shown as ${text}, its receiver was told ${payloads}`)
      }
    }
  }

  #rows(job: JobId): DeliveryRow[] {
    return this.#database.query<DeliveryRow>(`${DELIVERIES} WHERE job_id = ? ORDER BY seq`, job)
  }
}
