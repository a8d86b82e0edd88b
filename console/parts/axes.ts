/** Positions and texts of the labels of chart axes. */
import type { Unit } from './chart-data.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Distances between the labels of a time axis, in milliseconds. */
export const TIME_STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map(minutes => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map(hours => hours * HOUR_MS),
  ...[1, 2, 3, 7, 14, 30, 60, 90, 180, 365].map(days => days * DAY_MS),
]

/** Round distances between the labels of the axis of values. */
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
export function axisTop(unit: Unit, max: number | null): number {
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
