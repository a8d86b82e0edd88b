/** Numbers of charts, without any drawing. */

/** Unit of numbers. */
export type Unit = 'count' | 'number' | 'ms' | 'percent' | 'money' | 'hours'

/** Pattern of a series beside its color: dashes of a line, hatches of bars. */
export type Look = 'plain' | 'up' | 'down' | 'level'

/** One line, or one part of stacked bars. */
export interface Series {
  readonly id: string
  readonly title: string
  /** Name of a CSS variable. */
  readonly color: string
  readonly look: Look
  /** One value for each span; null is a gap. */
  readonly values: readonly (number | null)[]
}

/** Adjacent spans of time. */
export interface Times {
  /** Their beginnings. */
  readonly atMs: readonly number[]
  /** Range of the chart; its end may be past the start of the last span by more than one span. */
  readonly fromMs: number
  readonly toMs: number
  readonly lengthMs: number
}

/** The middle of each span: the nearest middle to a point is that of its own span. */
export function middles({ atMs, lengthMs }: Times): number[] {
  return atMs.map((at, index) => (at + (atMs[index + 1] ?? at + lengthMs)) / 2)
}

/** Sums of each series and all before it. A gap exists only where no series has a value. */
export function stacked(series: readonly Series[]): (number | null)[][] {
  const sums: (number | null)[] = []
  return series.map(({ values }) => {
    for (const [index, value] of values.entries())
      if (value !== null) sums[index] = (sums[index] ?? 0) + value
      else sums[index] ??= null
    return [...sums]
  })
}

/** One number for all values. Null without values. */
export function summarize(values: readonly (number | null)[], summary: 'sum' | 'average' | 'max'): number | null {
  const measured = values.filter(value => value !== null)
  if (measured.length === 0) return null
  if (summary === 'max') return measured.reduce((most, value) => Math.max(most, value))
  const sum = measured.reduce((total, value) => total + value, 0)
  return summary === 'sum' ? sum : sum / measured.length
}

/** The newest value that is not null. */
export function newest(values: readonly (number | null)[]): number | null {
  return values.findLast(value => value !== null) ?? null
}

/** Values of all series at each time. */
export function totals(series: readonly Series[]): (number | null)[] {
  return stacked(series).at(-1) ?? []
}
