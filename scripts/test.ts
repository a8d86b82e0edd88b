/**
 * Runs tests with the runner of the pinned Node and ends with a count: `scripts/test.ts [options] [file or folder ...]`, by
 * default all tests, and some of test/wire a second time with workers in containers; `--help` lists the options.
 *
 * A file of test/wire or test/browser that fails runs once more, alone. If it then passes, it is listed as unsteady, with the output of its first run,
 * and counts as passed. Too many unsteady files fail the run.
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { type Arguments, readArguments } from './test/arguments.ts'
import { builtProgram } from './test/built-program.ts'
import { isOverSockets, LANES, planTasks, type Queues } from './test/lanes.ts'
import { type FileResult, runFile } from './test/run-file.ts'

/** Maximum number of unsteady files of a run. */
const MAX_UNSTEADY = 3
/** Number of slow files in the summary. */
const SLOWEST = 10

// Each file is a separate process, and most of them load the same modules.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'runyard-test-compile-cache')

const given = readArguments()
// Read by test/wire/support/server.ts. While files are watched, servers run the sources.
if (!given.list && !given.watch && given.files.some(isOverSockets))
  process.env.RUNYARD_TEST_PROGRAM = await builtProgram()
if (given.watch) watch(given)
else await main(given)

async function main({ grep, list, ...rest }: Arguments): Promise<void> {
  const { queues, skipped } = planTasks({ grep, list, ...rest })
  if (list) return showLanes(queues)
  const firstRuns = await runLanes(queues, grep)
  const failed = firstRuns.filter(({ hasPassed }) => !hasPassed)
  const isWire = ({ task }: FileResult) => isOverSockets(task.file)
  // With more failures than unsteady files are allowed, the run fails in any case, so only the first ones run again.
  const again = failed.filter(isWire).slice(0, MAX_UNSTEADY + 1)
  const unsteady: FileResult[] = []
  const results = new Set(firstRuns)
  for (const first of again) {
    console.log(`\nonce more, alone: ${first.name}`)
    const second = await runFile(first.task, grep)
    show(second)
    if (!second.hasPassed) continue
    unsteady.push(first)
    results.delete(first)
    results.add(second)
  }
  close([...results], unsteady, skipped === null ? [] : [skipped])
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

async function runLanes(queues: Queues, grep: readonly RegExp[]): Promise<FileResult[]> {
  const results: FileResult[] = []
  const engineIsFree = Promise.withResolvers<void>()
  const runLane = async (lane: readonly (keyof Queues)[]) => {
    for (const name of lane) {
      if (name === 'containers' || name === 'waitingContainers') await engineIsFree.promise
      const queue = queues[name]
      for (let task = queue.shift(); task !== undefined; task = queue.shift()) {
        const result = await runFile(task, grep)
        results.push(result)
        show(result)
      }
      if (name === 'engine') engineIsFree.resolve()
    }
  }
  await Promise.all(LANES.map(runLane))
  return results
}

function show({ name, counts, ms, output }: FileResult): void {
  process.stdout.write(output)
  console.log(`\n${name}: ${counts.passed} of ${counts.tests} passed in ${(ms / 1000).toFixed(1)} s`)
}

function close(
  results: readonly FileResult[],
  unsteady: readonly FileResult[],
  skippedSuites: readonly string[],
): void {
  const sum = (count: (counts: FileResult['counts']) => number) =>
    results.reduce((total, { counts }) => total + count(counts), 0)
  const passed = sum(counts => counts.passed)
  const skipped = sum(counts => counts.skipped)
  const failed = sum(counts => counts.tests - counts.passed - counts.skipped - counts.todo)
  const skips = [...skippedSuites, ...results.flatMap(result => result.skips)]
  const failures = results.filter(({ hasPassed }) => !hasPassed)
  const isStrict = process.env.RUNYARD_NO_SKIP === '1' && skips.length > 0
  const isUnsteady = unsteady.length > MAX_UNSTEADY
  process.exitCode = failures.length > 0 || passed === 0 || isStrict || isUnsteady ? 1 : 0
  const slowest = results.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST)
  process.on('exit', () => {
    for (const { name, output } of unsteady)
      console.log(`\nfirst run of ${name}, which passed when it ran alone:\n${output}`)
    console.log(`slowest: ${slowest.map(({ name, ms }) => `${name} ${Math.round(ms / 1000)} s`).join(', ')}`)
    for (const { name } of unsteady) console.log(`unsteady: ${name}`)
    if (isUnsteady) console.log(`failed: more than ${MAX_UNSTEADY} files are unsteady`)
    for (const { name } of failures) console.log(`failed: ${name}`)
    for (const skip of skips) console.log(`skipped${isStrict ? ' (a failure here)' : ''}: ${skip}`)
    console.log(`${passed} passed, ${failed} failed, ${Math.max(skipped, skips.length)} skipped`)
  })
}
