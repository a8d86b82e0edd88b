/** Compares the promises to the soak with its observations, and writes the report. */
import { MAX_LOST_ATTEMPTS } from '../../../src/core/jobs/job.ts'
import { type Attempt, outcome, type Seen } from '../clients.ts'
import type { Memory, Silence } from './health.ts'
import type { FaultKind, Ledger, SoakJob } from './ledger.ts'

/** All records of a soak. */
export interface SoakEvidence {
  readonly ledger: Ledger
  readonly attempts: readonly Attempt[]
  /** Jobs that `GET /requests` lists at the end: the status of each one, by id. */
  readonly records: ReadonlyMap<string, string>
  /** Payloads of webhooks, by job and delivery, and the number of requests of each delivery. */
  readonly ends: ReadonlyMap<string, ReadonlyMap<string, Seen>>
  readonly webhookRequests: ReadonlyMap<string, number>
  /** Time from each kill until the server responded again, in milliseconds. */
  readonly downMs: readonly number[]
  /** Memory samples in the order of time. */
  readonly memory: readonly Memory[]
  readonly silence: Readonly<Record<'running' | 'killed', Silence>>
  readonly exitCode: number | null
  readonly leftOver: number
  /** Troubles that were caused with the disk and with the clock. */
  readonly disk: string
  readonly clock: string
  readonly diskMb: { readonly start: number; readonly end: number }
}

/** Compares promises and observations. Faults go to the ledger. */
export function judgeSoak(evidence: SoakEvidence): void {
  const { ledger, attempts, records, ends } = evidence
  const byJob = Map.groupBy(attempts, ({ job }) => job)
  for (const job of ledger.jobs.values()) {
    const state = ledger.finals.get(job.id)
    const record = records.get(job.id)
    if (record === undefined) ledger.fault('lost', job.id, `(${job.kind}) has no record at the end`)
    // A job without an observed end has a fault already, or its result expired.
    if (state === undefined) continue
    const fault = findFault(job, state, byJob.get(job.id) ?? [])
    if (fault !== null) ledger.fault('wrong', job.id, `(${job.kind}) ${fault}`)
    if (record !== undefined && record !== state.status)
      ledger.fault('wrong', job.id, `was ${state.status} and its record is ${record}`)
    judgeWebhook(ledger, job, state, ends)
  }
  for (const { id, requests } of ledger.batches.values()) {
    const payloads = [...(ends.get(id)?.values() ?? [])] as unknown as { requestTotal: number }[]
    if (payloads.length !== 1)
      ledger.fault(payloads.length === 0 ? 'lost' : 'twice', id, `is a batch with ${payloads.length} ends`)
    if (payloads.some(({ requestTotal }) => requestTotal !== requests)) ledger.fault('wrong', id, 'has another size')
  }
  for (const id of byJob.keys())
    if (!ledger.jobs.has(id)) ledger.fault('twice', id, 'ran although no response named it: it was submitted twice')
  if (evidence.exitCode !== 0) ledger.fault('server', '-', `the server ended with ${evidence.exitCode}`)
  if (evidence.leftOver > 0) ledger.fault('server', '-', `${evidence.leftOver} processes of workers are left over`)
}

/** The violated guarantee of a job that has ended; null if none is. */
function findFault({ n, id, expected }: SoakJob, state: Seen, attempts: readonly Attempt[]): string | null {
  if (failedFairly(state, attempts)) return null
  if (expected !== 'any' && state.status !== expected)
    return `is ${state.status} and not ${expected}: ${state.error ?? 'no reason'}`
  if (state.status === 'FAILED' && !state.error?.includes(`job ${n} fails as it should`))
    return `failed with ${state.error ?? 'no reason'}`
  if (state.status !== 'COMPLETED') return null
  const outputs = Array.isArray(state.output) ? (state.output as Attempt[]) : [state.output]
  if (outputs.length === 0 || outputs.some(output => output?.n !== n || output.job !== id))
    return `has the output ${JSON.stringify(state.output)?.slice(0, 300)}`
  const attempt = attempts.find(({ nonce }) => nonce === outputs[0]?.nonce)
  return attempt === undefined || outputs.some(output => output?.nonce !== attempt.nonce)
    ? 'has an output that no attempt made'
    : null
}

/** True if the worker of the job was lost too often, which is an allowed failure. */
function failedFairly({ status, error }: Seen, attempts: readonly Attempt[]): boolean {
  return status === 'FAILED' && attempts.length > 0 && error?.includes(`lost ${MAX_LOST_ATTEMPTS} times`) === true
}

