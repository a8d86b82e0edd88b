import type { QueuedWorker } from './placement.ts'
import type { Worker } from './worker.ts'

/**
 * Phases of a worker, finer than its state. `queued` waits for a place on a machine, `downloading` for the models
 * of its endpoint, `placing` is being given one; `ready` has asked for a job, even if it holds none; `frozen`
 * keeps its memory and runs nothing.
 */
export const WORKER_PHASES = [
  'queued',
  'downloading',
  'placing',
  'pulling',
  'starting',
  'initializing',
  'ready',
  'frozen',
  'draining',
  'stopping',
  'exited',
] as const
/** One of {@link WORKER_PHASES}. */
export type WorkerPhase = (typeof WORKER_PHASES)[number]

/** The phases of a cold start, from the decision for a worker to its first request for a job. */
export const COLD_START_PHASES = ['queued', 'downloading', 'pulling', 'starting', 'initializing'] as const
/** One of {@link COLD_START_PHASES}. */
export type ColdStartPhase = (typeof COLD_START_PHASES)[number]

/** A period of a worker's life. */
export interface TimeStep {
  readonly phase: WorkerPhase
  readonly startedAtMs: number
  /** Duration in milliseconds; up to now for the last step of a worker that has not ended. */
  readonly ms: number
}

/** The present phase of a worker. */
export interface PhaseNow {
  readonly phase: WorkerPhase
  readonly sinceMs: number
}

/** Instants from which a time line is made. */
export type TimedWorker = Pick<
  Worker,
  | 'state'
  | 'createdAtMs'
  | 'placedAtMs'
  | 'downloadStartedAtMs'
  | 'downloadEndedAtMs'
  | 'pullStartedAtMs'
  | 'pullEndedAtMs'
  | 'startedAtMs'
  | 'readyAtMs'
  | 'frozenAtMs'
  | 'thawedAtMs'
  | 'stopRequestedAtMs'
  | 'stoppingAtMs'
  | 'exitedAtMs'
>

/** Instants from which the time line of a worker without a place is made. */
export type TimedQueuedWorker = Pick<QueuedWorker, 'queuedAtMs' | 'downloadStartedAtMs' | 'downloadEndedAtMs'>

/**
 * The known instants of a worker, each with the phase that begins then; `exited` is the last one of an ended
 * worker.
 */
function phaseMarks(worker: TimedWorker): { phase: WorkerPhase; atMs: number }[] {
  const { state, createdAtMs, placedAtMs, startedAtMs, pullStartedAtMs, stopRequestedAtMs } = worker
  const undecided = placedAtMs === null && startedAtMs === null && pullStartedAtMs === null && state === 'STARTING'
  const stoppingAtMs = worker.stoppingAtMs ?? (state === 'DRAINING' ? null : stopRequestedAtMs)
  const instants: [phase: WorkerPhase, atMs: number | null][] = [
    [placedAtMs !== null ? 'queued' : undecided ? 'placing' : 'starting', createdAtMs],
    ['downloading', worker.downloadStartedAtMs],
    ['queued', worker.downloadEndedAtMs],
    ['starting', placedAtMs],
    ['pulling', pullStartedAtMs],
    ['starting', worker.pullEndedAtMs],
    ['initializing', startedAtMs],
    ['ready', worker.readyAtMs],
    ['frozen', worker.frozenAtMs],
    ['ready', worker.thawedAtMs],
    ['draining', stoppingAtMs === stopRequestedAtMs ? null : stopRequestedAtMs],
    ['stopping', stoppingAtMs],
    ['exited', worker.exitedAtMs],
  ]
  const marks = instants.flatMap(([phase, atMs]) => (atMs === null ? [] : [{ phase, atMs }]))
  // A fast worker asks for a job before its start is recorded, and clocks can be set back: the event that is later in
  // the life of a worker counts.
  for (let index = marks.length - 2; index >= 0; index -= 1) {
    marks[index]!.atMs = Math.min(marks[index]!.atMs, marks[index + 1]!.atMs)
  }
  return marks
}

/**
 * The phases of a worker, in order and without gaps, from the decision for it. Steps without a duration are
 * omitted, except the present one; nothing follows the end of a worker.
 */
export function workerTimeLine(worker: TimedWorker, nowMs: number): TimeStep[] {
  return stepsFromMarks(phaseMarks(worker), nowMs)
}

/** {@link workerTimeLine} of a worker without a place. Its last step is the present one. */
export function queuedWorkerTimeLine(
  { queuedAtMs, downloadStartedAtMs, downloadEndedAtMs }: TimedQueuedWorker,
  nowMs: number,
): TimeStep[] {
  const instants: [phase: WorkerPhase, atMs: number | null][] = [
    ['queued', queuedAtMs],
    ['downloading', downloadStartedAtMs],
    ['queued', downloadEndedAtMs],
  ]
  const marks = instants.flatMap(([phase, atMs]) => (atMs === null ? [] : [{ phase, atMs }]))
  return stepsFromMarks(marks, nowMs)
}

function stepsFromMarks(marks: readonly { phase: WorkerPhase; atMs: number }[], nowMs: number): TimeStep[] {
  return marks.flatMap(({ phase, atMs }, index) => {
    const next = marks[index + 1]
    if (phase === 'exited' || next?.atMs === atMs) return []
    return [{ phase, startedAtMs: atMs, ms: Math.max(0, (next?.atMs ?? nowMs) - atMs) }]
  })
}

/** The present phase of a worker, and its beginning. */
export function presentPhase(worker: TimedWorker): PhaseNow {
  const last = phaseMarks(worker).at(-1)!
  return { phase: last.phase, sinceMs: last.atMs }
}

/** Duration of each phase of its cold start, in milliseconds; null for a worker that never asked for a job. */
export function coldStartTimes(worker: TimedWorker): Readonly<Record<ColdStartPhase, number>> | null {
  if (worker.readyAtMs === null) return null
  const spent = { queued: 0, downloading: 0, pulling: 0, starting: 0, initializing: 0 }
  for (const { phase, ms } of workerTimeLine(worker, worker.readyAtMs)) {
    if (phase in spent) spent[phase as ColdStartPhase] += ms
  }
  return spent
}
