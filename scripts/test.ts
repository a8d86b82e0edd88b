/**
 * Runs tests with the pinned Node's own runner and closes with a plain count: `scripts/test.ts [folder ...]`, by default
 * every test there is. With RUNYARD_NO_SKIP=1, as in CI, a skipped test is a failure.
 */
import { globSync } from 'node:fs'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

interface Counts {
  readonly tests: number
  readonly passed: number
  readonly skipped: number
  readonly todo: number
}

const wanted = process.argv.slice(2)
const patterns = wanted.length === 0 ? ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'] : wanted.map(toPattern)
const files = [...new Set(patterns.flatMap(pattern => globSync(pattern)))].sort()
if (files.length === 0) {
  console.error(`no tests match ${patterns.join(' ')}`)
  process.exit(1)
}

const skips: string[] = []
/** Longer than any test takes, so that one that waits for ever fails instead of holding everything. */
const TIMEOUT_MS = 300_000

/**
 * Two lanes side by side, each one file after another: most wire tests wait more than they compute. What starts and stops a
 * container engine, or measures throughput, stays in the lane of the tests without sockets.
 */
const inSecondLane = (file: string) => /^test\/wire\/(?!docker|gateway)/.test(file)
const lanes = [files.filter(file => !inSecondLane(file)), files.filter(inSecondLane)].filter(lane => lane.length > 0)
close((await Promise.all(lanes.map(runLane))).reduce(sum))

function runLane(lane: readonly string[]): Promise<Counts> {
  return new Promise(resolve => {
    const stream = run({ files: lane, concurrency: 1, timeout: TIMEOUT_MS })
    stream.on('test:pass', ({ name, skip }) => {
      if (skip !== undefined) skips.push(typeof skip === 'string' ? `${name}: ${skip}` : name)
    })
    stream.on('test:summary', ({ file, counts }) => {
      if (file === undefined) resolve(counts)
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
  process.on('exit', () => {
    for (const skip of skips) console.log(`skipped${strict ? ' (a failure here)' : ''}: ${skip}`)
    console.log(`${passed} passed, ${failed} failed, ${Math.max(skipped, skips.length)} skipped`)
  })
}

function toPattern(name: string): string {
  return name.endsWith('.test.ts') ? name : `{test,packages}/**/${name.replace(/\/$/, '')}{/**/*,*}.test.ts`
}
