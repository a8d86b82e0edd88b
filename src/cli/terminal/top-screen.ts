/** The content of `runyard top`, as lines for a screen of a given size. */
import type { EndpointType } from '../../core/endpoints/endpoint.ts'
import type { DownloadProgress } from '../../core/models/download-progress.ts'
import { counted } from '../../core/observing/explain-facts.ts'
import type { ExplanationView } from '../../core/observing/explanation.ts'
import type { WorkerCounts } from '../../core/observing/worker-status.ts'
import { inGb } from '../../core/placement/card-room.ts'
import { durationText, onOneLine } from './table.ts'
import { gpuText, phaseText } from './worker-table.ts'

/** A worker as the server reports it. */
export interface TopWorker {
  readonly id: string
  readonly status: string
  readonly phase: string
  readonly phaseSince: string
  readonly pullPercent: number | null
  readonly download: DownloadProgress | null
  readonly isStale: boolean
  readonly gpuCount: number
  readonly gpuTypeId: string | null
  /** On a platform that places workers; null on a machine. */
  readonly node: string | null
  readonly reason: string | null
  /** Number of its jobs or requests. */
  readonly jobsHeld: number
  readonly jobs: readonly { readonly id: string; readonly startedAtMs: number | null }[]
}

/** An endpoint as the server reports it. */
export interface TopEndpoint {
  readonly id: string
  readonly name: string
  readonly type: EndpointType
  readonly workersMin: number
  readonly workersMax: number
  readonly finished: number
  readonly jobs: { readonly inQueue: number; readonly inProgress: number; readonly headQueuedAtMs: number | null }
  readonly summary: WorkerCounts
  readonly explanation: ExplanationView | null
  readonly workers: readonly TopWorker[]
}

/** A GPU of the machine as the server reports it. */
export interface TopGpu {
  readonly index: number
  readonly name: string
  readonly problem: string | null
  /** In MiB; null if it is not measured. */
  readonly memory: { readonly totalMb: number; readonly freeMb: number; readonly foreignMb: number } | null
  readonly holders: readonly {
    readonly endpointId: string
    readonly endpointName: string | null
    readonly asleep: boolean
    readonly usedMb: number | null
    /** Left out by older servers. */
    readonly shareMb?: number | null
    readonly beyondMb?: number
  }[]
}

/** Response of the server, at one instant of its clock. */
export interface TopAnswer {
  readonly atMs: number
  readonly endpoints: readonly TopEndpoint[]
  readonly more: boolean
  /** Left out for a key without the rights of the operator. */
  readonly gpus?: readonly TopGpu[]
}

/** Style of a line. */
export type Style = 'head' | 'good' | 'busy' | 'bad' | 'dim'

/** A line with one style. */
export interface ScreenLine {
  readonly text: string
  readonly style: Style | null
}

/** The content of the screen besides the response. */
export interface Around {
  readonly url: string
  /** Finished jobs per second, by endpoint id; missing if not known yet. */
  readonly rates: ReadonlyMap<string, number>
  /** The problem of the last refresh; null if it succeeded. */
  readonly problem: string | null
  readonly columns: number
  readonly rows: number
}

/** The lines of a screen, cut to its width and height. */
export function topScreen(answer: TopAnswer, around: Around): ScreenLine[] {
  const busy = answer.endpoints.filter(isBusy)
  const quiet = answer.endpoints.filter(endpoint => !isBusy(endpoint))
  const columns = columnsFor(answer, busy, around.columns)
  const gpus = (answer.gpus ?? []).map(gpuLine)
  const lines: ScreenLine[] = [
    ...summary(answer, around),
    ...(gpus.length > 0 ? [...gpus, { text: '', style: null }] : []),
    ...(busy.length > 0 ? [headLine(columns)] : []),
  ]
  for (const endpoint of busy) lines.push(...endpointLines(endpoint, answer, around, columns))
  if (quiet.length > 0) {
    const names = quiet.map(({ name, id }) => (name === id ? name : `${name} (${id})`)).join(', ')
    lines.push({ text: `${quiet.length} without work and workers: ${names}`, style: 'dim' })
  }
  if (answer.more) lines.push({ text: 'there are more endpoints: runyard top <endpoint>', style: 'dim' })
  const room = Math.max(1, around.rows)
  const left = lines.length - room + 1
  const shown =
    lines.length <= room ? lines : [...lines.slice(0, room - 1), { text: `and ${left} lines more`, style: null }]
  return shown.map(({ text, style }) => ({ text: cut(onOneLine(text), around.columns), style }))
}

