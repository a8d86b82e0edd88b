/**
 * Cold start of the Node example, from `run` to COMPLETED, by phases, beside the start of the same worker alone: the same
 * handler and Node, spawned by hand against a bare HTTP server that notes when its first take comes.
 *
 *     ./bin/node bench/cold-start.ts [rounds]
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ready } from './ready.ts'

const ROUNDS = Number(process.argv[2] ?? 10)
const FOLDER = 'examples/hello-node'

interface LogLine {
  readonly msg: string
  readonly time: string
  readonly to?: string
  readonly transition?: string
}

const folder = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
try {
  const alone = await measureAlone()
  const rows = await measureServer()
  print(rows, alone)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Milliseconds from spawn to the first take, without Runyard. */
async function measureAlone(): Promise<number[]> {
  const times: number[] = []
  let taken: () => void = () => {}
  const stub = createServer((request, response) => {
    if (request.url?.includes('/job-take/')) taken()
    if (request.url?.includes('/ping/')) response.end('{}')
  })
  await new Promise<void>(resolve => stub.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(stub.address() as AddressInfo).port}/v2/x`
  const env = {
    PATH: process.env.PATH,
    RUNPOD_POD_ID: 'w',
    RUNPOD_AI_API_KEY: 't',
    RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=CPU`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/w/$ID?gpu=CPU`,
    RUNPOD_WEBHOOK_PING: `${base}/ping/w?gpu=CPU`,
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now()
    const first = new Promise<void>(resolve => {
      taken = resolve
    })
    const worker = spawn(process.execPath, ['handler.mjs'], { cwd: FOLDER, env, stdio: 'ignore' })
    await first
    times.push(performance.now() - start)
    worker.kill('SIGKILL')
    await new Promise(resolve => worker.once('exit', resolve))
  }
  stub.closeAllConnections()
  stub.close()
  return times
}

async function measureServer(): Promise<Record<string, number>[]> {
  const args = ['serve', '--sample', '--port', '0', '--json', '--log-level', 'debug', '--data-dir', folder]
  const server = spawn('./bin/runyard', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: LogLine[] = []
  createInterface({ input: server.stderr! }).on('line', line => lines.push(JSON.parse(line)))
  try {
    const { url, key } = await ready(server)
    await idleAfterOneSecond(url, key)
    const rows: Record<string, number>[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      await untilNoWorkers(url, key)
      lines.length = 0
      const sentAt = Date.now()
      const answer = await fetch(`${url}/v2/hellonode/runsync`, {
        method: 'POST',
        headers: { authorization: key },
        body: '{"input":{}}',
      })
      const { status } = (await answer.json()) as { status: string }
      if (status !== 'COMPLETED') throw new Error(`the job ended ${status}`)
      rows.push(phases(sentAt, Date.now(), lines))
    }
    return rows
  } finally {
    server.kill('SIGTERM')
    await new Promise(resolve => server.once('exit', resolve))
  }
}

function phases(sentAt: number, answeredAt: number, lines: readonly LogLine[]): Record<string, number> {
  const at = (matches: (line: LogLine) => boolean) => {
    const line = lines.find(matches)
    if (line === undefined) throw new Error('an event is missing from the log')
    return Date.parse(line.time)
  }
  const accepted = at(({ msg }) => msg === 'job.accepted')
  const created = at(({ msg }) => msg === 'worker.created')
  const ready = at(({ msg, to }) => msg === 'worker.moved' && to === 'READY')
  const finished = at(({ transition }) => transition === 'finish')
  return {
    'request to accepted (stored)': accepted - sentAt,
    'accepted to worker created': created - accepted,
    'worker created to its first take': ready - created,
    'first take to result stored': finished - ready,
    'result stored to answer': answeredAt - finished,
    'all of it': answeredAt - sentAt,
  }
}

async function idleAfterOneSecond(url: string, key: string): Promise<void> {
  const query = 'mutation { saveEndpoint(input: {id: "hellonode", name: "hello-node", idleTimeout: 1}) { id } }'
  const headers = { authorization: key, 'content-type': 'application/json' }
  await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
}

async function untilNoWorkers(url: string, key: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const answer = await fetch(`${url}/v2/hellonode/explain`, { headers: { authorization: key } })
    const { workers } = (await answer.json()) as { workers: unknown[] }
    if (workers.length === 0) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error('the worker did not go away')
}

function print(rows: readonly Record<string, number>[], alone: readonly number[]): void {
  console.log(`cold start of ${FOLDER}, ${ROUNDS} rounds; milliseconds, median (least - most)`)
  for (const name of Object.keys(rows[0]!))
    console.log(
      line(
        name,
        rows.map(row => row[name]!),
      ),
    )
  console.log(line('the same worker alone, spawn to first take', alone))
}

function line(name: string, values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b)
  const [median, least, most] = [sorted[Math.floor(sorted.length / 2)]!, sorted[0]!, sorted.at(-1)!].map(value =>
    value.toFixed(0),
  )
  return `  ${name.padEnd(44)} ${median} (${least} - ${most})`
}
