/**
 * Runs benchmarks: `npm run bench -- [names] [--quick] [--rounds <number>] [--only <text>] [--json <file>] [--page]`. Each measures Runyard and
 * others in turn, in the same rounds, so that ratios hold on a busy machine too. Peers are installed at their first use (npm, apt). `--page` writes docs/benchmarks.md.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { writePage } from './harness/page.ts'
import { caseText, machineOf, type RunResult, rowsOf, type SuiteResult } from './harness/report.ts'
import { type Effort, measureRounds } from './harness/rounds.ts'
import { Bench } from './harness/sides.ts'
import type { Suite } from './harness/suite.ts'
import { enqueue } from './suites/enqueue.ts'

const SUITES: readonly Suite[] = [enqueue]

const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string', multiple: true },
    json: { type: 'string' },
    page: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const effort: Effort = values.quick
  ? { rounds: Number(values.rounds ?? 1), ms: 1_500, warmMs: 1_000 }
  : { rounds: Number(values.rounds ?? 5), ms: 4_000, warmMs: 1_500 }

const wanted = SUITES.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
if (wanted.length === 0)
  throw new Error(`there is no such benchmark; there are ${SUITES.map(({ name }) => name).join(', ')}`)
const results: SuiteResult[] = []
for (const suite of wanted) results.push(await runSuite(suite))
const run: RunResult = { date: new Date().toISOString().slice(0, 10), machine: machineOf(), effort, results }
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(run, null, 2)}\n`)
if (values.page) writePage(run, join(import.meta.dirname, '../docs'))

async function runSuite(suite: Suite): Promise<SuiteResult> {
  const bench = new Bench()
  try {
    const isWanted = (name: string) =>
      values.only === undefined || name === suite.baseline || values.only.some(text => name.includes(text))
    const sides = (await suite.start(bench)).filter(({ name }) => isWanted(name))
    console.log(`${suite.title}\n${effort.rounds} rounds of ${effort.ms} ms`)
    const cases: SuiteResult['cases'][number][] = []
    for (const load of suite.loads) {
      const rows = rowsOf(await measureRounds(sides, load, effort), suite.baseline)
      console.log(caseText(load.name, rows, suite))
      cases.push({ load: load.name, rows })
    }
    return { suite: suite.name, title: suite.title, baseline: suite.baseline, cases }
  } finally {
    await bench.stop()
  }
}
