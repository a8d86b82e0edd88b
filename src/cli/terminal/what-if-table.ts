/** The two replays of `runyard whatif`, side by side. */
import { type Column, column, durationText, type TableRow, table } from './table.ts'
import { money } from './usage-columns.ts'

/** Settings with their figures, as REST shows them. */
export interface PlayedFigures {
  readonly workersMin: number
  readonly workersMax: number
  readonly idleTimeout: number
  readonly scalerType: string
  readonly scalerValue: number
  readonly flashBootType: string
  readonly startAware: boolean
  readonly workerHours: Readonly<Record<'starting' | 'idle' | 'running' | 'frozen', number>>
  readonly cost: number
  readonly waitMs: Waits | null
  readonly coldStarts: number
  readonly thaws: number
  readonly mostWorkers: number
}

interface Waits {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** The answer of the server. */
export interface WhatIfShown {
  readonly serverlessId: string
  readonly recorded: {
    readonly from: string
    readonly to: string
    readonly attempts: number
    readonly waitMs: Waits | null
    readonly coldStarts: number
  }
  readonly assumed: {
    readonly startMs: number
    readonly startFrom: string
    readonly concurrency: number
    readonly hardware: string
    readonly pricePerHour: number
  }
  readonly notes: readonly string[]
  readonly today: PlayedFigures | null
  readonly other: PlayedFigures | null
}

/** A figure of the table: its title, what it is of a replay, and what was recorded of it. */
interface Figure {
  readonly title: string
  readonly of: (played: PlayedFigures) => string
  readonly recorded?: (recorded: WhatIfShown['recorded']) => string
}

const SETTINGS: readonly Figure[] = [
  { title: 'idle timeout', of: ({ idleTimeout }) => `${idleTimeout} s` },
  { title: 'workers at least', of: ({ workersMin }) => String(workersMin) },
  { title: 'workers at most', of: ({ workersMax }) => String(workersMax) },
  { title: 'scaler', of: ({ scalerType, scalerValue }) => `${scalerType} ${scalerValue}` },
  { title: 'flashboot', of: ({ flashBootType }) => flashBootType },
  { title: 'start-aware', of: ({ startAware }) => (startAware ? 'yes' : 'no') },
]

const FIGURES: readonly Figure[] = [
  { title: 'worker hours', of: ({ workerHours: h }) => hours(h.starting + h.idle + h.running) },
  { title: '  running', of: ({ workerHours }) => hours(workerHours.running) },
  { title: '  idle', of: ({ workerHours }) => hours(workerHours.idle) },
  { title: '  starting', of: ({ workerHours }) => hours(workerHours.starting) },
  { title: 'frozen hours', of: ({ workerHours }) => hours(workerHours.frozen) },
  { title: 'cost', of: ({ cost }) => money(cost) },
  ...(['p50', 'p95', 'p99'] as const).map(part => ({
    title: `wait ${part}`,
    of: ({ waitMs }: PlayedFigures) => durationText(waitMs?.[part]),
    recorded: ({ waitMs }: WhatIfShown['recorded']) => durationText(waitMs?.[part]),
  })),
  {
    title: 'cold starts',
    of: ({ coldStarts }) => String(coldStarts),
    recorded: ({ coldStarts }) => String(coldStarts),
  },
  { title: 'thaws', of: ({ thaws }) => String(thaws) },
  { title: 'most workers at once', of: ({ mostWorkers }) => String(mostWorkers) },
]

const COLUMNS: readonly Column[] = [
  column('', 'title'),
  column('HAPPENED', 'recorded'),
  column('TODAY', 'today'),
  column('OTHER', 'other'),
]

/** The simulated period and its assumptions, for people. @param name the endpoint, as the caller named it */
export function whatIfHead({ recorded, assumed, notes }: WhatIfShown, name: string): string {
  const day = (at: string) => at.slice(0, 16).replace('T', ' ')
  const head = [
    `${name}: ${recorded.attempts} attempts, ${day(recorded.from)} to ${day(recorded.to)} UTC`,
    `  a worker starts in ${durationText(assumed.startMs)} (${STARTS[assumed.startFrom] ?? assumed.startFrom}) and runs ${assumed.concurrency} at once`,
    `  ${assumed.hardware} at ${money(assumed.pricePerHour)} an hour`,
    ...notes.map(note => `  note: ${note}`),
  ]
  return `${head.map(wrapped).join('\n')}\n\n`
}

/**
 * The figures of both replays beside what happened, and the settings in which they differ; at most 80 columns wide.
 */
export function whatIfTable({ recorded, today, other }: WhatIfShown): string {
  const changed = SETTINGS.filter(({ of }) => today !== null && other !== null && of(today) !== of(other))
  const row = (figure: Figure): TableRow => ({
    title: figure.title,
    recorded: figure.recorded?.(recorded) ?? '',
    today: today === null ? '-' : figure.of(today),
    other: other === null ? '' : figure.of(other),
  })
  const shown = today === null || other === null ? SETTINGS : changed
  const columns = other === null ? COLUMNS.slice(0, -1) : COLUMNS
  return table(columns, [...shown, ...FIGURES].map(row), WIDTH)
}

const WIDTH = 80

const STARTS: Readonly<Record<string, string>> = {
  WORKERS: 'measured',
  COLD_ATTEMPTS: 'guessed from cold starts',
  UNKNOWN: 'not known',
}

/** A long line on several, the others indented. */
function wrapped(line: string): string {
  if (line.length <= WIDTH) return line
  const cut = line.lastIndexOf(' ', WIDTH)
  return cut <= INDENT.length ? line : `${line.slice(0, cut)}\n${wrapped(`${INDENT}${line.slice(cut + 1)}`)}`
}

const INDENT = '    '

function hours(number: number): string {
  return number === 0 ? '0' : number.toFixed(number < 10 ? 2 : 1)
}
