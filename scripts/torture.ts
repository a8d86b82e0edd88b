/**
 * Shows that no accepted job is lost: submits jobs while the server is killed with kill -9 every second and started
 * again at once, and then checks every acknowledged job. Exits with 0 when all of them have one correct outcome, and
 * otherwise with 1 and the ids of the faulty jobs.
 *
 *     ./bin/node scripts/torture.ts [--jobs 1000] [--kills 10] [--worker python|node] [--database postgres://...]
 *     ./bin/node scripts/torture.ts --freezes 200 [--workers 12] [--worker python|node] [--database postgres://...]
 *     ./bin/node scripts/torture.ts --soak 60 [--rate 7] [--kill-every 60] [--clock-step 3600]
 *
 * With `--freezes` its workers are frozen when they are idle and thawed for the next wave of jobs, this number of
 * times, while the server is killed at random moments and new versions are released. No worker may be frozen for ever
 * or be thawed after a newer release.
 *
 * With `--soak` it sends mixed load for this number of minutes: `rate` jobs, batches and load-balanced requests begin
 * in a second, a kill comes every `kill-every` seconds, the disk is full for 20 seconds in the middle (only where
 * this process may mount one), and then the clock of the server is stepped by `clock-step` seconds (only where
 * libfaketime is installed).
 *
 * The Python interpreter is `--python`, else RUNYARD_TEST_PYTHON, else `python3`; it needs the package runpod. A
 * database gets its own schema, which is dropped at the end.
 */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { withSchema } from './torture/database.ts'
import { torture } from './torture/run.ts'
import { soak } from './torture/soak/run.ts'

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '1000' },
    kills: { type: 'string' },
    freezes: { type: 'string', default: '0' },
    soak: { type: 'string', default: '0' },
    rate: { type: 'string', default: '7' },
    'kill-every': { type: 'string', default: '60' },
    'clock-step': { type: 'string', default: '3600' },
    worker: { type: 'string' },
    python: { type: 'string', default: process.env.RUNYARD_TEST_PYTHON ?? 'python3' },
    workers: { type: 'string' },
    database: { type: 'string' },
    minutes: { type: 'string' },
  },
})

const MAX_FAULTS = 50

function whole(
  name: Exclude<keyof typeof values, 'worker' | 'python' | 'database'>,
  minimum: number,
  maximum: number,
  fallback?: number,
): number {
  const value = Number(values[name] ?? fallback)
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return value
  console.error(`torture: --${name} must be a whole number from ${minimum} to ${maximum}, not '${values[name]}'`)
  process.exit(64)
}

function hasRunpod(python: string): boolean {
  try {
    execFileSync(python, ['-c', 'import importlib.metadata as m; m.version("runpod")'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const jobs = whole('jobs', 1, 100_000)
const freezes = whole('freezes', 0, 10_000)
const kills = whole('kills', 0, 1_000, freezes > 0 ? 1_000 : 10)
const workers = whole('workers', 1, 50, freezes > 0 ? 12 : 3)
// A wave wakes all workers.
const atOnce = freezes > 0 ? 1 : 8
const minutes = whole('minutes', 1, 600, freezes > 0 ? 10 : 5)
const kind = values.worker ?? (hasRunpod(values.python) ? 'python' : 'node')
if (kind !== 'python' && kind !== 'node') {
  console.error(`torture: --worker must be python or node, not '${kind}'`)
  process.exit(64)
}
if (kind === 'python' && !hasRunpod(values.python)) {
  console.error(`torture: ${values.python} cannot be run or has no package runpod; give another --python`)
  process.exit(64)
}

const soakMinutes = whole('soak', 0, 10_080)

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
if (soakMinutes > 0) await soakAndExit()
const sdk = kind === 'python' ? 'the Python SDK' : '@runyard/worker'
console.log(
  freezes > 0
    ? `waves of ${workers} jobs until workers on ${sdk} were frozen and thawed ${freezes} times, kills of the server at random moments`
    : `${jobs} jobs, ${workers} workers on ${sdk} with ${atOnce} jobs at once, ${kills} kills of the server, one every second`,
)
const { rows, faults } = await withSchema(values.database ?? null, database =>
  torture({
    jobs,
    kills,
    freezes,
    workers,
    atOnce,
    database,
    python: kind === 'python' ? values.python : null,
    limitMs: minutes * 60_000,
    progress: line => console.log(line),
  }),
)
printFindings(
  rows,
  faults.map(({ id, what }) => `${id} ${what}`),
)

async function soakAndExit(): Promise<never> {
  const findings = await soak({
    minutes: soakMinutes,
    rate: whole('rate', 1, 1_000),
    killEveryS: whole('kill-every', 5, 86_400),
    clockStepS: whole('clock-step', -31_536_000, 31_536_000),
    python: kind === 'python' ? values.python : null,
    progress: line => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`),
  })
  return printFindings(
    findings.rows,
    findings.faults.map(({ kind: fault, id, what, atS }) => `${fault} at ${atS} s: ${id} ${what}`),
  )
}

function printFindings(rows: readonly (readonly [string, string])[], faults: readonly string[]): never {
  console.log('')
  for (const [name, value] of rows) console.log(`${name.padEnd(36)} ${value}`)
  console.log('')
  if (faults.length === 0) console.log('Nothing that was acknowledged is missing, and each job has one outcome.')
  else {
    console.log(`${faults.length} faults:`)
    for (const fault of faults.slice(0, MAX_FAULTS)) console.log(fault)
  }
  process.exit(faults.length === 0 ? 0 : 1)
}
