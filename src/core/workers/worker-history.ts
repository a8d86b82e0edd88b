import { type ReportedPlace, reclaimText } from './platform-report.ts'
import { exitText, type StopReason, type Worker } from './worker.ts'
import { problemText } from './worker-problem.ts'

/** One event in a worker's life, as a sentence. */
export interface WorkerHistoryEntry {
  readonly atMs: number
  readonly line: string
}

/**
 * The events of a worker's life, in order. All of them come from the worker's record: a restart of the server
 * gives the same lines, and new lines only follow older ones.
 */
export function workerHistory(worker: Worker): WorkerHistoryEntry[] {
  const lines: WorkerHistoryEntry[] = []
  const add = (atMs: number | null, line: string) => {
    if (atMs !== null) lines.push({ atMs, line })
  }
  const { createdAtMs, startedAtMs, readyAtMs, stopRequestedAtMs, stoppingAtMs, exitedAtMs } = worker
  add(createdAtMs, `created for version ${worker.version} of endpoint ${worker.endpointId}, driver ${worker.driver}`)
  if (worker.platform?.place != null) add(worker.placedAtMs, placedText(worker.platform.place))
  add(startedAtMs, `started after ${duration(createdAtMs, startedAtMs)}`)
  const first = worker.serves === null ? 'asked for its first job' : 'passed its first health check'
  add(readyAtMs, `${first} ${duration(createdAtMs, readyAtMs)} after it was created${sdkText(worker)}`)
  add(worker.frozenAtMs, 'frozen: it keeps its memory and runs nothing')
  add(worker.thawedAtMs, `thawed after ${duration(worker.frozenAtMs ?? 0, worker.thawedAtMs)}`)
  if (worker.problem !== null) add(problemAtMs(worker), `problem: ${problemText(worker.problem)}`)
  if (stopRequestedAtMs !== stoppingAtMs)
    add(stopRequestedAtMs, `gets no more ${worker.serves === null ? 'jobs' : 'requests'}: ${stopReasonText(worker)}`)
  add(stoppingAtMs, stopRequestedAtMs === stoppingAtMs ? `asked to end: ${stopReasonText(worker)}` : 'asked to end')
  add(exitedAtMs, endText(worker))
  // The sort is stable, so simultaneous events keep the order above.
  return lines.sort((a, b) => a.atMs - b.atMs)
}

/** Records of older versions do not contain the time of a problem. */
function problemAtMs({ problemAtMs: atMs, stopRequestedAtMs, exitedAtMs }: Worker): number | null {
  return atMs ?? stopRequestedAtMs ?? exitedAtMs
}

function endText(worker: Worker): string {
  const cause = worker.exit === null ? 'ended' : exitText(worker, worker.exit)
  if (worker.exit?.cause.kind === 'reclaimed') return cause
  if (worker.startedAtMs === null) return `could not be started: ${cause}`
  return worker.serves === null ? `${cause}, after ${finishedJobsText(worker)}` : cause
}

function placedText({ node, gpuType, gpuCount }: ReportedPlace): string {
  return `placed on node ${node}${gpuCount === 0 ? '' : ` with ${gpuCount} x ${gpuType ?? 'GPU'}`}`
}

function sdkText({ sdk }: Worker): string {
  return sdk === null ? '' : `, with ${sdk}`
}

function finishedJobsText({ jobsFinished }: Worker): string {
  return jobsFinished === 1 ? '1 finished job' : `${jobsFinished} finished jobs`
}

function duration(fromMs: number, toMs: number | null): string {
  const ms = Math.max(0, (toMs ?? fromMs) - fromMs)
  return ms < 10_000 ? `${ms} ms` : `${Math.round(ms / 1000)} s`
}

const REASONS: Readonly<Record<StopReason, string>> = {
  idle: 'it was idle for the idle timeout',
  scaled_down: 'fewer workers are needed',
  outdated: 'its endpoint has a newer version',
  refresh: 'it asked for a fresh worker',
  cancelled_job: 'it did not release a job that was cancelled or timed out',
  timed_out_job: 'it did not release a job that timed out',
  lost_lease: 'it lost a job',
  reclaimed: 'its platform takes it away',
  unhealthy: 'it is unhealthy',
  wedged: 'its loop is stuck',
  silent: 'it sent nothing',
  hung_start: 'it never asked for a job',
  failed_start: 'it could not start',
  never_healthy: 'it was never healthy',
  endpoint_deleted: 'its endpoint was deleted',
  server_stopped: 'the server stops',
  requested: 'a user requested it',
  evicted: 'another endpoint needs its place',
  frozen_too_long: 'it was frozen as long as frozen workers are kept',
  over_share: 'it used more of its GPU than its share, and a neighbor failed for want of memory',
  memory_short: 'the memory of the machine is short, and it was frozen the longest',
  suspend_failed: 'the driver of its GPU lost it',
  address_changed: 'the server is at another address',
}

function stopReasonText({ stopReason, platform }: Worker): string {
  if (stopReason === 'reclaimed' && platform?.leaves != null) return `it ${reclaimText(platform.leaves)}`
  return stopReason === null ? 'it is to end' : REASONS[stopReason]
}
