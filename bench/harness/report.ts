/** The results of benchmarks, and how they are printed. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { type Effort, medianOf, type Rounds, ratioOf } from './rounds.ts'
import type { Suite } from './suite.ts'

/** Medians of one side under one load. `ratio` is the median of the ratios of requests a second to those of the baseline in the same round. */
export interface Row {
  readonly side: string
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of the server and its database for each request, in microseconds. */
  readonly cpuUs: number
  readonly failed: number
  readonly ratio: number
}

/** The results of a suite. */
export interface SuiteResult {
  readonly suite: string
  readonly title: string
  readonly baseline: string
  readonly cases: readonly { readonly load: string; readonly rows: readonly Row[] }[]
}

/** A whole run: what it ran on, how long, and its results. */
export interface RunResult {
  readonly date: string
  readonly machine: Readonly<Record<string, string>>
  readonly effort: Effort
  readonly results: readonly SuiteResult[]
}

/** The rows of a case. */
export function rowsOf(rounds: Rounds, baseline: string): Row[] {
  return [...rounds.keys()].map(side => ({
    side,
    perSecond: Math.round(medianOf(rounds, side, 'perSecond')),
    p50Ms: medianOf(rounds, side, 'p50') / 1_000,
    p99Ms: medianOf(rounds, side, 'p99') / 1_000,
    cpuUs: Math.round(medianOf(rounds, side, 'cpuUs')),
    failed: medianOf(rounds, side, 'failed'),
    ratio: ratioOf(rounds, side, baseline, 'perSecond'),
  }))
}

/** A case as a table for the terminal. */
export function caseText(load: string, rows: readonly Row[], { baseline }: Pick<Suite, 'baseline'>): string {
  const line = (name: string, cells: readonly string[]) =>
    name.padEnd(32) + cells.map(cell => cell.padStart(9)).join('')
  const lines = rows.map(({ side, perSecond, p50Ms, p99Ms, cpuUs, ratio, failed }) => {
    const cells = [perSecond.toString(), p50Ms.toFixed(2), p99Ms.toFixed(2), cpuUs.toString(), ratio.toFixed(2)]
    return line(side, cells) + (failed > 0 ? `  ${failed} failed` : '')
  })
  return ['', `${line(load, ['/s', 'p50 ms', 'p99 ms', 'cpu us', 'ratio'])} to ${baseline}`, ...lines].join('\n')
}

/** The machine and the versions of what was measured. */
export function machineOf(): Record<string, string> {
  const peers = JSON.parse(readFileSync(join(import.meta.dirname, '../peers/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  return {
    processor: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    kernel: versionOf('uname', '-r'),
    Node: process.version,
    Redis: versionOf('redis-server', '--version').replace(/^.* v=(\S+).*$/, '$1'),
    ...peers.dependencies,
  }
}

function versionOf(program: string, option: string): string {
  try {
    return execFileSync(program, [option], { encoding: 'utf8' }).trim()
  } catch {
    return 'not installed'
  }
}
