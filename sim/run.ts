/**
 * Runs seeds of the simulator, each twice unless `--once`, and prints how to repeat those that fail:
 * `./bin/node sim/run.ts [--seeds <count>] [--from <seed>] [--once] [--freezes] [--suspends] [--shares] [--pauses]
 * [--canaries] [--pair] [--kubernetes]`, or `--seed <seed> [--verbose]` for one with its trace. With `--freezes` idle
 * workers are frozen again and again, with `--suspends` they give up their cards, too, with `--shares` several of them
 * have one, with `--pauses` workers are paused in their jobs, with `--canaries` changes are released to a share of the
 * workers first, with `--pair` two servers are on one store, with `--kubernetes` workers are pods of a cluster.
 */
import { parseArgs } from 'node:util'
import { runSeed, type SeedResult } from './simulation.ts'
import type { Features } from './world.ts'

/** Number of idle turns of the event loop before the virtual clock advances. */
const QUIET_TURNS = 2

/**
 * Resolves when all work that the last timer caused is done. A turn of the event loop drains all microtasks; bodies
 * of requests and responses may need several turns, so it waits until `activity` no longer changes.
 */
export async function settle(activity: () => number): Promise<void> {
  let last = activity()
  for (let quiet = 0; quiet < QUIET_TURNS; ) {
    await new Promise<void>(resolve => setImmediate(resolve))
    const now = activity()
    quiet = now === last ? quiet + 1 : 0
    last = now
  }
}

/** Runs a seed twice. Different traces are a problem. */
export async function runTwice(seed: number, features: Features = {}): Promise<SeedResult> {
  const first = await runSeed(seed, { settle, ...features })
  const second = await runSeed(seed, { settle, ...features })
  if (first.hash === second.hash) return first
  const problem = `the second run has the trace ${second.hash} instead of ${first.hash}`
  return { ...first, problems: [...first.problems, problem] }
}

function report({ seed, hash, steps, problems, stats }: SeedResult, features: Features, realMs: number): void {
  const figures = [
    `seed ${String(seed).padStart(5)}`,
    hash,
    `${String(stats.jobs).padStart(4)} jobs`,
    `${String(stats.faults).padStart(4)} faults`,
    `${stats.restarts} restarts`,
    `${String(stats.virtualS).padStart(4)} virtual s`,
    `${String(steps).padStart(6)} steps`,
    `${String(realMs).padStart(5)} ms`,
  ]
  console.log(`${problems.length === 0 ? 'ok    ' : 'FAILED'} ${figures.join('  ')}`)
  for (const problem of problems.slice(0, 10)) console.log(`       ${problem}`)
  const options = Object.entries(features).flatMap(([name, isOn]) => (isOn === true ? [`--${name}`] : []))
  if (problems.length > 0)
    console.log(`       again: ${['./bin/node sim/run.ts --seed', seed, ...options, '--verbose'].join(' ')}`)
}

function describeTakeovers(takeoversMs: readonly number[]): string {
  const sorted = [...takeoversMs].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? 0
  return `${sorted.length} takeovers, median ${at(0.5)} ms, 99% ${at(0.99)} ms, longest ${at(1)} ms`
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '10' },
      from: { type: 'string', default: '1' },
      seed: { type: 'string' },
      once: { type: 'boolean', default: false },
      verbose: { type: 'boolean', default: false },
      freezes: { type: 'boolean', default: false },
      suspends: { type: 'boolean', default: false },
      shares: { type: 'boolean', default: false },
      pauses: { type: 'boolean', default: false },
      canaries: { type: 'boolean', default: false },
      pair: { type: 'boolean', default: false },
      kubernetes: { type: 'boolean', default: false },
    },
  })
  const from = Number(values.seed ?? values.from)
  const count = values.seed === undefined ? Number(values.seeds) : 1
  let failed = 0
  let frozen = 0
  let suspended = 0
  let resumed = 0
  const paused = { begun: 0, ended: 0 }
  const shared = { learned: 0, moved: 0, failed: 0 }
  const takeoversMs: number[] = []
  for (let seed = from; seed < from + count; seed += 1) {
    const startMs = process.uptime() * 1_000
    const { suspends, shares, pauses, freezes, canaries, pair, kubernetes } = values
    const features = { freezes, suspends, shares, pauses, canaries, pair, kubernetes }
    const listen = values.verbose ? { listen: (line: string) => console.log(line) } : {}
    const result =
      values.verbose || values.once
        ? await runSeed(seed, { settle, ...features, ...listen })
        : await runTwice(seed, features)
    report(result, features, Math.round(process.uptime() * 1_000 - startMs))
    takeoversMs.push(...result.stats.takeoversMs)
    frozen += result.stats.counts.freezes ?? 0
    suspended += result.stats.counts.suspends ?? 0
    resumed += result.stats.counts.resumes ?? 0
    paused.begun += result.stats.counts['paused workers'] ?? 0
    paused.ended += result.stats.counts['ended pauses of workers'] ?? 0
    shared.learned += result.stats.counts['learned shares'] ?? 0
    shared.moved += result.stats.counts['workers that moved for a neighbor'] ?? 0
    shared.failed += result.stats.counts['programs without GPU memory'] ?? 0
    if (values.verbose) console.log(result.stats.counts)
    if (result.problems.length > 0) failed += 1
  }
  if (values.pair) console.log(describeTakeovers(takeoversMs))
  if (values.freezes || values.suspends || values.shares) console.log(`workers were frozen ${frozen} times`)
  if (values.shares)
    console.log(
      `shares were learned ${shared.learned} times, ${shared.failed} programs found no memory, and ${shared.moved} workers moved`,
    )
  if (values.pauses) console.log(`workers were paused ${paused.begun} times, and went on ${paused.ended} times`)
  if (values.suspends || values.shares || values.pauses)
    console.log(`workers were suspended ${suspended} times, and resumed ${resumed} times`)
  if (failed > 0) console.log(`${failed} of ${count} seeds failed`)
  return failed === 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await main()
