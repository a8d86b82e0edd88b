/** The clients of the torture run: they submit jobs, retry until each is acknowledged, and record the responses. */
import { setTimeout as sleep } from 'node:timers/promises'
import { patient } from '../../test/support/patience.ts'
import type { RestartableServer } from './server.ts'

const PAUSE_MS = 50
const ANSWER_MS = 20_000
const READERS = 8

/** The fields of a `status` response that the run compares. */
export interface Seen {
  readonly status: string
  readonly output?: Attempt
  readonly error?: string
}

/** One attempt, recorded by the handler. */
export interface Attempt {
  readonly job: string
  readonly n: number
  readonly nonce: string
  readonly worker: string
  /** Number of the release that its worker runs. */
  readonly release: string
}

/** A job that the server acknowledged. */
export interface Acknowledged {
  readonly n: number
  readonly id: string
  /** Number of requests until it was acknowledged. */
  readonly sent: number
}

/** A violated guarantee. */
export interface Fault {
  readonly id: string
  readonly what: string
}

const FINAL: ReadonlySet<string> = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'])

/** True if a job with this status never changes again. */
export function isFinal(status: string): boolean {
  return FINAL.has(status)
}

/** Sends one request. Resolves to null if the server was down or unavailable. */
export async function request(
  server: RestartableServer,
  path: string,
  body?: unknown,
  method: 'GET' | 'POST' | 'PATCH' = body === undefined ? 'GET' : 'POST',
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; json: Record<string, unknown> } | null> {
  try {
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', ...headers },
      signal: AbortSignal.timeout(patient(ANSWER_MS)),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const json = (await response.json()) as Record<string, unknown>
    return response.status === 429 || response.status === 503 ? null : { status: response.status, json }
  } catch {
    // The connection was refused, reset or cut off: the caller sends the request again.
    return null
  }
}

/** Options of the submission. */
export interface Submitting {
  readonly jobs: number
  readonly clients: number
  /** The time over which the jobs are submitted. */
  readonly forMs: number
  readonly endpoint: string
  /** Webhook address of the jobs. */
  readonly webhook: string
  readonly deadline: number
}

/**
 * Submits all jobs, each one with the same Idempotency-Key until it is acknowledged.
 * @returns the jobs in the order of the responses
 */
export async function submitAll(server: RestartableServer, how: Submitting): Promise<Acknowledged[]> {
  const acknowledged: Acknowledged[] = []
  const began = performance.now()
  let next = 0
  const client = async () => {
    for (let n = next++; n < how.jobs; n = next++) {
      await sleep(Math.max(0, began + (n * how.forMs) / how.jobs - performance.now()))
      acknowledged.push(await submit(server, how, n))
    }
  }
  await Promise.all(Array.from({ length: how.clients }, client))
  return acknowledged
}

/** Submits one job until it is acknowledged. @throws Error if it is refused or not acknowledged in time */
export async function submit(
  server: RestartableServer,
  how: Pick<Submitting, 'endpoint' | 'webhook' | 'deadline'>,
  n: number,
): Promise<Acknowledged> {
  // Short and long jobs alternate, so that the server is killed in all phases of a job.
  const body = { input: { n, ms: (n * 37) % 400 }, webhook: how.webhook }
  for (let tries = 1; performance.now() < how.deadline; tries += 1) {
    const response = await request(server, `/v2/${how.endpoint}/run`, body, 'POST', {
      'idempotency-key': `torture-${n}`,
    })
    if (response?.status === 200) return { n, id: String(response.json.id), sent: tries }
    if (response !== null) throw new Error(`run got ${response.status}: ${JSON.stringify(response.json)}`)
    await sleep(PAUSE_MS)
  }
  throw new Error(`job number ${n} was not acknowledged in time`)
}

/** Reads the jobs again and again. A final state must not change. */
export class Watcher {
  readonly #server
  readonly #endpoint
  readonly #finals = new Map<string, Seen>()
  readonly faults: Fault[] = []

  constructor(server: RestartableServer, endpoint: string) {
    this.#server = server
    this.#endpoint = endpoint
  }

  /** The final states so far, by job. */
  get finals(): ReadonlyMap<string, Seen> {
    return this.#finals
  }

  /** Reads a job once. @returns true if the server responded */
  async read(id: string): Promise<boolean> {
    const response = await request(this.#server, `/v2/${this.#endpoint}/status/${id}`)
    if (response === null) return false
    const previous = this.#finals.get(id)
    if (response.status !== 200) {
      this.faults.push({ id, what: `status got ${response.status} after the job was acknowledged` })
      return true
    }
    const state = response.json as unknown as Seen
    if (previous !== undefined && JSON.stringify(outcome(previous)) !== JSON.stringify(outcome(state))) {
      this.faults.push({ id, what: `was ${previous.status} and is ${state.status} with another outcome` })
    } else if (isFinal(state.status)) this.#finals.set(id, state)
    return true
  }

  /** Reads each of the jobs at least once, and until it is final. */
  async untilFinal(ids: readonly string[], deadline: number): Promise<void> {
    const waiting = [...ids]
    const reader = async () => {
      for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
        while (!(await this.#isOver(id)) && performance.now() < deadline) await sleep(PAUSE_MS)
      }
    }
    await Promise.all(Array.from({ length: READERS }, reader))
  }

  async #isOver(id: string): Promise<boolean> {
    const hasResponse = await this.read(id)
    return hasResponse && (this.#finals.has(id) || this.faults.some(fault => fault.id === id))
  }
}

/** The fields of a final job that never change. */
export function outcome({ status, output, error }: Seen): object {
  return { status, output, error }
}
