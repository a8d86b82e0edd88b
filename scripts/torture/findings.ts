/** What a torture run has shown, and what of it must not be. */
import { MAX_LOST_ATTEMPTS } from '../../src/core/jobs/job.ts'
import { type Acknowledged, type Attempt, type Fault, isFinal, outcome, type Seen, type Watcher } from './clients.ts'

/** One kill of the server. */
export interface Killing {
  /** From the kill until it answered again. */
  readonly awayMs: number
}

/** All that a run has seen. */
export interface Evidence {
  readonly acknowledged: readonly Acknowledged[]
  readonly killings: readonly Killing[]
  readonly watcher: Watcher
  readonly attempts: readonly Attempt[]
  /** What webhooks told, by job and delivery. */
  readonly ends: ReadonlyMap<string, ReadonlyMap<string, Seen>>
  readonly exitCode: number | null
  readonly leftOver: number
  readonly seconds: number
}

/** The outcome of a run. */
export interface Findings {
  /** Name and value of each line of the report. */
  readonly rows: readonly (readonly [string, string])[]
  readonly faults: readonly Fault[]
}

/** Holds the evidence against what is promised. */
export function judge(jobs: number, evidence: Evidence): Findings {
  const { acknowledged, watcher, attempts, ends } = evidence
  const byJob = Map.groupBy(attempts, ({ job }) => job)
  const ids = new Set(acknowledged.map(({ id }) => id))
  const faults: Fault[] = [...watcher.faults]
  for (const job of acknowledged) {
    const told = [...(ends.get(job.id)?.values() ?? [])]
    const what = faultOf(job, watcher.finals.get(job.id), byJob.get(job.id) ?? [], told)
    if (what !== null) faults.push({ id: job.id, what })
  }
  if (ids.size !== jobs) faults.push({ id: '-', what: `${jobs} jobs have ${ids.size} different ids` })
  for (const id of new Set([...byJob.keys(), ...ends.keys()])) {
    if (!ids.has(id)) faults.push({ id, what: 'ran although no answer named it: it was submitted twice' })
  }
  if (evidence.exitCode !== 0) faults.push({ id: '-', what: `the server ended with ${evidence.exitCode}` })
  if (evidence.leftOver > 0) faults.push({ id: '-', what: `${evidence.leftOver} processes of workers are left over` })
  return { rows: rowsOf(evidence, byJob), faults }
}

/** What is wrong with an acknowledged job; null when nothing is. */
function faultOf(
  { n, id }: Acknowledged,
  seen: Seen | undefined,
  attempts: readonly Attempt[],
  told: readonly Seen[],
): string | null {
  if (seen === undefined || !isFinal(seen.status)) return 'is not final'
  if (seen.status === 'COMPLETED') {
    if (seen.output?.n !== n || seen.output.job !== id) return `has the output ${JSON.stringify(seen.output)}`
    if (!attempts.some(({ nonce }) => nonce === seen.output?.nonce)) return 'has an output that no attempt made'
  } else if (!failedFairly(seen, attempts)) return `is ${seen.status}: ${seen.error ?? 'no reason'}`
  if (told.length !== 1) return `had ${told.length} ends by what webhooks told`
  if (JSON.stringify(outcome(told[0]!)) !== JSON.stringify(outcome(seen)))
    return 'has another end than its webhook told'
  return null
}

/** A job whose worker was lost too often may fail, with that reason; one that never ran may not. */
function failedFairly({ status, error }: Seen, attempts: readonly Attempt[]): boolean {
  return status === 'FAILED' && attempts.length > 0 && error?.includes(`lost ${MAX_LOST_ATTEMPTS} times`) === true
}

function rowsOf(evidence: Evidence, byJob: ReadonlyMap<string, readonly Attempt[]>): (readonly [string, string])[] {
  const { acknowledged, killings, watcher, attempts, ends, seconds } = evidence
  const count = (status: string) => [...watcher.finals.values()].filter(seen => seen.status === status).length
  const away = killings.map(({ awayMs }) => awayMs).sort((a, b) => a - b)
  const more = [...byJob.values()].filter(({ length }) => length > 1)
  const ms = (value: number | undefined) => `${Math.round(value ?? 0)} ms`
  return [
    ['jobs acknowledged', `${acknowledged.length}`],
    ['  of which sent more than once', `${acknowledged.filter(({ sent }) => sent > 1).length}`],
    ['kills of the server', `${killings.length}`],
    ['  until it answered again', `${ms(away[Math.floor(away.length / 2)])}, at most ${ms(away.at(-1))}`],
    ['completed', `${count('COMPLETED')}`],
    [`failed after ${MAX_LOST_ATTEMPTS} lost attempts`, `${count('FAILED')}`],
    ['attempts', `${attempts.length}`],
    ['jobs with more than one attempt', `${more.length}`],
    ['ends told by webhooks', `${[...ends.values()].reduce((sum, { size }) => sum + size, 0)}`],
    ['missing', `${acknowledged.filter(({ id }) => !watcher.finals.has(id)).length}`],
    ['seconds', seconds.toFixed(1)],
  ]
}
