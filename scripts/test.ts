/**
 * Runs tests with the pinned Node's own runner and closes with a plain count: `scripts/test.ts [folder ...]`, by default
 * every test there is, and tests of test/wire a second time with workers in containers. `--workers container` runs
 * the latter alone, of all or of the named files. With RUNYARD_NO_SKIP=1, as in CI, a skipped test is a failure.
 */
import { globSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { parseArgs } from 'node:util'
import { containerFiles, leftOut } from '../test/wire/container-suite.ts'

interface Counts {
  readonly tests: number
  readonly passed: number
  readonly skipped: number
  readonly todo: number
}

/** Files that run one after another, some of them with workers in containers. */
interface Pass {
  readonly files: readonly string[]
  readonly containers: boolean
}

const { values, positionals: wanted } = parseArgs({
  options: { workers: { type: 'string', default: '' } },
  allowPositionals: true,
})
if (!['', 'container'].includes(values.workers)) {
  console.error(`--workers must be container, not '${values.workers}'`)
  process.exit(64)
}
const patterns = wanted.length === 0 ? ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'] : wanted.map(toPattern)
const files = [...new Set(patterns.flatMap(pattern => globSync(pattern)))].sort()

// Each file is a process of its own, and most of them load the same modules.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'runyard-test-compile-cache')

const skips: string[] = []
const durations: { readonly file: string; readonly ms: number }[] = []
const SLOWEST = 10
/** Longer than any test takes, so that one that waits for ever fails instead of holding everything. */
const TIMEOUT_MS = 300_000
/** Longer than any file takes: what a failed test has left running may keep its file from ending. */
const FILE_MS = 900_000

/**
 * Two lanes side by side, each one file after another: most wire tests wait more than they compute. What starts and stops a
 * container engine comes first in the lane of the tests without sockets, what measures throughput last. The files that run
 * again with workers in containers are for whichever lane is free, once the engine is left alone, and so are then the wire
 * tests that are left. What only waits, for minutes, has a lane beside both.
 */
const waits = (file: string) => /^test\/wire\/worker-faults/.test(file)
const inSecondLane = (file: string) => /^test\/wire\/(?!docker|gateway)/.test(file) && !waits(file)
const stopsEngine = (file: string) => /^test\/(wire|contract)\/(driver-)?docker/.test(file)
const plain = (kept: (file: string) => boolean): Pass => ({ files: files.filter(kept), containers: false })
const wire = values.workers === 'container' ? [] : files.filter(inSecondLane)
const again = values.workers === 'container' || wanted.length === 0 ? containerQueue() : []
const own: Pass[][] =
  values.workers === 'container'
    ? [[]]
    : [
        [plain(stopsEngine), plain(file => ![inSecondLane, stopsEngine, waits].some(is => is(file)))],
        [],
        [plain(waits)],
      ]
if ([...own.flat().flatMap(pass => pass.files), ...wire, ...again].length === 0) {
  console.error(`no tests match ${patterns.join(' ')}`)
  process.exit(1)
}
const engine = Promise.withResolvers<void>()
close((await Promise.all(own.map(runLane))).reduce(sum))

/** The files of tests that are about workers, where there is an engine for them. */
function containerQueue(): string[] {
  if (process.env.RUNYARD_TEST_DOCKER !== undefined) return files.filter(file => containerFiles.includes(file))
  skips.push('tests with workers in containers: RUNYARD_TEST_DOCKER names no engine')
  return []
}

async function runLane(lane: readonly Pass[], index: number): Promise<Counts> {
  let counts: Counts = { tests: 0, passed: 0, skipped: 0, todo: 0 }
  const runAll = async (queue: string[], containers: boolean) => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      counts = sum(counts, await runPass({ files: [file], containers }))
    }
  }
  for (const pass of lane) {
    if (pass.files.length > 0) counts = sum(counts, await runPass(pass))
    if (index === 0) engine.resolve()
  }
  if (index === 0) engine.resolve()
  if (index === 1) await runAll(wire, false)
  await engine.promise
  await runAll(again, true)
  await runAll(wire, false)
  return counts
}

function runPass({ files, containers }: Pass): Promise<Counts> {
  return new Promise(resolve => {
    const began = performance.now()
    const special = containers
      ? { env: { ...process.env, RUNYARD_TEST_WORKERS: 'container' }, testSkipPatterns: leftOut }
      : {}
    const giveUp = new AbortController()
    const watch = setTimeout(() => giveUp.abort(), FILE_MS)
    const stream = run({ files, concurrency: 1, timeout: TIMEOUT_MS, signal: giveUp.signal, ...special })
    stream.on('test:pass', ({ name, skip }) => {
      if (skip !== undefined) skips.push(typeof skip === 'string' ? `${name}: ${skip}` : name)
    })
    stream.on('test:summary', ({ file, counts, duration_ms }) => {
      if (file !== undefined) {
        watch.refresh()
        durations.push({ file: `${relative('', file)}${containers ? ' (containers)' : ''}`, ms: duration_ms })
        return
      }
      clearTimeout(watch)
      const name = files.length === 1 ? files[0] : `${files.length} files`
      const what = containers ? `${name} with workers in containers` : name
      console.log(
        `${what}: ${counts.passed} of ${counts.tests} passed in ${Math.round((performance.now() - began) / 1000)} s`,
      )
      resolve(counts)
    })
    stream.compose(spec).pipe(process.stdout, { end: false })
  })
}

function sum(a: Counts, b: Counts): Counts {
  return {
    tests: a.tests + b.tests,
    passed: a.passed + b.passed,
    skipped: a.skipped + b.skipped,
    todo: a.todo + b.todo,
  }
}

function close({ tests, passed, skipped, todo }: Counts): void {
  const failed = tests - passed - skipped - todo
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0
  const strict = process.env.RUNYARD_NO_SKIP === '1' && skips.length > 0
  if (strict) process.exitCode = 1
  const slowest = durations.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST)
  process.on('exit', () => {
    console.log(`slowest: ${slowest.map(({ file, ms }) => `${file} ${Math.round(ms / 1000)} s`).join(', ')}`)
    for (const skip of skips) console.log(`skipped${strict ? ' (a failure here)' : ''}: ${skip}`)
    console.log(`${passed} passed, ${failed} failed, ${Math.max(skipped, skips.length)} skipped`)
  })
}

function toPattern(name: string): string {
  return name.endsWith('.test.ts') ? name : `{test,packages}/**/${name.replace(/\/$/, '')}{/**/*,*}.test.ts`
}
