/**
 * Runs tests with the pinned Node's own runner and closes with a plain count: `scripts/test.ts [folder ...]`, by default
 * every test there is, and tests of test/wire a second time with workers in containers. `--workers container` runs
 * the latter alone, of all or of the named files. With RUNYARD_NO_SKIP=1, as in CI, a skipped test is a failure.
 */
import { globSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { parseArgs } from 'node:util'
import { containerFiles, leftOut } from '../test/wire/support/container-suite.ts'

interface Counts {
  readonly tests: number
  readonly passed: number
  readonly skipped: number
  readonly todo: number
}

/** A file, and whether its workers run in containers. */
interface Task {
  readonly file: string
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
const failures: string[] = []
const durations: { readonly file: string; readonly ms: number }[] = []
const SLOWEST = 10
/** What the runner says at the end of each file. */
const SUMMARY = /^\u2139 (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) .*\n/gm
/** Longer than any test takes, so that one that waits for ever fails instead of holding everything. */
const TIMEOUT_MS = 300_000
/** Longer than any file takes: what a failed test has left running may keep its file from ending. */
const FILE_MS = 900_000

/**
 * Files that take longest, the slowest first: what begins last decides when all is over. Those that mostly wait have a lane of their own,
 * since they cost the others nothing.
 */
const WAITING = [
  'faults/worker-faults',
  'clients/batch',
  'faults/relay-hang',
  'clients/python-surface',
  'faults/floods-slow',
  'faults/relay-process',
  'faults/relay',
  'attacks/body-that-kills-the-server',
  'attacks/webhook-targets',
].map(wireFile)
const SLOW = [
  ...[
    'faults/outage',
    'faults/restart',
    'clients/old-sdks',
    'faults/floods',
    'workers/python-worker',
    'faults/torture',
    'workers/node-worker',
    'faults/postgres-trouble',
  ].map(wireFile),
  ...['simulator', 'mutants', 'regressions', 'line-mutants'].map(name => `test/sim/${name}.test.ts`),
  'test/model/lifecycle.test.ts',
]
const ORDER = [...WAITING, ...SLOW]
const rank = (file: string) => (ORDER.includes(file) ? ORDER.indexOf(file) : ORDER.length)
const slowestFirst = (kept: (file: string) => boolean) => files.filter(kept).sort((a, b) => rank(a) - rank(b))

/** Starts and stops a container engine, so that nothing may run in containers meanwhile. */
const stopsEngine = (file: string) => /^test\/(?:wire\/docker\/|drivers\/docker\/|contract\/driver-docker)/.test(file)
/** Measures throughput: no two at once. */
const isGateway = (file: string) => /^test\/wire\/gateway\//.test(file)
const isWaiting = (file: string) => WAITING.includes(file)
const isWire = (file: string) =>
  file.startsWith('test/wire/') && ![stopsEngine, isGateway, isWaiting].some(is => is(file))

const inProcesses = (queue: readonly string[]) => queue.map(file => ({ file, containers: false }))
const own =
  values.workers === 'container' ? () => [] : (kept: (file: string) => boolean) => inProcesses(slowestFirst(kept))
const again = (values.workers === 'container' || wanted.length === 0 ? containerQueue() : []).map(file => ({
  file,
  containers: true,
}))
const queues = {
  engine: own(stopsEngine),
  gateway: own(isGateway),
  waiting: own(isWaiting),
  waitingContainers: again.filter(({ file }) => isWaiting(file)),
  wire: own(isWire),
  containers: again.filter(({ file }) => !isWaiting(file)),
  rest: own(file => ![stopsEngine, isGateway, isWaiting, isWire].some(is => is(file))),
}
if (Object.values(queues).flat().length === 0) {
  console.error(`no tests match ${patterns.join(' ')}`)
  process.exit(1)
}

/**
 * Lanes side by side, each one file after another. Wire tests wait about as long as they compute, so three of them keep two processors
 * busy; those without sockets, of which many are short, come last, and let all lanes end together.
 */
const LANES: readonly (readonly (keyof typeof queues)[])[] = [
  ['engine', 'gateway', 'containers', 'wire', 'rest'],
  ['wire', 'containers', 'rest'],
  ['wire', 'containers', 'rest'],
  ['waiting', 'waitingContainers'],
]
const engineIsFree = Promise.withResolvers<void>()
close((await Promise.all(LANES.map(runLane))).reduce(sum))

/** The files of tests that are about workers, where there is an engine for them. */
function containerQueue(): string[] {
  if (process.env.RUNYARD_TEST_DOCKER !== undefined) return slowestFirst(file => containerFiles.includes(file))
  skips.push('tests with workers in containers: RUNYARD_TEST_DOCKER names no engine')
  return []
}

function wireFile(name: string): string {
  return `test/wire/${name}.test.ts`
}

async function runLane(lane: readonly (keyof typeof queues)[]): Promise<Counts> {
  let counts: Counts = { tests: 0, passed: 0, skipped: 0, todo: 0 }
  for (const name of lane) {
    if (name === 'containers' || name === 'waitingContainers') await engineIsFree.promise
    const queue = queues[name]
    for (let task = queue.shift(); task !== undefined; task = queue.shift()) counts = sum(counts, await runFile(task))
    if (name === 'engine') engineIsFree.resolve()
  }
  return counts
}

async function runFile({ file, containers }: Task): Promise<Counts> {
  const began = performance.now()
  const special = containers
    ? { env: { ...process.env, RUNYARD_TEST_WORKERS: 'container' }, testSkipPatterns: leftOut }
    : {}
  const stream = run({ files: [file], timeout: TIMEOUT_MS, signal: AbortSignal.timeout(FILE_MS), ...special })
  stream.on('test:pass', ({ name, skip }) => {
    if (skip !== undefined) skips.push(typeof skip === 'string' ? `${name}: ${skip}` : name)
  })
  const counted = new Promise<Counts>(resolve => {
    stream.on('test:summary', summary => {
      if (summary.file === undefined) resolve(summary.counts)
    })
  })
  // Printed when it is over: lanes would print between each other's lines.
  const printed = await text(stream.compose(spec))
  const counts = await counted
  const ms = performance.now() - began
  const what = containers ? `${file} with workers in containers` : file
  durations.push({ file: what, ms })
  if (counts.passed + counts.skipped + counts.todo < counts.tests || counts.tests === 0) failures.push(what)
  process.stdout.write(printed.replace(SUMMARY, '').trimEnd())
  console.log(`\n${what}: ${counts.passed} of ${counts.tests} passed in ${(ms / 1000).toFixed(1)} s`)
  return counts
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
    for (const file of failures) console.log(`failed: ${file}`)
    for (const skip of skips) console.log(`skipped${strict ? ' (a failure here)' : ''}: ${skip}`)
    console.log(`${passed} passed, ${failed} failed, ${Math.max(skipped, skips.length)} skipped`)
  })
}

function toPattern(name: string): string {
  return name.endsWith('.test.ts') ? name : `{test,packages}/**/${name.replace(/\/$/, '')}{/**/*,*}.test.ts`
}
