/** The clients of the torture run: they submit, never give a job up, and write down what they were told. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { MortalServer } from './server.ts'

const PAUSE_MS = 50
const ANSWER_MS = 20_000
const READERS = 8

/** What `status` says of a job, as far as the run compares it. */
export interface Seen {
  readonly status: string
  readonly output?: Attempt
  readonly error?: string
}

/** One attempt, as the handler noted it. */
export interface Attempt {
  readonly job: string
  readonly n: number
  readonly nonce: string
  readonly worker: string
}

/** A job that was answered for. */
export interface Acknowledged {
  readonly n: number
  readonly id: string
  /** How often it was sent until the answer came. */
  readonly sent: number
}

/** Something that must not be. */
export interface Fault {
  readonly id: string
  readonly what: string
}

const FINAL: ReadonlySet<string> = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'])

/** Whether a job in this state never changes again. */
export function isFinal(status: string): boolean {
  return FINAL.has(status)
}

/** One request; null when the server was away or said that it is not able now. */
export async function request(
  server: MortalServer,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; json: Record<string, unknown> } | null> {
  try {
    const answer = await fetch(`${server.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', ...headers },
      signal: AbortSignal.timeout(ANSWER_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const json = (await answer.json()) as Record<string, unknown>
    return answer.status === 429 || answer.status === 503 ? null : { status: answer.status, json }
  } catch {
    // Refused, reset, cut off in the middle of the answer: it is asked again.
    return null
  }
}

/** How jobs are submitted. */
export interface Submitting {
  readonly jobs: number
  readonly clients: number
  /** The time over which the jobs are spread. */
  readonly forMs: number
  readonly endpoint: string
  /** Where the jobs' webhooks go. */
  readonly webhook: string
  readonly deadline: number
}

/**
 * Submits all jobs, each again with the same Idempotency-Key until it is answered for.
 * @returns in the order of the answers
 */
export async function submitAll(server: MortalServer, how: Submitting): Promise<Acknowledged[]> {
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

async function submit(server: MortalServer, how: Submitting, n: number): Promise<Acknowledged> {
  // Short ones and long ones, so that the server dies in all phases of a job.
  const body = { input: { n, ms: (n * 37) % 400 }, webhook: how.webhook }
  for (let sent = 1; performance.now() < how.deadline; sent += 1) {
    const answer = await request(server, `/v2/${how.endpoint}/run`, body, { 'idempotency-key': `torture-${n}` })
    if (answer?.status === 200) return { n, id: String(answer.json.id), sent }
    if (answer !== null) throw new Error(`run answered ${answer.status}: ${JSON.stringify(answer.json)}`)
    await sleep(PAUSE_MS)
  }
  throw new Error(`job number ${n} was not acknowledged in time`)
}

/** Reads the jobs over and over. What is final once must be the same ever after. */
export class Watcher {
  readonly #server: MortalServer
  readonly #endpoint: string
  readonly #finals = new Map<string, Seen>()
  readonly faults: Fault[] = []

  constructor(server: MortalServer, endpoint: string) {
    this.#server = server
    this.#endpoint = endpoint
  }

  /** The final states so far, by job. */
  get finals(): ReadonlyMap<string, Seen> {
    return this.#finals
  }

  /** Looks at a job once. @returns whether the server answered */
  async look(id: string): Promise<boolean> {
    const answer = await request(this.#server, `/v2/${this.#endpoint}/status/${id}`)
    if (answer === null) return false
    const before = this.#finals.get(id)
    if (answer.status !== 200) {
      this.faults.push({ id, what: `status answered ${answer.status} after the job was acknowledged` })
      return true
    }
    const seen = answer.json as unknown as Seen
    if (before !== undefined && JSON.stringify(outcome(before)) !== JSON.stringify(outcome(seen))) {
      this.faults.push({ id, what: `was ${before.status} and is ${seen.status} with another outcome` })
    } else if (isFinal(seen.status)) this.#finals.set(id, seen)
    return true
  }

  /** Looks at each of the jobs at least once, again while it is not final. */
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
    const answered = await this.look(id)
    return answered && (this.#finals.has(id) || this.faults.some(fault => fault.id === id))
  }
}

/** What of a final job never changes. */
export function outcome({ status, output, error }: Seen): object {
  return { status, output, error }
}
