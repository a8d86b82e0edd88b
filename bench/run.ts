/**
 * Runs benchmarks: `npm run bench -- [names] [--quick] [--rounds <number>] [--only <side>] [--json <file>]
 * [--page] [--keep-ratios]`.
 *
 * Each measures Runyard and others in turn, in the same rounds, so that ratios hold on a busy machine too. Peers
 * are installed at their first use (npm, apt). `--page` writes the sections of docs/benchmarks.md. `--quick`
 * measures a part for a moment, and fails where a ratio is less than a quarter of the one in bench/ratios.json,
 * which `--keep-ratios` writes.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { writePage } from './harness/page.ts'
import { collapsed, collectRatios, keepRatios, ratioLines } from './harness/ratios.ts'
import { describeMachine, type RunResult, type SuiteResult } from './harness/report.ts'
import type { RoundOptions } from './harness/rounds.ts'
import { Bench } from './harness/sides.ts'
import type { Suite } from './harness/suite.ts'
import { autoscaler } from './suites/autoscaler.ts'
import { burst } from './suites/burst.ts'
import { coldStart } from './suites/cold-start.ts'
import { depth, payload } from './suites/depth.ts'
import { enqueue } from './suites/enqueue.ts'
import { gateway } from './suites/gateway.ts'
import { held } from './suites/held.ts'
import { httpThreads } from './suites/http-threads.ts'
import { idle } from './suites/idle.ts'
import { lifecycle } from './suites/lifecycle.ts'
import { models } from './suites/models.ts'
import { overload } from './suites/overload.ts'
import { policy } from './suites/policy.ts'
import { runsync } from './suites/runsync.ts'
import { shortJobs } from './suites/short-jobs.ts'
import { stream } from './suites/stream.ts'
import { tail } from './suites/tail.ts'
import { thaw } from './suites/thaw.ts'
import { threadJobs } from './suites/thread-jobs.ts'

const SUITES: readonly Suite[] = [
  enqueue,
  lifecycle,
  runsync,
  stream,
  depth,
  payload,
  gateway,
  httpThreads,
  threadJobs,
  models,
  coldStart,
  thaw,
  shortJobs,
  burst,
  autoscaler,
  held,
  idle,
  overload,
  policy,
  tail,
]

const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string', multiple: true },
    json: { type: 'string' },
    page: { type: 'boolean', default: false },
    'keep-ratios': { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const isQuick = values.quick
const effort: RoundOptions = isQuick
  ? { rounds: Number(values.rounds ?? 1), ms: 1_000, warmMs: 1_000, isQuick }
  : { rounds: Number(values.rounds ?? 5), ms: 4_000, warmMs: 1_500, isQuick }

const isWanted = ({ name, quick }: Suite) => (positionals.length === 0 ? quick || !isQuick : positionals.includes(name))
const names = SUITES.map(({ name }) => name)
const unknown = positionals.filter(name => !names.includes(name))
if (unknown.length > 0) {
  console.error(`no benchmark is named ${unknown.join(', ')}; the benchmarks are ${names.join(', ')}`)
  process.exit(64)
}
const wanted = SUITES.filter(isWanted)
const results: SuiteResult[] = []
for (const suite of wanted) results.push(await runSuite(suite))
const run: RunResult = { date: new Date().toISOString().slice(0, 10), machine: describeMachine(), effort, results }
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(run, null, 2)}\n`)
if (values.page) writePage(run, join(import.meta.dirname, '../docs'))
if (values['keep-ratios']) keepRatios(results)
if (isQuick) await check(results)

async function runSuite(suite: Suite): Promise<SuiteResult> {
  const bench = new Bench()
  try {
    console.log(`\n${suite.title}`)
    // A short run has only Runyard and its baseline.
    const wants = (side: string) =>
      values.only === undefined ? !isQuick || side.startsWith('Runyard') : values.only.some(text => side.includes(text))
    const tables = await suite.run(bench, effort, wants)
    return { suite: suite.name, title: suite.title, notes: suite.notes ?? '', tables }
  } finally {
    await bench.stop()
  }
}

/** Measures collapsed sides once more, since another program may have used the machine for a moment. */
async function check(first: readonly SuiteResult[]): Promise<void> {
  let all = collectRatios(first)
  for (const suite of wanted) {
    if (!collapsed(all).some(name => name.startsWith(`${suite.name}, `))) continue
    const again = collectRatios([await runSuite(suite)])
    const both = new Set([...Object.keys(all), ...Object.keys(again)])
    all = Object.fromEntries([...both].map(name => [name, Math.max(all[name] ?? 0, again[name] ?? 0)]))
  }
  console.log(`\n${ratioLines(all)}`)
  if (collapsed(all).length > 0) process.exitCode = 1
}
