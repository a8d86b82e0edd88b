/**
 * Runs tests with the runner of the pinned Node and ends with a count: `scripts/test.ts [options] [file or
 * folder ...]`, by default all tests, and some of test/wire a second time with workers in containers;
 * `--help` lists the options.
 *
 * A file that fails runs once more, alone, unless its tests depend neither on time nor on the machine. A file
 * that then passes counts as passed; it is reported as unsteady, with the output of its first run.
 */
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, globSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { buildFiles, writeFiles } from './build.ts'
import { type Arguments, readArguments } from './test/arguments.ts'
import { isOverSockets, isPure, LANES, planTasks, type Queues } from './test/lanes.ts'
import { measureBusyShare, untilFreeProcessor } from './test/processors.ts'
import { waitForPrograms } from './test/programs.ts'
import { type FileResult, runFile } from './test/run-file.ts'
import { type LaneHost, resultOf, runLanes, sumCounts } from './test/run-lanes.ts'

/** Number of unsteady files above which the machine is named as the cause. */
const HANDFUL = 3
/** Number of files that fail alone, too, after which none runs again: such a tree is broken. */
const MAX_FAILED_ALONE = 3
/** Time after which no file starts its second run, in milliseconds. */
const SECOND_RUNS_MS = 600_000
/** Length of the path of a folder for temporary files that leaves room for those in it. */
const LONGEST_TMPDIR = 60
/** Number of slow files in the summary. */
const SLOWEST = 10
/** Folder of built programs, in the repository, since the program finds its packages and examples from where it is. */
const CACHE = resolve('node_modules/.cache/runyard')
/** Age at which a program of other sources is removed; a run may still use a younger one. */
const MAX_AGE_MS = 86_400_000

// The path of a socket has 107 bytes at most, and tests create sockets in their temporary folders.
if (tmpdir().length > LONGEST_TMPDIR) process.env.TMPDIR = '/tmp'
// Each file is a separate process, and most of them load the same modules.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'runyard-test-compile-cache')

const options = readArguments()
// While files are watched, servers run the sources.
if (options.watch) watch(options)
else await main(options)

async function main({ grep, list, files, ...rest }: Arguments): Promise<void> {
  const { queues, skipped } = planTasks({ grep, list, files, ...rest })
  if (list) return showLanes(queues)
  const firstRuns = await runAll(queues, grep, preparePrograms(files))
  close({ ...(await runAgain(firstRuns, grep)), skippedSuites: skipped === null ? [] : [skipped] })
}

/** Waits for the programs that tests need, and builds the one of servers, which test/wire/support/server.ts starts. */
async function preparePrograms(files: readonly string[]): Promise<void> {
  await waitForPrograms()
  if (!files.some(isOverSockets)) return
  const built = process.env.RUNYARD_TEST_PROGRAM ?? (await builtProgram())
  if (built !== undefined) process.env.RUNYARD_TEST_PROGRAM = built
}

/**
 * Builds the program for servers that tests start, unless it is built already: it loads in less than half
 * of the time of the sources.
 * @returns its entry; undefined where this user may not write into the repository: the sources run then
 */
