/** Workers in words. */
import type { EndedWorker, Worker, WorkerDetail, WorkerPhase } from '../../../client/api-types.d.ts'
import { bytes, plural } from '../../../format.ts'

/** Meaning of the state of a worker for people, as `console/parts/basic.tsx` shows it. */
export interface WorkerState {
  readonly tone: 'good' | 'busy' | 'wait' | 'bad' | 'off' | 'frozen'
  readonly text: string
}

/** A worker of a list, or a single one. */
export type AnyWorker = Worker | EndedWorker | WorkerDetail

/** Phases of a start, in any order that a driver has them. */
export const START_PHASES: ReadonlySet<WorkerPhase> = new Set([
  'queued',
  'downloading',
  'placing',
  'pulling',
  'starting',
  'initializing',
])

const PHASE_TEXTS: Readonly<Record<WorkerPhase, string>> = {
  queued: 'waits for a place',
  downloading: 'downloads its models',
  placing: 'gets a place',
  pulling: 'pulls its image',
  starting: 'starts',
  initializing: 'initializes',
  ready: 'ready',
  frozen: 'frozen',
  draining: 'finishes its jobs',
  stopping: 'stops',
  exited: 'ended',
}

/** The phase in words. */
export function phaseText(phase: WorkerPhase): string {
  return PHASE_TEXTS[phase]
}

/** The state of a worker: its health first, then its phase, then its work. */
export function workerState({ phase, status, pullPercent, download }: AnyWorker): WorkerState {
  if (phase === 'exited') return { tone: 'off', text: 'ended' }
  if (status === 'UNHEALTHY')
    return { tone: 'bad', text: phase === 'ready' ? 'unhealthy' : `unhealthy, ${phaseText(phase)}` }
  if (phase === 'frozen') return { tone: 'frozen', text: 'frozen' }
  if (phase === 'ready')
    return status === 'RUNNING' ? { tone: 'busy', text: 'running' } : { tone: 'good', text: 'idle' }
  if (phase === 'draining' || phase === 'stopping') return { tone: 'off', text: phaseText(phase) }
  if (phase === 'queued') return { tone: 'wait', text: phaseText(phase) }
  return { tone: 'busy', text: `${phaseText(phase)}${downloadProgress(pullPercent, download)}` }
}

function downloadProgress(pullPercent: number | null, download: AnyWorker['download']): string {
  if (pullPercent !== null) return ` ${Math.round(pullPercent)}%`
  if (download === null) return ''
  const { receivedBytes, totalBytes } = download
  return totalBytes === null ? ` ${bytes(receivedBytes)}` : ` ${bytes(receivedBytes)} of ${bytes(totalBytes)}`
}

/** The end of an ended worker; one that was stopped on request did not fail. */
export function workerEnd({ exit, stopReason }: Pick<EndedWorker, 'exit' | 'stopReason'>): WorkerState {
  const reason =
    stopReason === null ? null : stopReason === 'requested' ? 'asked to end' : stopReason.replaceAll('_', ' ')
  if (exit === null) return { tone: 'off', text: reason ?? 'ended' }
  if (reason !== null) return { tone: 'off', text: `${reason}; ${exit.cause}` }
  return { tone: exit.code === 0 ? 'off' : 'bad', text: exit.cause }
}

/** Milliseconds from the decision for a worker until it was ready; null before that. */
export function startMs({ createdAt, readyAt }: Pick<EndedWorker, 'createdAt' | 'readyAt'>): number | null {
  return readyAt === null ? null : Math.max(0, Date.parse(readyAt) - Date.parse(createdAt))
}

/**
 * The hardware of a worker, such as `2 × NVIDIA L4`, or `NVIDIA L4 on gpu-1` on a platform with nodes.
 * @param wanted number of GPUs that its endpoint asks for; a worker that did not start has none of them yet
 */
export function gpuText(
  { gpuCount, gpuTypeId, node, startedAt }: Pick<Worker, 'gpuCount' | 'gpuTypeId' | 'node' | 'startedAt'>,
  wanted: number,
): string {
  if (gpuCount === 0 && startedAt === null && wanted > 0) return `waits for ${plural(wanted, 'GPU')}`
  const hardware = gpuCount === 0 ? 'CPU' : `${gpuCount === 1 ? '' : `${gpuCount} × `}${gpuTypeId ?? 'GPU'}`
  return node === null ? hardware : `${hardware} on ${node}`
}
