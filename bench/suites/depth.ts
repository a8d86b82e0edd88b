/** Growth of the cost of calls with the queue of an endpoint and its finished jobs, and with the size of inputs. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { median } from '../harness/rounds.ts'
import { ask, makeEndpoint, type RunyardServer, SMALL_JOB, startRunyard } from '../harness/runyard.ts'
import { type Bench, memoryMb } from '../harness/sides.ts'
import { type Column, type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

const CALLS = 60
const MB = 1_000_000

/** A worker that does nothing itself: the benchmark calls in its name. */
interface Worker {
  readonly id: string
  readonly token: string
}

/** A server with an endpoint whose queue has jobs. */
interface DeepServer {
  readonly server: RunyardServer
  readonly endpoint: string
  readonly worker: Worker
  readonly startMs: number
}

/** Calls by queue length. */
export const depth: Suite = {
  name: 'depth',
  title: 'Calls of an endpoint with many jobs',
  notes: `As many jobs wait in its queue as have finished. The median of ${CALLS} calls one after another, in milliseconds, and the longest of all calls. The start is that of the server with this database; memory is that of the server after the calls.`,
  quick: false,
  async run(bench, effort) {
    const rows: TableRow[] = []
    let columns: readonly Column[] = []
    for (const jobs of effort.isQuick ? [10, 20_000] : [10, 100_000, 1_000_000]) {
      const deep = await deepServer(bench, jobs)
      const cells = await timeCalls(deep, SMALL_JOB)
      columns = [...Object.keys(cells).map(heading => ({ heading, decimals: 2 })), ...ENDS]
      const memory = memoryMb(deep.server.pid)
      rows.push({ name: `${jobs} queued`, cells: [...Object.values(cells), deep.startMs, memory] })
      await bench.stopOne(deep.server.pid)
    }
    const table: Table = { title: 'ms', columns, bars: null, rows, ratios: columnGrowth(rows, columns) }
    console.log(tableText(table))
    return [table]
  },
}

const ENDS: readonly Column[] = [
  { heading: 'start', decimals: 0 },
  { heading: 'memory MB', decimals: 0 },
]

/** Calls by size of the input. */
export const payload: Suite = {
  name: 'payload',
  title: 'Calls with large inputs',
  notes: `The median of ${CALLS} calls one after another, in milliseconds, and the longest of all calls. Results are as large as inputs.`,
  quick: false,
  async run(bench) {
    const rows: TableRow[] = []
    let columns: readonly Column[] = []
    for (const bytes of [400, MB, 9 * MB]) {
      const deep = await deepServer(bench, 10)
      const cells = await timeCalls(deep, { input: { prompt: 'x'.repeat(bytes) } })
      columns = [...Object.keys(cells).map(heading => ({ heading, decimals: 2 })), ENDS[1]!]
      const name = bytes < MB ? `${bytes} bytes` : `${bytes / MB} MB`
      rows.push({ name, cells: [...Object.values(cells), memoryMb(deep.server.pid)] })
      await bench.stopOne(deep.server.pid)
    }
    const table: Table = { title: 'ms', columns, bars: null, rows, ratios: {} }
    console.log(tableText(table))
    return [table]
  },
}

/** Cost of each call with the shortest queue, divided by that with the longest one: 1 if the cost does not grow. */
function columnGrowth(rows: readonly TableRow[], columns: readonly Column[]): Record<string, number> {
  const [first, last] = [rows[0]!.cells, rows.at(-1)!.cells]
  const medians = columns.flatMap(({ heading }, index) =>
    heading === 'longest' || ENDS.some(end => end.heading === heading) ? [] : [[heading, index] as const],
  )
  return Object.fromEntries(medians.map(([heading, index]) => [`flat ${heading}`, first[index]! / last[index]!]))
}

