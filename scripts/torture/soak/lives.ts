/** The life of each job and request of the soak, from its submission until its end was read for the last time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isFinal, type Seen } from '../clients.ts'
import type { Answer, Calls } from './calls.ts'
import type { SoakEndpoints } from './endpoints.ts'
import type { ExpectedEnd, Ledger, LoadKind, SoakJob } from './ledger.ts'

/**
 * Time in which a call has to be answered, and then a job to end: the server is down for parts of it, and
 * jobs of low priority run last.
 */
const PATIENCE_MS = 900_000
const POLL_MS = 400
/** Number of jobs of which one has a webhook, and of which one is submitted again with the same key. */
const EACH = { webhook: 3, submittedAgain: 10 }
/** Time at which a final state is read again. */
const READ_AGAIN_MS = { run: 600_000, runsync: 30_000 }
/** Time for which the result of `runsync` surely exists; the server deletes it after a minute. */
const RESULT_MS = 55_000
const TIMEOUT_MS = 5_000
const BATCH = { draft: 4, added: 3 }

/** Parts that the lives share. */
export interface Soak {
  readonly calls: Calls
  readonly ledger: Ledger
  readonly endpoints: SoakEndpoints
  /** Address of the receiver of webhooks. */
  readonly webhook: string
  /** Aborts at the end of the load, which ends the waits for the next read. */
  readonly over: AbortSignal
  /** The next number of a job. */
  readonly next: () => number
}

/** The life of a job or request; resolves at its end. */
export type Life = (soak: Soak) => Promise<void>

/** Submission of a job. */
interface Submission {
  readonly kind: LoadKind
  readonly endpoint: string
  readonly input: Readonly<Record<string, unknown>>
  readonly policy?: Readonly<Record<string, unknown>>
  readonly expected: ExpectedEnd
  readonly isSync?: boolean
}

/** The lives of all kinds of load. */
export const LIVES: Readonly<Record<LoadKind, Life>> = {
  run: soak =>
    plainJob(soak, { kind: 'run', endpoint: chooseEndpoint(soak), input: { ms: upTo(400) }, expected: 'COMPLETED' }),
  runsync: soak =>
    plainJob(soak, {
      kind: 'runsync',
      endpoint: chooseEndpoint(soak),
      input: { ms: upTo(400) },
      expected: 'COMPLETED',
      isSync: true,
    }),
  'low priority': soak =>
    plainJob(soak, {
      kind: 'low priority',
      endpoint: chooseEndpoint(soak),
      input: { ms: upTo(400) },
      policy: { lowPriority: true },
      expected: 'COMPLETED',
    }),
  long: soak =>
    plainJob(soak, {
      kind: 'long',
      endpoint: chooseEndpoint(soak),
      input: { ms: 20_000 + upTo(70_000) },
      expected: 'COMPLETED',
    }),
  timeout: soak =>
    plainJob(soak, {
      kind: 'timeout',
      endpoint: chooseEndpoint(soak),
      input: { ms: 30_000 },
      policy: { executionTimeout: TIMEOUT_MS },
      expected: 'TIMED_OUT',
    }),
  failure: soak =>
    plainJob(soak, {
      kind: 'failure',
      endpoint: chooseEndpoint(soak),
      input: { ms: upTo(400), fails: true },
      expected: 'FAILED',
    }),
  cancel: cancelJob,
  stream: streamed,
  batch: batched,
  balanced,
}

async function plainJob(soak: Soak, submission: Submission): Promise<void> {
  const { job, seen: state } = await submit(soak, submission)
  // The response of `run` has the status alone, which is final when an earlier response was cut off.
  await watch(soak, job, submission.isSync === true ? state : undefined)
}

async function cancelJob(soak: Soak): Promise<void> {
  const input = { ms: 1_000 + upTo(10_000) }
  const { job } = await submit(soak, { kind: 'cancel', endpoint: chooseEndpoint(soak), input, expected: 'any' })
  await sleep(upTo(4_000))
  const path = `/v2/${job.endpoint}/cancel/${job.id}`
  const answer = await untilAnswered(soak, { name: 'cancel', path, method: 'POST' })
  if (answer.status === 200) job.expected = 'CANCELLED'
  else if (answer.status === 409) job.expected = 'COMPLETED'
  else soak.ledger.fault(answer.status === 404 ? 'lost' : 'wrong', job.id, `cancel ${answerText(answer)}`)
  await watch(soak, job)
}

