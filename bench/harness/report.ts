/** The results of a run. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import type { RoundOptions } from './rounds.ts'
import type { Table } from './suite.ts'

/** The results of a suite. */
export interface SuiteResult {
  readonly suite: string
  readonly title: string
  readonly notes: string
  readonly tables: readonly Table[]
}

/** A whole run: its machine, its duration and its results. */
export interface RunResult {
  readonly date: string
  readonly machine: Readonly<Record<string, string>>
  readonly effort: RoundOptions
  readonly results: readonly SuiteResult[]
}

/** The machine and the versions of the measured programs. */
export function describeMachine(): Record<string, string> {
  const peers = JSON.parse(readFileSync(join(import.meta.dirname, '../peers/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  return {
    processor: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    kernel: programVersion('uname', '-r'),
    Node: process.version,
    Redis: programVersion('redis-server', '--version').replace(/^.* v=(\S+).*$/, '$1'),
    ...peers.dependencies,
  }
}

function programVersion(program: string, option: string): string {
  try {
    return execFileSync(program, [option], { encoding: 'utf8' }).trim()
  } catch {
    return 'not installed'
  }
}
