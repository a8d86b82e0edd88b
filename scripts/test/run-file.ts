/** One run of one test file, in a process of its own. */
import { text } from 'node:stream/consumers'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { leftOut } from '../../test/wire/support/container-suite.ts'
import type { Task } from './lanes.ts'

/** Numbers of tests. */
export interface Counts {
  readonly tests: number
  readonly passed: number
  readonly skipped: number
  readonly todo: number
}

const NO_TESTS: Counts = { tests: 0, passed: 0, skipped: 0, todo: 0 }

/** How a file went. */
export interface FileResult {
  readonly task: Task
  /** The file, and with which workers. */
  readonly name: string
  readonly counts: Counts
  readonly hasPassed: boolean
  /** Reasons of skipped tests. */
  readonly skips: readonly string[]
  readonly ms: number
  /** What the reporter printed. */
  readonly output: string
}

/** Longer than any test takes, so that one that waits for ever fails instead of holding everything. */
const TEST_TIMEOUT_MS = 300_000
/** Longer than any file takes: what a failed test has left running may keep its file from ending. */
const FILE_TIMEOUT_MS = 900_000
/** What the runner says at the end of each file. */
const SUMMARY = /^\u2139 (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) .*\n/gm

/** Runs a file. @param grep the names of the tests to run; all where it is empty, and then a file without a test has failed */
export async function runFile(task: Task, grep: readonly RegExp[]): Promise<FileResult> {
  const began = performance.now()
  const skips: string[] = []
  const stream = run({
    files: [task.file],
    timeout: TEST_TIMEOUT_MS,
    signal: AbortSignal.timeout(FILE_TIMEOUT_MS),
    ...(grep.length > 0 ? { testNamePatterns: [...grep] } : {}),
    ...(task.containers
      ? { env: { ...process.env, RUNYARD_TEST_WORKERS: 'container' }, testSkipPatterns: [...leftOut] }
      : {}),
  })
  let isEmpty = false
  stream.on('test:pass', ({ name, skip }) => {
    // A file of which no test ran is a passed test of its own to Node.
    if (name === task.file) isEmpty = true
    if (skip !== undefined) skips.push(typeof skip === 'string' ? `${name}: ${skip}` : name)
  })
  const counted = new Promise<Counts>(resolve => {
    stream.on('test:summary', summary => {
      if (summary.file === undefined) resolve(summary.counts)
    })
  })
  // Collected until the file is over: lanes would print between each other's lines.
  const printed = await text(stream.compose(spec))
  const counts = isEmpty ? NO_TESTS : await counted
  return {
    task,
    name: task.containers ? `${task.file} with workers in containers` : task.file,
    counts,
    hasPassed: counts.passed + counts.skipped + counts.todo === counts.tests && (counts.tests > 0 || grep.length > 0),
    skips,
    ms: performance.now() - began,
    output: printed.replace(SUMMARY, '').trimEnd(),
  }
}