function isBusy({ jobs, workers, explanation }: TopEndpoint): boolean {
  return jobs.inQueue > 0 || jobs.inProgress > 0 || workers.length > 0 || (explanation?.notes.length ?? 0) > 0
}

function summary({ atMs, endpoints }: TopAnswer, { url, rates, problem }: Around): ScreenLine[] {
  const sum = (of: (endpoint: TopEndpoint) => number) => endpoints.reduce((total, one) => total + of(one), 0)
  const frozen = sum(one => one.workers.filter(({ phase }) => phase === 'frozen').length)
  const states = (['running', 'idle', 'frozen', 'initializing', 'throttled', 'unhealthy'] as const).flatMap(state => {
    const count = state === 'frozen' ? frozen : sum(one => one.summary[state]) - (state === 'idle' ? frozen : 0)
    return count === 0 ? [] : [`${count} ${state}`]
  })
  const rate = [...rates.values()].reduce((total, one) => total + one, 0)
  const time = new Date(atMs).toISOString().slice(11, 19)
  const serving = endpoints.filter(({ type }) => type === 'LOAD_BALANCER').length
  const waiting = sum(one => one.jobs.inQueue)
  const queued =
    serving === 0 ? counted(waiting, 'job') : serving < endpoints.length ? waiting : counted(waiting, 'request')
  const ended = serving > 0 && serving === endpoints.length ? '' : `, ${rateText(rate)}`
  const jobs = `${queued} waiting, ${sum(one => one.jobs.inProgress)} running${ended}`
  return [
    { text: `runyard top  ${time} UTC  ${url}`, style: 'head' },
    {
      text: `${counted(
        sum(one => one.summary.total),
        'worker',
      )}${states.length > 0 ? `: ${states.join(', ')}` : ''};  ${jobs}`,
      style: null,
    },
    problem === null ? { text: '', style: null } : { text: `trying again: ${problem}`, style: 'bad' },
  ]
}

/** A GPU with its memory as a bar: `#` of workers, `x` of other programs, `.` free. */
function gpuLine({ index, name, problem, memory, holders }: TopGpu): ScreenLine {
  const title = `GPU ${index} ${name}`
  if (problem !== null) return { text: `${title}  ${problem}`, style: 'bad' }
  const users = holders.map(holderText)
  const style = holders.some(({ beyondMb = 0 }) => beyondMb > 0) ? 'bad' : null
  if (memory === null) return { text: `${title}  ${users.join(', ') || 'free'}`, style }
  const { totalMb, freeMb, foreignMb } = memory
  if (foreignMb > 0) users.push(`other programs ${inGb(foreignMb)}`)
  const width = (mb: number) => Math.min(BAR_COLUMNS, Math.round((mb / Math.max(1, totalMb)) * BAR_COLUMNS))
  const used = width(totalMb - freeMb)
  const other = Math.min(used, width(foreignMb))
  const bar = '#'.repeat(used - other) + 'x'.repeat(other) + '.'.repeat(BAR_COLUMNS - used)
  const amounts = `${inGb(totalMb - freeMb)} of ${inGb(totalMb)}`
  return { text: [`${title}  [${bar}]  ${amounts}`, users.join(', ')].join('  ').trimEnd(), style }
}

