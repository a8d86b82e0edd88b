/**
 * Wait of neighbors while workers print without end: `./bin/node bench/output-floods.ts [workers, 50 unless
 * given] [seconds, 30 unless given]`.
 *
 * One client calls `/healthz`, `run` and `runsync` of another endpoint, one call after the other, first alone
 * and then beside the workers, half of which never end their line. Prints the percentiles, and the largest
 * output of one worker on the disk.
 */
import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describeMachine } from './harness/report.ts'
import { ask, createFolderEndpoint, makeEndpoint, type RunyardServer, startRunyard } from './harness/runyard.ts'
import { Bench, processorSeconds } from './harness/sides.ts'

const WORKERS = Number(process.argv[2] ?? 50)
const SECONDS = Number(process.argv[3] ?? 30)
const JOB = { input: { name: 'neighbor' } }

/** Largest output of a worker on the disk, in bytes. */
function mostOnDisk(dataDir: string): number {
  const folder = join(dataDir, 'logs')
  const countBytes = (worker: string) =>
    readdirSync(join(folder, worker))
      .map(name => statSync(join(folder, worker, name), { throwIfNoEntry: false })?.size ?? 0)
      .reduce((sum, bytes) => sum + bytes, 0)
  return Math.max(0, ...readdirSync(folder).map(countBytes))
}

/** Calls for some seconds, and prints the durations of each kind of call. */
async function measure(caseName: string, server: RunyardServer, endpoint: string): Promise<void> {
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    healthz: () => ask(server, '/healthz'),
    run: () => ask(server, `/v2/${endpoint}/run`, JOB),
    runsync: () => ask(server, `/v2/${endpoint}/runsync`, JOB),
  }
  const took = new Map<string, number[]>(Object.keys(calls).map(name => [name, []]))
  let mostBytes = 0
  const used = processorSeconds([server.pid], true)
  const endMs = performance.now() + SECONDS * 1000
  while (performance.now() < endMs) {
    for (const [name, call] of Object.entries(calls)) {
      const startMs = performance.now()
      await call()
      took.get(name)!.push(performance.now() - startMs)
    }
    mostBytes = Math.max(mostBytes, mostOnDisk(server.dataDir))
    await pause(10)
  }
  for (const [name, values] of took) {
    const sorted = values.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(1)
    console.log(`${caseName}: ${name} p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms, ${sorted.length} calls`)
  }
  const cores = (processorSeconds([server.pid], true) - used) / SECONDS
  console.log(
    `${caseName}: the server used ${cores.toFixed(2)} of a core; most of one worker on the disk ${(mostBytes / 1e6).toFixed(1)} MB`,
  )
}

const bench = new Bench()
try {
  const server = await startRunyard(bench, null, { args: ['--max-workers', String(WORKERS + 1)] })
  const neighbor = await createFolderEndpoint(server, resolve('examples/hello-node'), JOB)
  await measure('alone', server, neighbor)
  for (const args of ['yes a line of output', 'cat /dev/zero']) {
    const count = Math.ceil(WORKERS / 2)
    await makeEndpoint(server, { workersMin: count, workersMax: count, args })
  }
  await pause(10_000)
  await measure(`${WORKERS} flooding workers`, server, neighbor)
  console.log(Object.values(describeMachine()).join(', '))
} finally {
  await bench.stop()
}
