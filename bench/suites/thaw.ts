/** How long a job takes on a worker that is warm, on one that is frozen, and where there is none. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { median, percentile } from '../harness/rounds.ts'
import { ask, makeEndpoint, type RunyardServer, SMALL_JOB, startRunyard, workerFolder } from '../harness/runyard.ts'
import type { Bench } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

const JOBS = 20
/** Cold starts take longest and vary least. */
const COLD_JOBS = 6
const HANDLER = `import { start } from '@runyard/worker'
start({ handler: ({ input }) => ({ length: input.prompt.length }) })
`
const PYTHON_HANDLER = `import runpod

runpod.serverless.start({"handler": lambda job: {"length": len(job["input"]["prompt"])}})
`

/** A worker. */
interface Program {
  readonly name: string
  readonly folder: string
  readonly args: string
}

/** A Python with RunPod's SDK is named by RUNYARD_TEST_PYTHON; without one it is left out. */
export const thaw: Suite = {
  name: 'thaw',
  title: 'A job on a frozen worker: POST /runsync until its result',
  notes: `${JOBS} jobs on a warm and on a frozen worker, ${COLD_JOBS} where there is none, one after another. Workers are processes of a queue endpoint. The ratio is the median of a cold start by that of the row.`,
  quick: false,
  async run(bench, _effort, wants) {
    const server = await startRunyard(bench, null)
    const rows: TableRow[] = []
    const ratios: Record<string, number> = {}
    for (const program of programs(bench).filter(({ name }) => wants(name))) {
      const times = await measure(server, program)
      for (const [state, took] of Object.entries(times)) {
        const ratio = median(times.cold) / median(took)
        rows.push({ name: `${program.name}, ${state}`, cells: [median(took), percentile(took, 0.99), ratio] })
        if (state === 'frozen') ratios[program.name] = ratio
      }
    }
    const columns = [
      { heading: 'p50 ms', decimals: 1 },
      { heading: 'p99 ms', decimals: 1 },
      { heading: 'ratio', decimals: 1 },
    ]
    const table: Table = { title: '', columns, bars: 0, rows, ratios }
    console.log(tableText(table))
    return [table]
  },
}

async function measure(server: RunyardServer, { folder, args }: Program) {
  const short = { workersMax: 1, folder, args, idleTimeout: 1 }
  const warm = await makeEndpoint(server, { ...short, idleTimeout: 3_600 })
  const frozen = await makeEndpoint(server, { ...short, flashBootType: 'FLASHBOOT' })
  const cold = await makeEndpoint(server, short)
  for (const endpoint of [warm, frozen]) await runJob(server, endpoint)
  const times = { warm: [] as number[], frozen: [] as number[], cold: [] as number[] }
  for (let n = 0; n < JOBS; n += 1) {
    await when(server, frozen, phases => phases.every(phase => phase === 'frozen'))
    times.frozen.push(await timed(() => runJob(server, frozen)))
    times.warm.push(await timed(() => runJob(server, warm)))
    if (n >= COLD_JOBS) continue
    await when(server, cold, phases => phases.length === 0)
    times.cold.push(await timed(() => runJob(server, cold)))
  }
  return times
}

function programs(bench: Bench): Program[] {
  const typescript: Program = { name: 'TypeScript', folder: workerFolder(bench, HANDLER), args: '' }
  const python = process.env.RUNYARD_TEST_PYTHON
  if (python === undefined) {
    console.log('Python is left out: RUNYARD_TEST_PYTHON names none')
    return [typescript]
  }
  const folder = join(bench.folder, 'python-thaw')
  mkdirSync(folder)
  writeFileSync(join(folder, 'handler.py'), PYTHON_HANDLER)
  return [typescript, { name: 'Python', folder, args: `${python} -u handler.py` }]
}

async function timed(act: () => Promise<void>): Promise<number> {
  const before = performance.now()
  await act()
  return performance.now() - before
}

async function runJob(server: RunyardServer, endpoint: string): Promise<void> {
  const { status } = (await ask(server, `/v2/${endpoint}/runsync?wait=60000`, SMALL_JOB)) as { status: string }
  if (status !== 'COMPLETED') throw new Error(`the job is ${status}`)
}

/** Waits until the workers of an endpoint are in such phases. */
async function when(server: RunyardServer, endpoint: string, are: (phases: readonly string[]) => boolean) {
  for (;;) {
    const { workers } = (await ask(server, `/v2/serverless/${endpoint}/workers`)) as { workers: { phase: string }[] }
    if (are(workers.map(({ phase }) => phase))) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