/** A worker with its memory and its share: "sdxl 7.9 GB (share 8 GB)". */
function holderText({
  endpointName,
  endpointId,
  asleep,
  usedMb,
  shareMb,
  beyondMb = 0,
}: TopGpu['holders'][number]): string {
  const name = endpointName ?? endpointId
  if (asleep) return `${name} (asleep)`
  if (shareMb == null) return usedMb === null ? name : `${name} ${inGb(usedMb)}`
  if (usedMb === null) return `${name} (share ${inGb(shareMb)})`
  return beyondMb > 0
    ? `${name} ${inGb(usedMb)}, beyond its share of ${inGb(shareMb)}`
    : `${name} ${inGb(usedMb)} (share ${inGb(shareMb)})`
}

const BAR_COLUMNS = 20

function endpointLines(
  endpoint: TopEndpoint,
  { atMs }: TopAnswer,
  { rates }: Around,
  columns: readonly Sized[],
): ScreenLine[] {
  const { id, name, workersMin, workersMax, jobs, summary: counts, explanation, workers } = endpoint
  const oldest =
    jobs.headQueuedAtMs === null ? '' : ` (oldest ${durationText(Math.max(0, atMs - jobs.headQueuedAtMs))})`
  const serves = endpoint.type === 'LOAD_BALANCER'
  // Only finished jobs are counted, not requests.
  const rate = serves ? undefined : rates.get(id)
  const parts = [
    name === id ? name : `${name} (${id})`,
    `workers ${counts.total} of ${workersMin}-${workersMax}`,
    `queue ${jobs.inQueue}${jobs.inQueue > 0 ? oldest : ''}`,
    `${serves ? 'requests in flight' : 'running'} ${jobs.inProgress}`,
    ...(rate === undefined ? [] : [rateText(rate)]),
  ]
  const lines: ScreenLine[] = [{ text: parts.join('  '), style: 'head' }]
  for (const text of whyLines(explanation, jobs.inQueue)) lines.push({ text: `  ${text}`, style: 'bad' })
  for (const worker of workers) {
    const text = columns.map(({ text: of, width }) => fitted(of(worker, atMs), width)).join(GAP)
    lines.push({ text: `  ${text}`.trimEnd(), style: STYLES[worker.status] ?? null })
    if (worker.reason !== null) lines.push({ text: `    ${worker.reason}`, style: 'bad' })
  }
  return lines
}

/** The reason for which jobs wait, with notes. No reason while workers run or start normally. */
function whyLines(explanation: ExplanationView | null, waiting: number): string[] {
  if (explanation === null) return []
  const { cause, summary, action, notes, actions } = explanation
  const calm = waiting === 0 || cause === 'running' || cause === 'about_to_start' || cause === 'worker_starting'
  const withCommand = (text: string, note: number) => {
    const command = actions.find(of => of.note === note)?.command ?? null
    return command === null ? text : `${text}: ${command}`
  }
  return [
    ...(calm ? [] : [`${cause}: ${summary}`, ...(action === null ? [] : [`-> ${action}`])]),
    ...notes.map(withCommand),
  ]
}

const STYLES: Readonly<Record<string, Style>> = {
  RUNNING: 'good',
  INITIALIZING: 'busy',
  THROTTLED: 'bad',
  UNHEALTHY: 'bad',
  IDLE: 'dim',
}

interface Column {
  readonly title: string
  readonly text: (worker: TopWorker, atMs: number) => string
}

interface Sized extends Column {
  readonly width: number
}

const GAP = '  '
const INDENT = 2