function judgeWebhook(ledger: Ledger, { id, hasWebhook }: SoakJob, state: Seen, ends: SoakEvidence['ends']): void {
  if (!hasWebhook) return
  const payloads = [...(ends.get(id)?.values() ?? [])]
  if (payloads.length === 0) ledger.fault('lost', id, `is ${state.status}, and its webhook was not called`)
  else if (payloads.length > 1) ledger.fault('twice', id, `had ${payloads.length} ends by its webhook`)
  else if (JSON.stringify(outcome(payloads[0]!)) !== JSON.stringify(outcome(state)))
    ledger.fault('wrong', id, `has another end than its webhook reported: ${JSON.stringify(payloads[0]).slice(0, 300)}`)
}

/** Name and value of each row of the report. */
export function soakRows(evidence: SoakEvidence): (readonly [string, string])[] {
  const { ledger, attempts, ends, webhookRequests, downMs, silence } = evidence
  const byJob = Map.groupBy(attempts, ({ job }) => job)
  const jobs = [...ledger.jobs.values()]
  const kinds = [...Map.groupBy(jobs, ({ kind }) => kind)].sort(([a], [b]) => a.localeCompare(b))
  const finals = [...ledger.finals]
  const count = (status: string) => `${finals.filter(([, state]) => state.status === status).length}`
  const lostAttempts = finals.filter(([id, state]) => failedFairly(state, byJob.get(id) ?? []))
  const faults = (kind: FaultKind) => `${ledger.faults.filter(fault => fault.kind === kind).length}`
  const sortedDown = [...downMs].sort((a, b) => a - b)
  const counted = (name: string) => `${ledger.counts.get(name) ?? 0}`
  const deliveries = [...ends.values()].reduce((sum, { size }) => sum + size, 0)
  const withWebhook = jobs.filter(({ hasWebhook }) => hasWebhook).length + ledger.batches.size
  return [
    ['minutes', (ledger.seconds / 60).toFixed(1)],
    ['jobs acknowledged', `${jobs.length}`],
    ...kinds.map(([kind, kindJobs]): [string, string] => [`  ${kind}`, `${kindJobs.length}`]),
    ['batches acknowledged', `${ledger.batches.size}`],
    ['load-balanced requests answered', counted('load-balanced requests')],
    ['submitted again with the same key', counted('jobs submitted again with the same key')],
    ['lost', faults('lost')],
    ['twice', faults('twice')],
    ['wrong', faults('wrong')],
    ['other faults of the server', faults('server')],
    ['completed', count('COMPLETED')],
    ['failed', count('FAILED')],
    [`  after ${MAX_LOST_ATTEMPTS} lost attempts`, `${lostAttempts.length}`],
    ['cancelled', count('CANCELLED')],
    ['timed out', count('TIMED_OUT')],
    ['attempts', `${attempts.length}`],
    ['jobs with more than one attempt', `${[...byJob.values()].filter(({ length }) => length > 1).length}`],
    ['streams with a chunk twice', counted('streams with a chunk twice')],
    ['webhooks acknowledged', `${withWebhook}`],
    ['webhooks delivered', `${deliveries}`],
    ['  of which called again', `${[...webhookRequests.values()].filter(requests => requests > 1).length}`],
    ['kills of the server', `${downMs.length}`],
    ['  until it responded again', `${ms(sortedDown[sortedDown.length >> 1])}, at most ${ms(sortedDown.at(-1))}`],
    ['longest silence of a running server', silenceText(silence.running)],
    ['longest silence around a kill', silenceText(silence.killed)],
    ['full disk', evidence.disk],
    ['step of the clock', evidence.clock],
    ['memory of the server', memoryText(evidence.memory.map(({ server }) => server))],
    ['memory of the relay', memoryText(evidence.memory.map(({ relay }) => relay))],
    ['data directory', `${evidence.diskMb.start} MB at the start, ${evidence.diskMb.end} MB at the end`],
    ['results of runsync over before read', counted('results of runsync over before they were read')],
    ['503 without Retry-After', counted('503 without Retry-After')],
    ['load held back', counted('load held back')],
    ...[...ledger.refusals].sort().map(([reason, times]): [string, string] => [`refused ${reason}`, `${times}`]),
  ]
}

function ms(value: number | undefined): string {
  return `${Math.round(value ?? 0)} ms`
}

function silenceText({ ms: longest, atS }: Silence): string {
  return `${ms(longest)}, which ended at ${Math.round(atS)} s`
}

/** Mean memory of the first and of the last minute. */
function memoryText(samples: readonly (number | null)[]): string {
  const measured = samples.filter(sample => sample !== null)
  const mean = (some: readonly number[]) => Math.round(some.reduce((sum, one) => sum + one, 0) / some.length)
  if (measured.length === 0) return 'not measured'
  return `${mean(measured.slice(0, 12))} MB at the start, ${mean(measured.slice(-12))} MB at the end, at most ${Math.max(...measured)} MB`
}
