/** The title and tone of each cause. The server decides everything else about it. */
import type { EndpointOverview } from '../client/api-types.d.ts'

/** The cause of a wait or a problem, as the server names it. */
export type Cause = NonNullable<EndpointOverview['why']>['cause']

/** Tone of a cause: something to fix, a wait that somebody may shorten, work in progress, or nothing. */
export type CauseTone = 'bad' | 'wait' | 'busy' | 'good'

interface CauseLook {
  /** The cause in a few words. */
  readonly title: string
  readonly tone: CauseTone
  /** True where the facts are the output of a worker. */
  readonly isPrinted?: boolean
}

/** The look of each cause. */
export const CAUSES: Readonly<Record<Cause, CauseLook>> = {
  nothing_waits: { title: 'Nothing waits', tone: 'good' },
  finished: { title: 'Finished', tone: 'good' },
  running: { title: 'Workers work', tone: 'busy' },
  store_damaged: { title: 'The database is damaged', tone: 'bad' },
  store_full: { title: 'The disk of the database is full', tone: 'bad' },
  about_to_start: { title: 'A worker is about to start', tone: 'busy' },
  paused: { title: 'Paused', tone: 'wait' },
  image_error: { title: 'The image cannot be started', tone: 'bad' },
  model_error: { title: 'A model cannot be downloaded', tone: 'bad' },
  engine_away: { title: 'The container engine does not respond', tone: 'bad' },
  secret_missing: { title: 'A secret is missing', tone: 'bad' },
  volume_missing: { title: 'A volume is missing', tone: 'bad' },
  settings_invalid: { title: 'A setting is invalid', tone: 'bad' },
  crash_loop: { title: 'Workers crash', tone: 'bad', isPrinted: true },
  out_of_memory: { title: 'Workers run out of memory', tone: 'bad', isPrinted: true },
  fitness_failed: { title: 'A fitness check fails', tone: 'bad', isPrinted: true },
  hung_start: { title: 'Workers do not finish their start', tone: 'bad', isPrinted: true },
  unhealthy: { title: 'A worker is unhealthy', tone: 'bad' },
  never_healthy: { title: 'Workers never get healthy', tone: 'bad', isPrinted: true },
  models_downloading: { title: 'Models are downloaded', tone: 'busy' },
  worker_starting: { title: 'A worker starts', tone: 'busy' },
  worker_restarting: { title: 'Old workers finish first', tone: 'busy' },
  max_reached: { title: 'All allowed workers are busy', tone: 'wait' },
  no_capacity: { title: 'No room for a worker', tone: 'wait' },
  throttled: { title: 'No room for more workers', tone: 'wait' },
  unschedulable: { title: 'No such node in the cluster', tone: 'wait' },
  cluster_quota: { title: 'A quota of the cluster is reached', tone: 'wait' },
  cluster_away: { title: 'The cluster does not respond', tone: 'bad' },
  volume_pending: { title: 'A volume does not exist yet', tone: 'wait' },
  node_lost: { title: 'A node of the cluster is lost', tone: 'wait' },
  low_priority: { title: 'Only jobs of low priority', tone: 'wait' },
  batch_turn: { title: 'Batches take turns', tone: 'busy' },
  preempted: { title: 'Paused for higher priority', tone: 'wait' },
  runs_alone: { title: 'A job that runs alone', tone: 'busy' },
  rollout_stopped: { title: 'The rollout has stopped', tone: 'bad', isPrinted: true },
}

function findLook(cause: string): CauseLook | undefined {
  return CAUSES[cause as Cause]
}

/** The tone of a cause. A newer server may send causes that this page does not list. */
export function causeTone(cause: string): CauseTone {
  return findLook(cause)?.tone ?? 'wait'
}

/** The cause in a few words. */
export function causeTitle(cause: string): string {
  return findLook(cause)?.title ?? 'Waiting'
}

/** True where the facts of a cause are the output of a worker. */
export function isPrinted(cause: string): boolean {
  return findLook(cause)?.isPrinted === true
}

/** True for a wait that began just now, so that it may end before anybody has read about it. */
export function isPassing({ cause, sinceMs }: { cause: string; sinceMs: number | null }, ms: number, nowMs: number) {
  if (causeTone(cause) === 'bad' || cause === 'paused' || sinceMs === null) return false
  // A browser clock that is behind must not hide anything.
  return nowMs >= sinceMs && nowMs - sinceMs < ms
}

/** A clause of the server as a sentence. */
export function sentence(clause: string): string {
  return clause.charAt(0).toUpperCase() + clause.slice(1)
}

/** The line that names the error in the output of a worker; null if none does. */
export function errorLine(lines: readonly string[]): string | null {
  return lines.findLast(line => /^(?:[\w.]*(?:Error|Exception)\b|fatal\b)/i.test(line)) ?? null
}