async function streamed(soak: Soak): Promise<void> {
  const chunks = 3 + Math.floor(upTo(10))
  const input = { ms: upTo(3_000), chunks }
  const endpoint = soak.endpoints.streams
  const { job } = await submit(soak, { kind: 'stream', endpoint, input, expected: 'COMPLETED' })
  const read: { nonce: string; index: number }[] = []
  const path = `/v2/${endpoint}/stream/${job.id}?wait=5000`
  for (const deadline = performance.now() + PATIENCE_MS; performance.now() < deadline; ) {
    const answer = await untilAnswered(soak, { name: 'stream', path, waitMs: 5_000 })
    if (answer.status !== 200) {
      soak.ledger.fault(answer.status === 404 ? 'lost' : 'wrong', job.id, `stream ${answerText(answer)}`)
      return
    }
    const { status, stream } = answer.json as { status: string; stream: { output: (typeof read)[number] }[] }
    read.push(...stream.map(({ output }) => output))
    if (!isFinal(status)) continue
    if (status === 'COMPLETED') checkChunks(soak, job, chunks, read)
    break
  }
  await watch(soak, job)
}

/**
 * Checks that each chunk of the last attempt was read. A chunk of a response that the kill cut off may arrive twice.
 */
function checkChunks({ ledger }: Soak, { id }: SoakJob, chunks: number, read: { nonce: string; index: number }[]) {
  const nonce = read.at(-1)?.nonce
  const last = read.filter(chunk => chunk.nonce === nonce).map(({ index }) => index)
  if (last.length > new Set(last).size) ledger.count('streams with a chunk twice')
  const missing = Array.from({ length: chunks }, (_, index) => index).filter(index => !last.includes(index))
  if (missing.length > 0) ledger.fault('lost', id, `has no chunks ${missing.join(', ')} of ${chunks} in its stream`)
}

async function batched(soak: Soak): Promise<void> {
  const endpoint = chooseEndpoint(soak)
  const base = `/v2/${endpoint}/batch`
  const numbers = Array.from({ length: BATCH.draft + BATCH.added }, soak.next)
  const requests = numbers.map(n => ({ input: { n, ms: (n * 37) % 400 } }))
  const key = `soak-batch-${numbers[0]}`
  const created = await untilAnswered(soak, {
    name: 'batch',
    path: base,
    body: { requests: requests.slice(0, BATCH.draft), webhook: soak.webhook },
    idempotencyKey: key,
  })
  const id = String(created.json.id)
  if (created.status !== 200) return soak.ledger.fault('wrong', '-', `batch ${answerText(created)}`)
  const added = await untilAnswered(soak, {
    name: 'batch',
    path: `${base}/${id}/requests`,
    body: { requests: requests.slice(BATCH.draft) },
    idempotencyKey: `${key}-more`,
  })
  if (added.status !== 200 || added.json.requestTotal !== numbers.length)
    return soak.ledger.fault('wrong', id, `adding to a batch ${answerText(added)}`)
  const finalized = await untilAnswered(soak, { name: 'batch', path: `${base}/${id}/finalize`, method: 'POST' })
  // 409 means that the server received an earlier finalization, whose response was cut off.
  if (![200, 409].includes(finalized.status)) return soak.ledger.fault('wrong', id, `finalize ${answerText(finalized)}`)
  soak.ledger.batches.set(id, { id, requests: numbers.length })
  await watchBatch(soak, endpoint, id, numbers)
}

async function watchBatch(soak: Soak, endpoint: string, id: string, numbers: readonly number[]): Promise<void> {
  const path = `/v2/${endpoint}/batch/${id}/requests?limit=100`
  const page = async () => {
    const answer = await untilAnswered(soak, { name: 'batch', path })
    return (answer.json.requests ?? []) as (Seen & { id: string })[]
  }
  const first = await page()
  if (first.length !== numbers.length)
    return soak.ledger.fault('lost', id, `is a batch with ${first.length} of ${numbers.length} requests`)
  const jobs = first.map(({ id: job }, index): SoakJob => {
    const rest = { hasWebhook: false, expected: 'COMPLETED', answeredAtMs: performance.now() } as const
    return { id: job, n: numbers[index]!, kind: 'batch', endpoint, ...rest }
  })
  for (const job of jobs) soak.ledger.acknowledge(job)
  for (const deadline = performance.now() + PATIENCE_MS; performance.now() < deadline; await sleep(1_000)) {
    const states = await page()
    if (!states.every(({ status }) => isFinal(status))) continue
    for (const [index, job] of jobs.entries()) ended(soak, job, states[index]!)
    return
  }
  soak.ledger.fault('lost', id, `is a batch that was not done in ${PATIENCE_MS / 1_000} s`)
}

async function balanced({ calls, ledger, endpoints, next }: Soak): Promise<void> {
  const n = next()
  const body = { n, text: 'x'.repeat(n % 5_000) }
  const path = `/lb/${endpoints.balanced}/echo?ms=${n % 10 === 0 ? 3_000 : 10}`
  const answer = await calls.untilAnswered({ name: 'balanced', path, body }, performance.now() + PATIENCE_MS)
  if (answer.status !== 200 || answer.text !== JSON.stringify(body))
    ledger.fault('wrong', '-', `request ${n} ${answerText(answer)}`)
  ledger.count('load-balanced requests')
}

