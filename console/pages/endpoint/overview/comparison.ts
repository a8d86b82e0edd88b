/** Effects of other settings, in words. */
import type { WhatIfFigures } from '../../../client/api-types.d.ts'
import { count, duration, money, percent, plural } from '../../../format.ts'

/** Figures of settings that were replayed. */
export type Figures = NonNullable<WhatIfFigures>

/** Figures of one row of the table: today's and those of the other settings. */
export interface Row {
  readonly name: string
  readonly today: string
  readonly other: string
}

/** Hours of workers, without those in which they were frozen. */
function sumHours({ workerHours: { starting, idle, running } }: Figures): number {
  return starting + idle + running
}

/** The figures beside each other. */
export function comparisonRows(today: Figures, other: Figures): readonly Row[] {
  const row = (name: string, of: (figures: Figures) => string): Row => ({ name, today: of(today), other: of(other) })
  return [
    row('Cost', ({ cost }) => money(cost)),
    row('Worker hours', figures => hours(sumHours(figures))),
    row('… idle', ({ workerHours }) => hours(workerHours.idle)),
    row('Wait, half of the jobs', ({ waitMs }) => duration(waitMs?.p50)),
    row('Wait, 19 of 20', ({ waitMs }) => duration(waitMs?.p95)),
    row('Wait, 99 of 100', ({ waitMs }) => duration(waitMs?.p99)),
    row('Cold starts', ({ coldStarts }) => count(coldStarts)),
    row('Most workers at once', ({ mostWorkers }) => count(mostWorkers)),
  ]
}

function hours(number: number): string {
  return `${number < 10 ? number.toFixed(2) : number.toFixed(1)} h`
}

/** Relative difference from which a change is named; a smaller one is chance. */
const LEAST_PART = 0.02
/** Difference of waits in milliseconds below which nobody notices it. */
const LEAST_WAIT_MS = 50

/** The differences that matter, a sentence each; one that says so if none does. */
export function differences(today: Figures, other: Figures): readonly string[] {
  const sentences = [...costDifference(today, other), ...waitDifference(today, other), ...startDifference(today, other)]
  return sentences.length === 0 ? ['These settings would have made no difference that matters.'] : sentences
}

function costDifference(today: Figures, other: Figures): string[] {
  const extraCost = other.cost - today.cost
  if (today.cost === 0 && other.cost === 0) return hoursDifference(sumHours(today), sumHours(other))
  if (Math.abs(extraCost) <= today.cost * LEAST_PART) return []
  const part = today.cost === 0 ? '' : ` (${percent(Math.abs(extraCost) / today.cost)})`
  return [`Workers would have cost ${money(Math.abs(extraCost))}${part} ${extraCost > 0 ? 'more' : 'less'}.`]
}

/** The difference of hours. Hours without a price still use a machine. */
function hoursDifference(before: number, after: number): string[] {
  if (Math.abs(after - before) <= before * LEAST_PART) return []
  return [`Workers would have run for ${hours(after)} instead of ${hours(before)}.`]
}

function waitDifference(today: Figures, other: Figures): string[] {
  if (today.waitMs === null || other.waitMs === null) return []
  const { waitMs: before } = today
  const { waitMs: after } = other
  const changedKeys = (['p50', 'p95'] as const).filter(
    key => Math.abs(after[key] - before[key]) > Math.max(LEAST_WAIT_MS, before[key] * LEAST_PART),
  )
  return changedKeys.map(key => {
    const who = key === 'p50' ? 'Half of the jobs' : '19 of 20 jobs'
    return `${who} would have waited at most ${duration(after[key])} instead of ${duration(before[key])}.`
  })
}

function startDifference(today: Figures, other: Figures): string[] {
  const extraStarts = other.coldStarts - today.coldStarts
  if (Math.abs(extraStarts) <= today.coldStarts * LEAST_PART) return []
  return [`There would have been ${plural(Math.abs(extraStarts), 'cold start')} ${extraStarts > 0 ? 'more' : 'fewer'}.`]
}