const ID: Column = { title: 'WORKER', text: ({ id }) => id }
const STATUS: Column = { title: 'STATUS', text: ({ status, isStale }) => (isStale ? `${status}*` : status) }
const PHASE: Column = {
  title: 'PHASE',
  text: ({ phase, pullPercent, download }) => phaseText({ phase, pullPercent, download }),
}
const FOR: Column = {
  title: 'FOR',
  text: ({ phaseSince }, atMs) => durationText(Math.max(0, atMs - Date.parse(phaseSince))),
}
const GPU: Column = { title: 'GPU', text: ({ gpuCount, gpuTypeId }) => gpuText({ gpuCount, gpuTypeId }) }
const NODE: Column = { title: 'NODE', text: ({ node }) => node ?? '-' }
const JOB: Column = {
  title: 'JOB',
  text: ({ jobs, jobsHeld }) => {
    // Requests have no ids.
    if (jobs.length === 0) return jobsHeld === 0 ? '-' : counted(jobsHeld, 'request')
    return `${jobs[0]!.id}${jobs.length > 1 ? ` +${jobs.length - 1}` : ''}`
  },
}
const HELD: Column = {
  title: 'HELD',
  text: ({ jobs }, atMs) => {
    const since = jobs.flatMap(({ startedAtMs }) => (startedAtMs === null ? [] : [startedAtMs]))
    return since.length === 0 ? '-' : durationText(Math.max(0, atMs - Math.min(...since)))
  },
}

/** Columns that fit. Narrow screens drop those at the end of {@link EXPENDABLE} first. */
const ALL = [ID, STATUS, PHASE, FOR, GPU, NODE, JOB, HELD]
const EXPENDABLE = [HELD, STATUS, FOR, JOB, GPU, NODE]

function columnsFor({ atMs }: TopAnswer, busy: readonly TopEndpoint[], width: number): Sized[] {
  const workers = busy.flatMap(endpoint => endpoint.workers)
  const hasNodes = workers.some(({ node }) => node !== null)
  const sized = ALL.filter(column => column !== NODE || hasNodes).map(column => {
    const widths = workers.map(worker => length(onOneLine(column.text(worker, atMs))))
    return { ...column, width: Math.max(column.title.length, ...widths) }
  })
  const expendable = [...EXPENDABLE]
  const total = () => INDENT + sized.reduce((sum, one) => sum + one.width + GAP.length, -GAP.length)
  while (total() > width && expendable.length > 0) {
    const title = expendable.pop()!.title
    const index = sized.findIndex(column => column.title === title)
    if (index >= 0) sized.splice(index, 1)
  }
  return sized
}

function headLine(columns: readonly Sized[]): ScreenLine {
  return { text: `  ${columns.map(({ title, width }) => title.padEnd(width)).join(GAP)}`.trimEnd(), style: 'dim' }
}

function rateText(perSecond: number): string {
  if (perSecond === 0) return '0 jobs/s'
  return `${perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond)} jobs/s`
}

/** Text cut or padded to the width of a column, without control characters. */
function fitted(text: string, width: number): string {
  const plain = cut(onOneLine(text), width)
  return plain + ' '.repeat(Math.max(0, width - length(plain)))
}

function cut(text: string, most: number): string {
  const characters = [...text]
  return characters.length > most ? `${characters.slice(0, Math.max(0, most - 1)).join('')}…` : text
}

function length(text: string): number {
  return [...text].length
}

/** Finished jobs per second, from the responses of the last seconds. */
export class Rates {
  readonly #samples: TopAnswer[] = []

  /** Adds a response, newer than those before. Returns the rates by endpoint id. */
  add(answer: TopAnswer): ReadonlyMap<string, number> {
    const last = this.#samples.at(-1)
    if (last !== undefined && answer.atMs < last.atMs) this.#samples.length = 0
    this.#samples.push(answer)
    while (this.#samples.length > 2 && answer.atMs - this.#samples[1]!.atMs >= RATE_MS) this.#samples.shift()
    const rates = new Map<string, number>()
    const [first] = this.#samples
    const seconds = (answer.atMs - first!.atMs) / 1_000
    if (seconds <= 0) return rates
    const previousCounts = new Map(first!.endpoints.map(({ id, finished }) => [id, finished]))
    for (const { id, finished } of answer.endpoints) {
      const previousCount = previousCounts.get(id)
      if (previousCount !== undefined && finished >= previousCount) rates.set(id, (finished - previousCount) / seconds)
    }
    return rates
  }
}

/** Time over which finished jobs are counted, in ms. */
const RATE_MS = 10_000
