/** Servers that store jobs: Runyard and its peers, with the same request. */
import { join } from 'node:path'
import { createFolderEndpoint, makeEndpoint, requestTo, SMALL_JOB, startRunyard, workerFolder } from './runyard.ts'
import { type Bench, requestText, type Side } from './sides.ts'

/** The call of a benchmark, and its sides. */
export interface JobSides {
  /** `run` without workers, or `runsync` with a worker that takes 16 jobs at a time. */
  readonly call: 'run' | 'runsync'
  readonly sides: readonly SideName[]
  /** Further sides, by their names. */
  readonly more?: Readonly<Record<string, () => Promise<Omit<Side, 'name'>>>>
}

type SideName = 'Runyard' | 'Runyard on PostgreSQL' | 'BullMQ on Redis' | 'graphile-worker' | 'pg-boss'

/** The handler of a TypeScript worker that takes 16 jobs at a time and returns at once. */
export const ECHO_HANDLER = `import { start } from '@runyard/worker'
start({ concurrency: 16, handler: ({ input }) => ({ length: input.prompt.length }) })
`

/** Starts the wanted sides. */
export async function jobSides(bench: Bench, wants: (side: string) => boolean, options: JobSides): Promise<Side[]> {
  const { call, sides, more: extraSides = {} } = options
  let started: { url: string; pid: number } | null = null
  const postgres = () => {
    started ??= bench.postgres()
    return started
  }
  const peer = async (
    name: string,
    file: string,
    env: Readonly<Record<string, string>>,
    otherPids: readonly number[],
  ) => {
    const { port, pid } = await bench.peer(name, `${file}.mjs`, env)
    const workers = call === 'run' ? [] : [(await bench.peer(name, `${file}-workers.mjs`, env)).pid]
    return { port, request: requestText(port, `/${call}`, {}, SMALL_JOB), pids: [pid, ...workers, ...otherPids] }
  }
  const onPostgres = async (name: string, file: string, database: string) => {
    const { url, pid } = postgres()
    return peer(name, file, { DATABASE_URL: bench.database(url, database) }, [pid])
  }
  const start: Record<SideName, () => Promise<Omit<Side, 'name'>>> = {
    Runyard: () => runyardSide(bench, call, null, []),
    'Runyard on PostgreSQL': () => {
      const { url, pid } = postgres()
      return runyardSide(bench, call, bench.database(url, 'runyard'), [pid])
    },
    'BullMQ on Redis': async () => {
      const redis = await bench.redis()
      return peer('BullMQ', 'bullmq', { REDIS_PORT: String(redis.port) }, [redis.pid])
    },
    'graphile-worker': () => onPostgres('graphile-worker', 'graphile-worker', 'graphile'),
    'pg-boss': () => onPostgres('pg-boss', 'pg-boss', 'pgboss'),
  }
  const all = [...sides.map(name => [name, start[name]] as const), ...Object.entries(extraSides)]
  const openSides: Side[] = []
  for (const [name, open] of all) if (wants(name)) openSides.push({ name, ...(await open()) })
  return openSides
}

/** The HTTP stack of Runyard with nothing behind it. */
export async function ceilingSide(bench: Bench): Promise<Omit<Side, 'name'>> {
  const { line, pid } = await bench.start(process.execPath, [join(import.meta.dirname, 'ceiling.ts')])
  const port = Number(line)
  return { port, request: requestText(port, '/run', {}, SMALL_JOB), pids: [pid] }
}

async function runyardSide(
  bench: Bench,
  call: JobSides['call'],
  database: string | null,
  otherPids: readonly number[],
): Promise<Omit<Side, 'name'>> {
  const server = await startRunyard(bench, database)
  const folder = call === 'run' ? null : workerFolder(bench, ECHO_HANDLER)
  const endpoint =
    folder === null
      ? await makeEndpoint(server, { workersMax: 0 })
      : await createFolderEndpoint(server, folder, SMALL_JOB)
  const request = requestTo(server, `/v2/${endpoint}/${call}`, SMALL_JOB)
  return { port: server.port, request, pids: [server.pid, ...otherPids] }
}
