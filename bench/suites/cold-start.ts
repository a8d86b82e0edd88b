/** Duration of the first job of an endpoint without workers, beside a start of the same program without any server. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { median, percentile } from '../harness/rounds.ts'
import { ask, makeEndpoint, type RunyardServer, SMALL_JOB, startRunyard, workerFolder } from '../harness/runyard.ts'
import type { Bench } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

const STARTS = 15
const HANDLER = `import { start } from '@runyard/worker'
start({ handler: ({ input }) => ({ length: input.prompt.length }) })
`
const PYTHON_HANDLER = `import runpod

runpod.serverless.start({"handler": lambda job: {"length": len(job["input"]["prompt"])}})
`
/** Program without a server: it ends once it has loaded the SDK of a worker. */
const ALONE = `import '@runyard/worker'
process.exit(0)
`

/** A program, started without a server and as a worker. */
interface Program {
  readonly name: string
  readonly folder: string
  readonly alone: readonly [string, ...string[]]
  readonly args: string
}

/**
 * See the head of this file. A Python with RunPod's SDK is named by RUNYARD_TEST_PYTHON; without one it is left out.
 */
export const coldStart: Suite = {
  name: 'cold-start',
  title: 'The first job of an endpoint without workers: POST /runsync until its result',
  notes: `${STARTS} starts, one after another; the worker of the one before has ended. A program alone is the same interpreter with the same packages, from its start to its end, in turn with the others. In a cage a worker has a network of its own, too, where this machine can make one. The ratio is that of the medians.`,
  quick: false,
  async run(bench, _effort, wants) {
    const server = await startRunyard(bench, null)
    const caged = await startRunyard(bench, null, { args: ['--worker-sandbox', 'required'] })
    const rows: TableRow[] = []
    const ratios: Record<string, number> = {}
    for (const program of programs(bench).filter(({ name }) => wants(name))) {
      const alone: number[] = []
      const asWorker: number[] = []
      const inCage: number[] = []
      const { folder, args } = program
      const wanted = { workersMax: 1, folder, args, idleTimeout: 1 }
      const [endpoint, other] = [await makeEndpoint(server, wanted), await makeEndpoint(caged, wanted)]
      for (let n = 0; n < STARTS; n += 1) {
        alone.push(await timed(() => runAlone(program)))
        asWorker.push(await timed(() => runJob(server, endpoint)))
        await whenEnded(server, endpoint)
        inCage.push(await timed(() => runJob(caged, other)))
        await whenEnded(caged, other)
      }
      const ratio = median(alone) / median(asWorker)
      const cells = (times: readonly number[]) => [Math.min(...times), median(times), percentile(times, 0.9)]
      rows.push({ name: `${program.name}, alone`, cells: [...cells(alone), 1] })
      rows.push({ name: `${program.name}, a job`, cells: [...cells(asWorker), ratio] })
      rows.push({
        name: `${program.name}, a job, in a cage`,
        cells: [...cells(inCage), median(alone) / median(inCage)],
      })
      ratios[program.name] = ratio
    }
    const columns = [
      { heading: 'least ms', decimals: 0 },
      { heading: 'p50 ms', decimals: 0 },
      { heading: 'p90 ms', decimals: 0 },
      { heading: 'ratio', decimals: 2 },
    ]
    const table: Table = { title: '', columns, bars: 1, rows, ratios }
    console.log(tableText(table))
    return [table]
  },
}

function programs(bench: Bench): Program[] {
  const node = workerFolder(bench, HANDLER)
  writeFileSync(join(node, 'alone.mjs'), ALONE)
  const typescript: Program = { name: 'TypeScript', folder: node, alone: [process.execPath, 'alone.mjs'], args: '' }
  const python = process.env.RUNYARD_TEST_PYTHON
  if (python === undefined) {
    console.log('Python is left out: RUNYARD_TEST_PYTHON is not set')
    return [typescript]
  }
  const folder = join(bench.folder, 'python-cold')
  mkdirSync(folder)
  writeFileSync(join(folder, 'handler.py'), PYTHON_HANDLER)
  const alone = [python, '-c', 'import runpod'] as const
  return [typescript, { name: 'Python', folder, alone, args: `${python} -u handler.py` }]
}

async function timed(act: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await act()
  return performance.now() - startMs
}

async function runAlone({ folder, alone: [command, ...args] }: Program): Promise<void> {
  const child = spawn(command, args, { cwd: folder, stdio: 'ignore' })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${command} ended with ${code}`)
}

async function runJob(server: RunyardServer, endpoint: string): Promise<void> {
  const { status } = (await ask(server, `/v2/${endpoint}/runsync?wait=60000`, SMALL_JOB)) as { status: string }
  if (status !== 'COMPLETED') throw new Error(`the job is ${status}`)
}

async function whenEnded(server: RunyardServer, endpoint: string): Promise<void> {
  for (;;) {
    const { workers } = (await ask(server, `/v2/${endpoint}/health`)) as { workers: Record<string, number> }
    if (Object.values(workers).every(count => count === 0)) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
