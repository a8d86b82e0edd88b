/** The findings of a torture run: its figures and the violated guarantees. */
import { MAX_LOST_ATTEMPTS } from '../../src/core/jobs/job.ts'
import { type Acknowledged, type Attempt, type Fault, isFinal, outcome, type Seen, type Watcher } from './clients.ts'

/** One kill of the server. */
export interface ServerKill {
  /** Time from the kill until the server responded again. */
  readonly downMs: number
  /** Number of workers that ran although the store said that they are frozen, or the other way round. */
  readonly outOfStep: number
}

/** All records of a run. */
export interface Evidence {
  readonly acknowledged: readonly Acknowledged[]
  readonly serverKills: readonly ServerKill[]
  readonly watcher: Watcher
  readonly attempts: readonly Attempt[]
  /** Payloads of webhooks, by job and delivery. */
  readonly ends: ReadonlyMap<string, ReadonlyMap<string, Seen>>
  readonly exitCode: number | null
  readonly leftOver: number
  readonly seconds: number
  /** Violations found during the run. */
  readonly faults: readonly Fault[]
  readonly freezes: Freezes
}

/** Numbers of actions on frozen workers; all 0 if no worker was frozen. */
export interface Freezes {
  readonly freezes: number
  readonly thaws: number
  readonly releases: number
  /** Number of stops of workers in the process table. */
  readonly stops: number
  /** Number of kills after the store had changed and before the processes had. */
  readonly killsBetween: number
}

/** The outcome of a run. */
export interface Findings {
  /** Name and value of each row of the report. */
  readonly rows: readonly (readonly [string, string])[]
  readonly faults: readonly Fault[]
}

/** Compares the evidence with the guarantees. */
export function judge(jobs: number, evidence: Evidence): Findings {
  const { acknowledged, watcher, attempts, ends } = evidence
  const byJob = Map.groupBy(attempts, ({ job }) => job)
  const ids = new Set(acknowledged.map(({ id }) => id))
  const faults: Fault[] = [...evidence.faults, ...watcher.faults]
  for (const job of acknowledged) {
    const reported = [...(ends.get(job.id)?.values() ?? [])]
    const fault = findFault(job, watcher.finals.get(job.id), byJob.get(job.id) ?? [], reported)
    if (fault !== null) faults.push({ id: job.id, what: fault })
  }
  if (ids.size !== jobs) faults.push({ id: '-', what: `${jobs} jobs have ${ids.size} different ids` })
  for (const id of new Set([...byJob.keys(), ...ends.keys()])) {
    if (!ids.has(id)) faults.push({ id, what: 'ran although no response named it: it was submitted twice' })
  }
  if (evidence.exitCode !== 0) faults.push({ id: '-', what: `the server ended with ${evidence.exitCode}` })
  if (evidence.leftOver > 0) faults.push({ id: '-', what: `${evidence.leftOver} processes of workers are left over` })
  return { rows: evidenceRows(evidence, byJob), faults }
}

/** The violated guarantee of an acknowledged job; null if none is. */
function findFault(
  { n, id }: Acknowledged,
  state: Seen | undefined,
  attempts: readonly Attempt[],
  reported: readonly Seen[],
): string | null {
  if (state === undefined || !isFinal(state.status)) return 'is not final'
  if (state.status === 'COMPLETED') {
    if (state.output?.n !== n || state.output.job !== id) return `has the output ${JSON.stringify(state.output)}`
    if (!attempts.some(({ nonce }) => nonce === state.output?.nonce)) return 'has an output that no attempt made'
  } else if (!failedFairly(state, attempts)) return `is ${state.status}: ${state.error ?? 'no reason'}`
  if (reported.length !== 1) return `had ${reported.length} ends by its webhooks`
  if (JSON.stringify(outcome(reported[0]!)) !== JSON.stringify(outcome(state)))
    return 'has another end than its webhook reported'
  return null
}

/** True if a failure is allowed: the worker of the job was lost too often, the job names that reason, and it ran. */
function failedFairly({ status, error }: Seen, attempts: readonly Attempt[]): boolean {
  return status === 'FAILED' && attempts.length > 0 && error?.includes(`lost ${MAX_LOST_ATTEMPTS} times`) === true
}

function evidenceRows(
  evidence: Evidence,
  byJob: ReadonlyMap<string, readonly Attempt[]>,
): (readonly [string, string])[] {
  const { acknowledged, serverKills, watcher, attempts, ends, seconds } = evidence
  const { freezes, thaws, releases, stops, killsBetween } = evidence.freezes
  const count = (status: string) => [...watcher.finals.values()].filter(state => state.status === status).length
  const downTimes = serverKills.map(({ downMs }) => downMs).sort((a, b) => a - b)
  const repeated = [...byJob.values()].filter(({ length }) => length > 1)
  const ms = (value: number | undefined) => `${Math.round(value ?? 0)} ms`
  const frozen: [string, string][] = [
    ['freezes of workers', `${freezes}`],
    ['thaws of workers', `${thaws}`],
    ['stops in the process table', `${stops}`],
    ['kills between store and process', `${killsBetween}`],
    ['new releases', `${releases}`],
  ]
  return [
    ['jobs acknowledged', `${acknowledged.length}`],
    ['  of which sent more than once', `${acknowledged.filter(({ sent }) => sent > 1).length}`],
    ['kills of the server', `${serverKills.length}`],
    [
      '  until it responded again',
      `${ms(downTimes[Math.floor(downTimes.length / 2)])}, at most ${ms(downTimes.at(-1))}`,
    ],
    ...(freezes === 0 ? [] : frozen),
    ['completed', `${count('COMPLETED')}`],
    [`failed after ${MAX_LOST_ATTEMPTS} lost attempts`, `${count('FAILED')}`],
    ['attempts', `${attempts.length}`],
    ['jobs with more than one attempt', `${repeated.length}`],
    ['ends reported by webhooks', `${[...ends.values()].reduce((sum, { size }) => sum + size, 0)}`],
    ['missing', `${acknowledged.filter(({ id }) => !watcher.finals.has(id)).length}`],
    ['seconds', seconds.toFixed(1)],
  ]
}