async function builtProgram(): Promise<string | undefined> {
  try {
    mkdirSync(CACHE, { recursive: true })
    accessSync(CACHE, constants.W_OK)
  } catch {
    return
  }
  for (const folder of globSync(join(CACHE, 'built-*')))
    if (Date.now() - statSync(folder).mtimeMs > MAX_AGE_MS) rmSync(folder, { recursive: true, force: true })
  const files = await buildFiles()
  const hash = createHash('sha256')
  for (const { path, contents } of files) hash.update(path).update(contents)
  const folder = join(CACHE, `built-${hash.digest('hex').slice(0, 16)}`)
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${process.pid}`
    // Without it Node parses each file twice, to find out that it is a module, in each process and thread.
    const type = { path: 'package.json', contents: '{"type":"module"}' }
    writeFiles([...files, type], join(unfinished, 'dist'))
    renameSync(unfinished, folder)
  }
  return join(folder, 'dist/cli/runyard.js')
}

/** The results of a run. */
interface Outcome {
  /** The last run of each file. */
  readonly results: readonly FileResult[]
  /** The first runs of those files that passed when they ran alone. */
  readonly unsteady: readonly FileResult[]
  /** Failed files that have not run again. */
  readonly untried: ReadonlySet<FileResult>
}

/** Runs the files that failed once more, one after another. */
async function runAgain(firstRuns: readonly FileResult[], grep: readonly RegExp[]): Promise<Outcome> {
  const results = new Set(firstRuns)
  const unsteady: FileResult[] = []
  const untried = new Set<FileResult>()
  const began = performance.now()
  let failedAlone = 0
  for (const first of firstRuns.filter(({ hasPassed, task }) => !hasPassed && !isPure(task.file))) {
    if (failedAlone === MAX_FAILED_ALONE || performance.now() - began > SECOND_RUNS_MS) {
      untried.add(first)
      continue
    }
    console.log(`\nonce more, alone: ${first.name}`)
    const second = await resultOf(first.task, () => runFile(first.task, grep))
    show(second)
    results.delete(first)
    results.add(second)
    if (second.hasPassed) unsteady.push(first)
    else failedAlone += 1
  }
  return { results: [...results], unsteady, untried }
}

/** Runs files again when they change, until the process is interrupted. */
function watch({ files, grep }: Arguments): void {
  const names = grep.length > 0 ? { testNamePatterns: [...grep] } : {}
  run({ files: [...files], watch: true, ...names })
    .compose(spec)
    .pipe(process.stdout)
}

function showLanes(queues: Queues): void {
  for (const [name, tasks] of Object.entries(queues)) {
    if (tasks.length > 0) console.log(`${name}:`)
    for (const { file, containers } of tasks)
      console.log(`  ${file}${containers !== 'none' ? ' with workers in containers' : ''}`)
  }
}

/** Runs all tasks, and prints when the lanes ended. */
async function runAll(queues: Queues, grep: readonly RegExp[], programs: Promise<void>): Promise<FileResult[]> {
  const [began, busyShare] = [performance.now(), measureBusyShare()]
  const endsS: number[] = []
  const host: LaneHost = { run: (task, isLow) => runFile(task, grep, isLow), untilFree: untilFreeProcessor, show }
  const onEnd = () => endsS.push(Math.round((performance.now() - began) / 1_000))
  const results = await runLanes({ queues, lanes: LANES }, programs, host, onEnd)
  const busy = Math.round(busyShare() * 100)
  console.log(`\nlanes ended after ${endsS.join(', ')} s, and the processors were busy for ${busy}% of that`)
  return results
}

function show({ name, counts, ms, output }: FileResult): void {
  process.stdout.write(output)
  console.log(`\n${name}: ${counts.passed} of ${counts.tests} passed in ${(ms / 1000).toFixed(1)} s`)
}

function close({ results, unsteady, untried, skippedSuites }: Outcome & { skippedSuites: readonly string[] }): void {
  const { passed, skipped, failed } = sumCounts(results)
  const skips = [...skippedSuites, ...results.flatMap(result => result.skips)]
  const failures = results.filter(({ hasPassed }) => !hasPassed)
  const isStrict = process.env.RUNYARD_NO_SKIP === '1' && skips.length > 0
  process.exitCode = failures.length > 0 || passed === 0 || isStrict ? 1 : 0
  const slowest = results.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST)
  process.on('exit', () => {
    for (const { name, output } of unsteady)
      console.log(`\nfirst run of ${name}, which passed when it ran alone:\n${output}`)
    console.log(`slowest: ${slowest.map(({ name, ms }) => `${name} ${Math.round(ms / 1000)} s`).join(', ')}`)
    for (const { name } of unsteady) console.log(`unsteady: ${name}`)
    if (unsteady.length > HANDFUL) console.log(busyText(unsteady.length))
    for (const result of failures) console.log(`failed: ${result.name}${untried.has(result) ? ' (not run again)' : ''}`)
    for (const skip of skips) console.log(`skipped${isStrict ? ' (a failure here)' : ''}: ${skip}`)
    console.log(`${passed} passed, ${failed} failed, ${Math.max(skipped, skips.length)} skipped`)
  })
}

function busyText(count: number): string {
  const [, , load = 0] = loadavg()
  return `this machine is busy: the ${count} unsteady files failed beside others and passed alone; load ${load.toFixed(1)} on ${availableParallelism()} processors`
}