async function timeCalls({ server, endpoint, worker }: DeepServer, body: object): Promise<Record<string, number>> {
  const longest = { ms: 0 }
  const timed = async <Result>(took: number[], act: () => Promise<Result>): Promise<Result> => {
    const beganMs = performance.now()
    const result = await act()
    took.push(performance.now() - beganMs)
    return result
  }
  const path = (call: string) => `/v2/${endpoint}/${call}`
  const asWorker: RunyardServer = { ...server, key: worker.token }
  const took = new Map<string, number[]>()
  const call = <Result>(name: string, act: () => Promise<Result>) =>
    timed(
      took.getOrInsertComputed(name, () => []),
      act,
    )
  for (let n = 0; n < CALLS; n += 1) {
    const { id } = (await call('run', () => ask(server, path('run'), body))) as { id: string }
    await call('status', () => ask(server, path(`status/${id}`)))
    await call('health', () => ask(server, path('health')))
    await call('list', () => ask(server, path('requests')))
    await call('explain', () => ask(server, path('explain')))
    await call('explain a job', () => ask(server, path(`explain/${id}`)))
    await call('metrics', () => ask(server, '/metrics'))
    const takenJob = (await call('take', () =>
      ask(asWorker, path(`job-take/${worker.id}?gpu=CPU&job_in_progress=0`)),
    )) as { id: string }
    const output = { output: (body as { input: object }).input }
    await call('done', () => ask(asWorker, path(`job-done/${worker.id}/${takenJob.id}?gpu=CPU&isStream=false`), output))
    const other = (await ask(server, path('run'), body)) as { id: string }
    await call('cancel', () => ask(server, path(`cancel/${other.id}`), {}))
  }
  for (const all of took.values()) longest.ms = Math.max(longest.ms, ...all.slice(1))
  const medians = [...took].map(([name, all]) => [name, median(all)] as const)
  return { ...Object.fromEntries(medians), longest: longest.ms }
}

async function deepServer(bench: Bench, jobs: number): Promise<DeepServer> {
  const dataDir = join(bench.folder, `depth-${jobs}-${Math.round(performance.now())}`)
  const records = `${dataDir}-records`
  mkdirSync(records)
  const first = await startRunyard(bench, null, { dataDir })
  const endpoint = await makeEndpoint(first, { workersMin: 1, workersMax: 1, env: { WIRE_FOLDER: records } })
  await bench.stopOne(first.pid)
  fill(join(dataDir, 'runyard.sqlite'), endpoint, jobs)
  const beganMs = performance.now()
  const oldRecords = new Set(readdirSync(records))
  const server = await startRunyard(bench, null, { dataDir })
  const startMs = performance.now() - beganMs
  for (let tries = 0; tries < 600; tries += 1) {
    const name = readdirSync(records).find(name => name.endsWith('.json') && !oldRecords.has(name))
    if (name !== undefined) return { server, endpoint, worker: readWorker(join(records, name)), startMs }
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error('the worker did not start')
}

function readWorker(file: string): Worker {
  const environment = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  return { id: environment.RUNPOD_POD_ID!, token: environment.RUNPOD_AI_API_KEY! }
}

/** Inserts queued jobs and as many finished ones, while no server runs. */
function fill(file: string, endpoint: string, jobs: number): void {
  const database = new DatabaseSync(file)
  const now = Date.now()
  const day = 86_400_000
  const insert = database.prepare(`
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :jobs)
    INSERT INTO jobs (id, owner, endpoint_id, kind, status, input, low_priority, position, execution_timeout_ms, ttl_ms, retention_ms,
      queued_at_ms, started_at_ms, deadline_ms, finished_at_ms, expires_at_ms, worker_id, input_bytes, output, output_bytes, attempt,
      lost_attempts, streamed_seq)
    SELECT printf('%s%08x-0000-7000-8000-000000000000-u1', :prefix, i), owner, id, 'run', :status, :input, 0, :now * 1024 - :jobs + i, 600000, :day, :day,
      :now - :jobs + i, :started, :started, :started, :now + :day + i, NULL, length(:input), :output, length(:output), 0, 0, 0
    FROM n, endpoints WHERE endpoints.id = :endpoint`)
  const same = { jobs, now, day, input: JSON.stringify(SMALL_JOB.input), endpoint }
  insert.run({ ...same, prefix: '0', status: 'IN_QUEUE', started: null, output: null })
  insert.run({ ...same, prefix: '1', status: 'COMPLETED', started: now, output: '{"length":400}' })
  database.close()
}
