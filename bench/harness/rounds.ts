/** Measures sides one after another, round by round, so that other load of the machine affects all of them. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { LoadResult, LoadTask } from './load-client.ts'
import { firstThreadSeconds, processorSeconds, type Side } from './sides.ts'

/** Extent of a measurement. */
export interface RoundOptions {
  readonly rounds: number
  /** Durations of each measurement and of its warm-up, in milliseconds. */
  readonly ms: number
  readonly warmMs: number
  /** True for a short run, which only looks for a collapse. */
  readonly isQuick: boolean
}

/** A load, the same for all sides. */
export interface LoadCase {
  readonly name: string
  readonly connections: number
  /** Requests a second; null for as many as are answered. */
  readonly perSecond: number | null
  /** Duration of a measurement in milliseconds, for rates at which the usual duration has too few requests. */
  readonly ms?: number
}

/** One measurement. Latencies are in microseconds, processor time in microseconds a request. */
export interface Measured extends LoadResult {
  readonly perSecond: number
  readonly refusedPerSecond: number
  readonly cpuUs: number
}

/** The measurements of each side, in the order of the rounds. */
export type Rounds = ReadonlyMap<string, readonly Measured[]>

/** Measures a case on all sides. */
export async function measureRounds(sides: readonly Side[], load: LoadCase, effort: RoundOptions): Promise<Rounds> {
  const rounds = new Map<string, Measured[]>(sides.map(({ name }) => [name, []]))
  for (let round = 0; round < effort.rounds; round += 1)
    for (const side of sides) rounds.get(side.name)!.push(await measure(side, load, effort))
  return rounds
}

/** Number below which this share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN
}

/** The middle one of the values. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

/** Median of a figure of a side. */
export function sideMedian(rounds: Rounds, side: string, figure: keyof Measured): number {
  return median((rounds.get(side) ?? []).map(measured => measured[figure]))
}

/** Median of the ratios of two sides, each of one round. */
export function sideRatio(rounds: Rounds, side: string, other: string, figure: keyof Measured): number {
  const otherRounds = rounds.get(other) ?? []
  return median(
    (rounds.get(side) ?? []).map((measured, round) => measured[figure] / (otherRounds[round]?.[figure] ?? Number.NaN)),
  )
}

async function measure(
  { port, request, pids, isAlone, isFirstThread = false }: Side,
  load: LoadCase,
  effort: RoundOptions,
): Promise<Measured> {
  const { warmMs } = effort
  const ms = load.ms ?? effort.ms
  const client = fork(join(import.meta.dirname, 'load-client.ts'))
  try {
    await once(client, 'message')
    const seconds = () => (isFirstThread ? firstThreadSeconds(pids) : processorSeconds(pids, isAlone))
    const secondsBefore = seconds()
    const task: LoadTask = { port, request, connections: load.connections, perSecond: load.perSecond, warmMs, ms }
    client.send(task)
    const [result] = (await once(client, 'message')) as [LoadResult | { error: string }]
    if ('error' in result) throw new Error(result.error)
    const spent = seconds() - secondsBefore
    // The requests of the warm-up cost as much as those of the measurement.
    const requests = (result.count * (ms + warmMs)) / ms
    const perSecond = (result.count * 1_000) / ms
    const refusedPerSecond = (result.refused * 1_000) / ms
    return { ...result, perSecond, refusedPerSecond, cpuUs: (spent * 1e6) / Math.max(1, requests) }
  } finally {
    client.kill('SIGKILL')
  }
}
