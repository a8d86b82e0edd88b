/** Numbers of charts, without any drawing. */

/** What numbers are. */
export type Unit = 'count' | 'number' | 'ms' | 'percent' | 'money' | 'hours'

/** How a series is told apart beside its colour: dashes of a line, hatches of bars. */
export type Look = 'plain' | 'up' | 'down' | 'level'

/** One line, or one part of stacked bars. */
export interface Series {
  readonly id: string
  readonly title: string
  /** Name of a CSS variable. */
  readonly color: string
  readonly look: Look
  /** One for each time; null is a gap. */
  readonly values: readonly (number | null)[]
}

/** Spans of time, one beside the other. */
export interface Times {
  /** Their beginnings. */
  readonly atMs: readonly number[]
  /** What the chart shows; its end may be past the last span's beginning by more than one span. */
  readonly fromMs: number
  readonly toMs: number
  readonly lengthMs: number
}

/** The middle of each span: what is nearest to a middle is inside of its span. */
export function middles({ atMs, lengthMs }: Times): number[] {
  return atMs.map((at, index) => (at + (atMs[index + 1] ?? at + lengthMs)) / 2)
}

/** Sums of each series and all before it. A gap is where no series has a value. */
export function stacked(series: readonly Series[]): (number | null)[][] {
  const sums: (number | null)[] = []
  return series.map(({ values }) => {
    for (const [index, value] of values.entries())
      if (value !== null) sums[index] = (sums[index] ?? 0) + value
      else sums[index] ??= null
    return [...sums]
  })
}

/** One number for all values. Null where there is none. */
export function summaryOf(values: readonly (number | null)[], summary: 'sum' | 'average' | 'max'): number | null {
  const known = values.filter(value => value !== null)
  if (known.length === 0) return null
  if (summary === 'max') return known.reduce((most, value) => Math.max(most, value))
  const sum = known.reduce((total, value) => total + value, 0)
  return summary === 'sum' ? sum : sum / known.length
}

/** The newest value that is there. */
export function newest(values: readonly (number | null)[]): number | null {
  return values.findLast(value => value !== null) ?? null
}

/** Values of all series at each time. */
export function totals(series: readonly Series[]): (number | null)[] {
  return stacked(series).at(-1) ?? []
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Distances between the labels of a time axis. */
export const TIME_STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map(minutes => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map(hours => hours * HOUR_MS),
  ...[1, 2, 3, 7, 14, 30, 60, 90, 180, 365].map(days => days * DAY_MS),
]

/** Distances between the labels of the other axis: those that people would choose. */
export function valueSteps(unit: Unit): number[] {
  if (unit === 'ms') {
    const seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800]
    return [...[1, 2, 5, 10, 20, 50, 100, 200, 500], ...seconds.map(s => s * 1_000)]
  }
  const first = unit === 'count' || unit === 'percent' ? 0 : unit === 'money' ? -5 : -2
  return Array.from({ length: 14 }, (_, at) => at + first).flatMap(power =>
    [1, 2, 5].map(digit => Number(`${digit}e${power}`)),
  )
}

/** The upper end of the axis of values up to a maximum. */
export function topOf(unit: Unit, max: number | null): number {
  if (unit === 'percent') return 100
  const least = unit === 'ms' ? 10 : unit === 'money' ? 0.0001 : unit === 'hours' ? 0.01 : 1
  return Math.max(least, (max ?? 0) * 1.08)
}

/** The label of an instant on a time axis, in local time. @param stepMs distance between labels */
export function axisTime(ms: number, stepMs: number): string {
  const at = new Date(ms)
  const two = (number: number) => String(number).padStart(2, '0')
  if (stepMs >= 28 * DAY_MS) return `${at.getFullYear()}-${two(at.getMonth() + 1)}`
  if (stepMs >= DAY_MS || (at.getHours() === 0 && at.getMinutes() === 0))
    return `${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${two(at.getHours())}:${two(at.getMinutes())}`
}
