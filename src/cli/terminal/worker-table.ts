/** Workers as tables and text for a terminal. */
import { type DownloadProgress, downloadPercent } from '../../core/models/download-progress.ts'
import { roughDuration } from '../../core/observing/explain-facts.ts'
import { type Column, column, durationText, onOneLine, shown, type TableRow, timeText } from './table.ts'

/** The columns of a list of workers; rows are as REST shows them, with `endpointId`. */
export const WORKER_COLUMNS: readonly Column[] = [
  ...[column('ID', 'id'), column('ENDPOINT', 'endpointId')],
  { title: 'PHASE', text: row => `${phaseText(row)}${row.isStale === true ? ' (outdated)' : ''}` },
  { title: 'FOR', text: row => (row.status === 'EXITED' ? '-' : durationText(elapsedMs(row.phaseSince))) },
  { title: 'GPU', text: shortGpuText },
  { title: 'JOBS', text: row => shown(row.jobsHeld) },
  { title: 'WHY', text: row => shown(row.reason) },
]

/** The columns of a list of workers, with their nodes where some are on a platform. */
export function workerColumns(rows: readonly TableRow[]): readonly Column[] {
  if (rows.every(({ node }) => typeof node !== 'string')) return WORKER_COLUMNS
  const before = WORKER_COLUMNS.findIndex(({ title }) => title === 'GPU') + 1
  return [...WORKER_COLUMNS.slice(0, before), column('NODE', 'node'), ...WORKER_COLUMNS.slice(before)]
}

/** The phase of a worker, with the progress of the download of its image or its models. */
export function phaseText({ phase, pullPercent, download }: TableRow): string {
  const models = (download as DownloadProgress | null | undefined) ?? null
  const percent = models === null ? pullPercent : downloadPercent(models)
  return typeof percent === 'number' ? `${phase} ${Math.round(percent)}%` : shown(phase)
}

/** The GPUs of a worker for a list: `1x RTX 4090`, or a dash. */
function shortGpuText({ gpuCount, gpuTypeId }: TableRow): string {
  if (gpuCount === 0 || gpuCount === undefined) return '-'
  return `${gpuCount}x ${typeText(gpuTypeId).replace(/^NVIDIA (?:GeForce )?/, '')}`
}

/** A worker that waits for a place on its platform has GPUs of a type that is not known yet. */
function typeText(gpuTypeId: unknown): string {
  return gpuTypeId === null || gpuTypeId === undefined ? 'GPU' : shown(gpuTypeId)
}

/** The GPUs of a worker: `2x NVIDIA L40`, a type alone for one, or a dash. */
export function gpuText({ gpuCount, gpuTypeId }: TableRow): string {
  if (gpuCount === 0 || gpuCount === undefined) return '-'
  return gpuCount === 1 ? typeText(gpuTypeId) : `${gpuCount}x ${typeText(gpuTypeId)}`
}

/** Isolation and resource limits of a worker: `cage, with limits on memory, disk`. */
function isolationText({ isolation, limits }: TableRow): string {
  const held = Array.isArray(limits) && limits.length > 0 ? `, with limits on ${limits.join(', ')}` : ''
  return `${shown(isolation)}${held}`
}

/** One worker for people: its state, its history, and how it ended. */
export function workerText(worker: TableRow): string {
  const exit = worker.exit as { cause: string; code: number | null; lastLines?: readonly string[] } | null
  const jobs = (worker.jobs ?? []) as readonly { id: string; startedAt: string | null }[]
  const steps = (worker.timeLine ?? []) as readonly { phase: string; startedAt: string; ms: number }[]
  const fields: [name: string, value: string][] = [
    ['endpoint', shown(worker.endpointId)],
    ['status', `${worker.status}${worker.isStale === true ? ' (outdated)' : ''}`],
    ['phase', `${phaseText(worker)}, for ${roughDuration(elapsedMs(worker.phaseSince))}`],
    ['why', shown(worker.reason)],
    ['version', shown(worker.version)],
    ['image', shown(worker.image)],
    ['gpu', gpuText(worker)],
    ['node', shown(worker.node)],
    ['vcpus', shown(worker.vcpus)],
    ['memory', typeof worker.memoryMb === 'number' ? `${worker.memoryMb} MB` : '-'],
    ['isolation', isolationText(worker)],
    ['sdk', shown(worker.sdk)],
    ['finished', `${shown(worker.jobsFinished)} jobs`],
    ...jobs.map(({ id, startedAt }): [string, string] => [
      'holds',
      `${id}, for ${roughDuration(elapsedMs(startedAt))}`,
    ]),
    ['asked to end', shown(worker.stopReason)],
  ]
  const details = fields.filter(([, value]) => value !== '-').map(([name, value]) => `${name.padEnd(14)}${value}`)
  const line = steps.map(({ phase, startedAt, ms }, index) => {
    const goesOn = index === steps.length - 1 && worker.phase !== 'exited'
    return `  ${timeText(Date.parse(startedAt))}  ${phase.padEnd(14)}${durationText(ms)}${goesOn ? ' so far' : ''}`
  })
  if (typeof worker.exitedAt === 'string') line.push(`  ${timeText(Date.parse(worker.exitedAt))}  exited`)
  const end = exit === null ? [] : [`ended: ${exit.cause}`, ...(exit.lastLines ?? []).map(text => `  | ${text}`)]
  return `${[`worker ${worker.id}`, ...details, 'time line (UTC)', ...line, ...end].map(onOneLine).join('\n')}\n`
}

/** Milliseconds since an instant from the server. */
function elapsedMs(instant: unknown): number {
  return typeof instant === 'string' ? Math.max(0, Date.now() - Date.parse(instant)) : 0
}

/** Joins the rows of running and ended workers, newest first, without duplicates. */
export function withEnded(workers: readonly TableRow[], ended: readonly TableRow[]): TableRow[] {
  const endedIds = new Set(ended.map(row => row.id))
  return [...workers.filter(row => !endedIds.has(row.id)), ...ended]
}
