/** Jobs a second that are kept: each response says that its job is on stable storage. Workers take none of them. */
import { join } from 'node:path'
import { makeEndpoint, startRunyard } from '../harness/runyard.ts'
import { type Bench, requestText, type Side } from '../harness/sides.ts'
import type { Suite } from '../harness/suite.ts'

const BODY = { input: { prompt: 'x'.repeat(400) } }

export const enqueue: Suite = {
  name: 'enqueue',
  title: 'Keep a job: POST /run, 400 bytes of input, on stable storage before the response',
  loads: [1, 32, 128].map(connections => ({
    name: connections === 1 ? '1 connection' : `${connections} connections`,
    connections,
    perSecond: null,
  })),
  baseline: 'BullMQ on Redis',
  async start(bench) {
    const { url: postgres, pid: postgresPid } = bench.postgres()
    const redis = await bench.redis()
    const databases = ['runyard', 'graphile', 'pgboss'].map(name => [name, bench.database(postgres, name)] as const)
    const database = Object.fromEntries(databases)
    return [
      await runyardSide(bench, 'Runyard', null, []),
      await runyardSide(bench, 'Runyard on PostgreSQL', database.runyard!, [postgresPid]),
      await peerSide(bench, 'BullMQ on Redis', 'bullmq.mjs', { REDIS_PORT: String(redis.port) }, [redis.pid]),
      await peerSide(bench, 'graphile-worker', 'graphile-worker.mjs', { DATABASE_URL: database.graphile! }, [
        postgresPid,
      ]),
      await peerSide(bench, 'pg-boss', 'pg-boss.mjs', { DATABASE_URL: database.pgboss! }, [postgresPid]),
      await ceilingSide(bench),
    ]
  },
}

async function runyardSide(
  bench: Bench,
  name: string,
  database: string | null,
  others: readonly number[],
): Promise<Side> {
  const server = await startRunyard(bench, database)
  const endpoint = await makeEndpoint(server, { workersMax: 0 })
  const request = requestText(server.port, `/v2/${endpoint}/run`, { authorization: `Bearer ${server.key}` }, BODY)
  return { name, port: server.port, request, pids: [server.pid, ...others] }
}

async function peerSide(
  bench: Bench,
  name: string,
  file: string,
  env: Readonly<Record<string, string>>,
  others: readonly number[],
): Promise<Side> {
  const { port, pid } = await bench.peer(name, file, env)
  return { name, port, request: requestText(port, '/run', {}, BODY), pids: [pid, ...others] }
}

async function ceilingSide(bench: Bench): Promise<Side> {
  const { line, pid } = await bench.start(process.execPath, [join(import.meta.dirname, '../harness/ceiling.ts')])
  const port = Number(line)
  return { name: 'HTTP stack alone, nothing kept', port, request: requestText(port, '/run', {}, BODY), pids: [pid] }
}
