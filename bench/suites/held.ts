/** Costs of open connections without traffic: polls of workers for jobs, and sockets through the gateway. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readRelayInfo } from '../../src/relay/relay-file.ts'
import type { HoldTask } from '../harness/hold-client.ts'
import { makeEndpoint, requestTo, startRunyard } from '../harness/runyard.ts'
import { type Bench, memoryMb, processorSeconds, requestText } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'
import { balancedServer, GATEWAY_PATH, startBackend } from './gateway.ts'

const POLLS = 2_000
/** Number of workers, each with many polls, since one machine has room for few workers; a poll costs the same. */
const POLLING_WORKERS = 40
const SOCKETS = 5_000
/** Pause after all connections are open, and duration of the measurement after it. */
const SETTLE_MS = 5_000
const WATCH_MS = 30_000
/** Time after which a poll that was not refused counts as held. */
const HELD_MS = 300

/** A holder of connections, and the processes whose time and memory count. */
interface Holder extends HoldTask {
  readonly pids: readonly number[]
}

/** See the head of this file. */
export const held: Suite = {
  name: 'held',
  title: 'Connections on which nothing happens',
  notes: `Polls are those of workers for jobs, through the relay, each sent again when the server ends it after its longest time; ${POLLING_WORKERS} workers share them. Sockets are upgraded, with one worker behind the gateway. Processor time in percent of one core over ${WATCH_MS / 1_000} s, and by how much memory has grown, of all processes of the side but workers and clients.`,
  quick: false,
  async run(bench, _effort, wants) {
    const rows: TableRow[] = []
    const measure = async (name: string, open: () => Promise<Holder>) => {
      if (wants(name)) rows.push({ name, cells: await holderCost(await open()) })
    }
    await measure(`nginx, one worker, ${SOCKETS} sockets`, () => nginxSockets(bench))
    await measure(`Runyard, ${SOCKETS} sockets`, () => gatewaySockets(bench))
    await measure(`Runyard, ${POLLS} polls`, () => polls(bench))
    const columns = [
      { heading: 'processor %', decimals: 1 },
      { heading: 'memory MB', decimals: 0 },
    ]
    const table: Table = { title: '', columns, bars: null, rows, ratios: {} }
    console.log(tableText(table))
    return [table]
  },
}

async function holderCost({ pids, ...task }: Holder): Promise<number[]> {
  const memory = () => pids.reduce((sum, pid) => sum + memoryMb(pid), 0)
  const memoryBefore = memory()
  const client = fork(join(import.meta.dirname, '../harness/hold-client.ts'))
  try {
    await once(client, 'message')
    client.send(task satisfies HoldTask)
    const [opened] = (await once(client, 'message')) as [{ open: number } | { error: string }]
    if ('error' in opened) throw new Error(opened.error)
    const failed = once(client, 'message').then(([message]) => {
      throw new Error((message as { error: string }).error)
    })
    const wait = (ms: number) => Promise.race([failed, new Promise(resolve => setTimeout(resolve, ms))])
    await wait(SETTLE_MS)
    const sinceMs = performance.now()
    const spent = processorSeconds(pids, true)
    await wait(WATCH_MS)
    const seconds = (performance.now() - sinceMs) / 1_000
    return [((processorSeconds(pids, true) - spent) / seconds) * 100, memory() - memoryBefore]
  } finally {
    client.kill('SIGKILL')
  }
}

const upgrade = { connection: 'Upgrade', upgrade: 'websocket' }

async function nginxSockets(bench: Bench): Promise<Holder> {
  const { port, pid } = await bench.nginx(await startBackend(bench))
  const request = requestText(port, GATEWAY_PATH, upgrade, null)
  return { port, pids: [pid], requests: Array.from({ length: SOCKETS }, () => request), heldMs: null }
}

async function gatewaySockets(bench: Bench): Promise<Holder> {
  const { server, path } = await balancedServer(bench)
  const request = requestTo(server, path, null, upgrade)
  return {
    port: server.port,
    pids: [server.pid],
    requests: Array.from({ length: SOCKETS }, () => request),
    heldMs: null,
  }
}

async function polls(bench: Bench): Promise<Holder> {
  const server = await startRunyard(bench, null)
  const records = join(bench.folder, 'polling-workers')
  mkdirSync(records)
  await makeEndpoint(server, {
    workersMin: POLLING_WORKERS,
    workersMax: POLLING_WORKERS,
    env: { WIRE_FOLDER: records },
  })
  const names = () => readdirSync(records).filter(name => name.endsWith('.json'))
  for (let tries = 0; names().length < POLLING_WORKERS; tries += 1) {
    if (tries > 600) throw new Error('the workers did not start')
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  const workers = names().map(
    name => JSON.parse(readFileSync(resolve(records, name), 'utf8')) as Record<string, string>,
  )
  const urls = workers.map(
    ({ RUNPOD_WEBHOOK_GET_JOB: url = '', RUNPOD_POD_ID: id = '' }) =>
      new URL(`${url.replace('$ID', id)}&job_in_progress=0`),
  )
  const port = Number(urls[0]!.port)
  const requests = Array.from({ length: POLLS }, (_, poll) => {
    const { pathname, search } = urls[poll % POLLING_WORKERS]!
    const { RUNPOD_AI_API_KEY: token = '' } = workers[poll % POLLING_WORKERS]!
    return requestText(port, `${pathname}${search}`, { authorization: token }, null)
  })
  const relay = readRelayInfo(server.dataDir)!.identity.pid
  return { port, pids: [server.pid, relay], requests, heldMs: HELD_MS }
}