/** Submits a job until it is acknowledged. Some jobs are submitted again, which has to return the same job. */
async function submit(soak: Soak, how: Submission): Promise<{ job: SoakJob; seen: Seen }> {
  const n = soak.next()
  const hasWebhook = n % EACH.webhook === 0
  const call = {
    name: how.isSync === true ? 'runsync' : 'run',
    path: `/v2/${how.endpoint}/${how.isSync === true ? 'runsync?wait=20000' : 'run'}`,
    body: {
      input: { n, ...how.input },
      ...(how.policy === undefined ? {} : { policy: how.policy }),
      ...(hasWebhook ? { webhook: soak.webhook } : {}),
    },
    idempotencyKey: `soak-${n}`,
    waitMs: how.isSync === true ? 20_000 : 0,
  }
  const sentAtMs = performance.now()
  const answer = await untilAnswered(soak, call)
  if (answer.status !== 200) throw new Error(`${call.name} of job ${n} ${answerText(answer)}`)
  const id = String(answer.json.id)
  const { kind, endpoint, expected } = how
  const job = { id, n, kind, endpoint, hasWebhook, expected, answeredAtMs: sentAtMs }
  soak.ledger.acknowledge(job)
  if (n % EACH.submittedAgain === 0) {
    const again = await untilAnswered(soak, call)
    soak.ledger.count('jobs submitted again with the same key')
    const isOver = how.isSync === true && again.status === 409 && performance.now() - sentAtMs > RESULT_MS
    if (!isOver && (again.status !== 200 || again.json.id !== id))
      soak.ledger.fault('twice', id, `was submitted again with the same key: ${answerText(again)}`)
  }
  return { job, seen: answer.json as unknown as Seen }
}

/** Reads a job until it is final, and once more later. */
async function watch(soak: Soak, job: SoakJob, earlier?: Seen): Promise<void> {
  const state = earlier !== undefined && isFinal(earlier.status) ? earlier : await untilFinal(soak, job)
  if (state === null) return
  ended(soak, job, state)
  const readAgainMs = job.kind === 'runsync' ? READ_AGAIN_MS.runsync : READ_AGAIN_MS.run
  await sleep(upTo(readAgainMs), undefined, { signal: soak.over }).catch(() => {})
  const again = await read(soak, job)
  if (again !== null) soak.ledger.ended(job, again)
}

async function untilFinal(soak: Soak, job: SoakJob): Promise<Seen | null> {
  for (const deadline = performance.now() + PATIENCE_MS; performance.now() < deadline; await sleep(POLL_MS)) {
    const state = await read(soak, job)
    if (state === null || isFinal(state.status)) return state
  }
  soak.ledger.fault('lost', job.id, `(${job.kind}) was not final after ${PATIENCE_MS / 1_000} s`)
  return null
}

/** The status of a job; null if it does not exist, which is a fault unless its result expired. */
async function read(soak: Soak, job: SoakJob): Promise<Seen | null> {
  const answer = await status(soak, job)
  const nowMs = performance.now()
  if (answer.status === 200) {
    job.answeredAtMs = nowMs
    return answer.json as unknown as Seen
  }
  if (job.kind === 'runsync' && nowMs - job.answeredAtMs > RESULT_MS)
    soak.ledger.count('results of runsync over before they were read')
  else soak.ledger.fault('lost', job.id, `(${job.kind}) status ${answerText(answer)}`)
  return null
}

/** Reads the status of a job, for half of the jobs by `status-sync`. */
function status(soak: Soak, { endpoint, id, n }: SoakJob): Promise<Answer> {
  const path = n % 2 === 0 ? `status/${id}` : `status-sync/${id}?wait=5000`
  return untilAnswered(soak, { name: 'status', path: `/v2/${endpoint}/${path}`, waitMs: n % 2 === 0 ? 0 : 5_000 })
}

function ended({ ledger }: Soak, job: SoakJob, state: Seen): void {
  ledger.ended(job, state)
}

function untilAnswered(soak: Soak, call: Parameters<Calls['untilAnswered']>[0]): Promise<Answer> {
  return soak.calls.untilAnswered(call, performance.now() + PATIENCE_MS)
}

function answerText({ status: code, text }: Answer): string {
  return `got ${code}: ${text.slice(0, 200)}`
}

function chooseEndpoint({ endpoints }: Soak): string {
  return Math.random() < 0.5 ? endpoints.python : endpoints.node
}

function upTo(limit: number): number {
  return Math.floor(Math.random() * limit)
}
