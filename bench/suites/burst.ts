/** Speed at which workers start and end with the load of an endpoint. */

import { median } from '../harness/rounds.ts'
import { ask, makeEndpoint, type RunyardServer, startRunyard, workerFolder } from '../harness/runyard.ts'
import { processorSeconds } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

const IDLE_S = 1
const JOB_MS = 500
const POLL_MS = 10
/** Handler of jobs that are so long that each worker of a burst gets one. */
const HANDLER = `import { start } from '@runyard/worker'
start({ handler: () => new Promise(resolve => setTimeout(() => resolve(null), ${JOB_MS})) })
`

/** See the head of this file. */
export const burst: Suite = {
  name: 'burst',
  title: 'A burst of jobs for an endpoint without workers',
  notes: `As many jobs of ${JOB_MS} ms as the endpoint may have workers, sent at once; one worker for each job. From the first request until one worker has its job, until all have, and from the last result until no worker is left, beyond the idle timeout of ${IDLE_S} s. Processor time is that of the server with its relay and its workers, for each worker. Medians of the rounds.`,
  quick: false,
  async run(bench, effort) {
    const server = await startRunyard(bench, null)
    const folder = workerFolder(bench, HANDLER)
    const rows: TableRow[] = []
    for (const workers of [1, 4, 16]) {
      const endpoint = await makeEndpoint(server, { workersMax: workers, folder, idleTimeout: IDLE_S, requestCount: 1 })
      const bursts: number[][] = []
      for (let n = 0; n < effort.rounds; n += 1) bursts.push(await sendBurst(server, endpoint, workers))
      const cells = bursts[0]!.map((_, figure) => median(bursts.map(one => one[figure]!)))
      rows.push({ name: workers === 1 ? '1 worker' : `${workers} workers`, cells })
    }
    const columns = [
      { heading: 'first ms', decimals: 0 },
      { heading: 'all ms', decimals: 0 },
      { heading: 'to zero ms', decimals: 0 },
      { heading: 'processor ms', decimals: 0 },
    ]
    const table: Table = { title: '', columns, bars: 1, rows, ratios: {} }
    console.log(tableText(table))
    return [table]
  },
}

interface Health {
  readonly jobs: { readonly inProgress: number; readonly inQueue: number }
  readonly workers: Readonly<Record<string, number>>
}

async function sendBurst(server: RunyardServer, endpoint: string, workers: number): Promise<number[]> {
  const spent = processorSeconds([server.pid])
  const begin = performance.now()
  const jobs = Array.from({ length: workers }, () => ask(server, `/v2/${endpoint}/runsync?wait=120000`, { input: {} }))
  let done = false
  const all = Promise.all(jobs).then(() => {
    done = true
    return performance.now()
  })
  let [firstMs, allMs] = [Number.NaN, Number.NaN]
  while (!done && Number.isNaN(allMs)) {
    const { jobs: counts, workers: states } = await health(server, endpoint)
    if (counts.inProgress > 0 && Number.isNaN(firstMs)) firstMs = performance.now() - begin
    // A worker may end its job before the last one begins.
    if (counts.inQueue === 0 && (states.running ?? 0) > 0) allMs = performance.now() - begin
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  const endMs = await all
  for (;;) {
    const { workers: states } = await health(server, endpoint)
    if (Object.values(states).every(count => count === 0)) break
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  const toZeroMs = performance.now() - endMs - IDLE_S * 1_000
  return [firstMs, allMs, toZeroMs, ((processorSeconds([server.pid]) - spent) / workers) * 1_000]
}

async function health(server: RunyardServer, endpoint: string): Promise<Health> {
  return (await ask(server, `/v2/${endpoint}/health`)) as Health
}
