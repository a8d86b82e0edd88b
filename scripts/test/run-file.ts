/** One run of one test file, or of several that share a process. */
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { type EventData, run } from 'node:test'
import { spec } from 'node:test/reporters'
import { patient } from '../../test/support/patience.ts'
import { leftOut } from '../../test/wire/support/container-suite.ts'
import { isOverSockets, type Task } from './lanes.ts'

/** Numbers of tests. */
export interface Counts {
  readonly tests: number
  readonly passed: number
  readonly skipped: number
  readonly todo: number
}

const NO_TESTS: Counts = { tests: 0, passed: 0, skipped: 0, todo: 0 }

/** The result of a file. */
export interface FileResult {
  readonly task: Task
  /**
   * The file and its kind of workers. For several files: those that failed, or the slowest
   * and the number of the others.
   */
  readonly name: string
  readonly counts: Counts
  readonly hasPassed: boolean
  /** Reasons of skipped tests. */
  readonly skips: readonly string[]
  readonly ms: number
  /** Output of the reporter. */
  readonly output: string
}

/**
 * Timeout of a test on a machine that does nothing else, in milliseconds: longer than any test takes, so
 * that a hanging test fails.
 */
const TEST_TIMEOUT_MS = 300_000
/**
 * Timeout of a file on such a machine, in milliseconds. A failed test may leave processes that
 * prevent the end of its file.
 */
const FILE_TIMEOUT_MS = 600_000
/** Timeout of a test on any machine, in milliseconds: one that hangs must not cost the time of the others. */
const LONGEST_TEST_TIMEOUT_MS = 600_000
/** The summary of the runner at the end of each file. */
const SUMMARY = /^\u2139 (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) .*\n/gm

const WITHOUT_PROMISE_HOOK = `--import=${join(import.meta.dirname, 'without-promise-hook.ts')}`
const LOW_PRIORITY = `--import=${join(import.meta.dirname, 'low-priority.ts')}`
/** The file that runs several others. */
const BATCH = join(import.meta.dirname, 'batch.ts')

/**
 * Runs a task.
 * @param grep patterns of the names of the tests to run; empty for all, and then a file without a test has failed
 * @param isLow true for the processor time that others leave
 */
export async function runFile(task: Task, grep: readonly RegExp[], isLow = false): Promise<FileResult> {
  const began = performance.now()
  const skips: string[] = []
  const files = [task.file, ...task.others]
  const isBatch = files.length > 1
  /** Duration of the tests of each file. */
  const times = new Map<string, number>()
  const failed = new Set<string>()
  const stream = run({
    ...(isBatch ? { files: [BATCH], argv: files } : { files }),
    execArgv: [...(isOverSockets(task.file) ? [] : [WITHOUT_PROMISE_HOOK]), ...(isLow ? [LOW_PRIORITY] : [])],
    timeout: Math.min(patient(TEST_TIMEOUT_MS), LONGEST_TEST_TIMEOUT_MS),
    signal: AbortSignal.timeout(patient(FILE_TIMEOUT_MS)),
    ...(grep.length > 0 ? { testNamePatterns: [...grep] } : {}),
    ...(task.containers !== 'none'
      ? {
          env: { ...process.env, RUNYARD_TEST_WORKERS: 'container' },
          testSkipPatterns: leftOut(task.containers === 'main'),
        }
      : {}),
  })
  const entry = isBatch ? BATCH : task.file
  let isEmpty = false
  const record = ({ file, nesting, details }: EventData.TestPass | EventData.TestFail) => {
    if (file !== undefined) times.set(file, (times.get(file) ?? 0) + (nesting === 0 ? details.duration_ms : 0))
  }
  stream.on('test:pass', data => {
    const { name, skip } = data
    // Node counts a file without tests as one passed test.
    if (resolve(name) === resolve(entry)) isEmpty = true
    else record(data)
    if (skip !== undefined) skips.push(typeof skip === 'string' ? `${name}: ${skip}` : name)
  })
  stream.on('test:fail', data => {
    if (data.file !== undefined) failed.add(data.file)
    record(data)
  })
  const counted = new Promise<Counts>(resolve => {
    stream.on('test:summary', summary => {
      if (summary.file === undefined) resolve(summary.counts)
    })
  })
  // The output is collected until the end of the file: otherwise that of several lanes would mix.
  const printed = await text(stream.compose(spec))
  const counts = isEmpty ? NO_TESTS : await counted
  const findTime = (file: string) => times.get(resolve(file))
  const failedFiles = files.filter(
    file => failed.has(resolve(file)) || (grep.length === 0 && findTime(file) === undefined),
  )
  const [slowest] = files.toSorted((a, b) => (findTime(b) ?? 0) - (findTime(a) ?? 0))
  const hasPassed =
    counts.passed + counts.skipped + counts.todo === counts.tests &&
    // Tests of a skipped suite are not counted.
    (counts.tests > 0 || skips.length > 0 || grep.length > 0)
  return {
    task,
    name: taskName(task, slowest!, failedFiles),
    counts,
    hasPassed: isBatch ? hasPassed && failedFiles.length === 0 : hasPassed,
    skips,
    ms: performance.now() - began,
    output: printed.replace(SUMMARY, '').trimEnd(),
  }
}

function taskName({ file, others, containers }: Task, slowest: string, failedFiles: readonly string[]): string {
  if (containers !== 'none') return `${file} with workers in containers`
  if (others.length === 0) return file
  return failedFiles.length > 0 ? failedFiles.join(', ') : `${slowest} and ${others.length} more`
}
