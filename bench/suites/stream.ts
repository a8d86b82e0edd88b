/**
 * Time from a worker's yield to the event at the client: the same worker and the same reader of server-sent events,
 * with Runyard between them, which stores every chunk, and with a bare HTTP server that only forwards each chunk.
 */
import { spawn } from 'node:child_process'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { median } from '../harness/rounds.ts'
import { createFolderEndpoint, type RunyardServer, startRunyard, workerFolder } from '../harness/runyard.ts'
import { type Suite, type Table, tableText } from '../harness/suite.ts'

const HANDLER = `import { start } from '@runyard/worker'
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))
start({
  async *handler({ input }) {
    for (let n = 0; n < input.chunks; n += 1) {
      if (input.pauseMs > 0) await pause(input.pauseMs)
      yield { at: performance.timeOrigin + performance.now() }
    }
  },
})
`

/** Chunks that a job yields. */
interface Plan {
  readonly chunks: number
  readonly pauseMs: number
}

/**
 * Measurements of a client: delays of the chunks in milliseconds, and chunks a second from the
 * first yield to the last event.
 */
interface StreamTimes {
  readonly delays: readonly number[]
  readonly perSecond: number
}

const PACED: Plan = { chunks: 300, pauseMs: 10 }
const FAST: Plan = { chunks: 3_000, pauseMs: 0 }

/** See the head of this file. */
export const stream: Suite = {
  name: 'stream',
  title: 'A chunk from the yield of the worker to the event at the client',
  notes:
    'Chunks 10 ms apart for the delay; one after another for the rate. Every chunk is on stable storage before the client sees it.',
  quick: false,
  async run(bench, effort) {
    const server = await startRunyard(bench, null)
    const folder = workerFolder(bench, HANDLER)
    const endpoint = await createFolderEndpoint(server, folder, { input: { chunks: 1, pauseMs: 0 } })
    const sides: Readonly<Record<string, (plan: Plan) => Promise<StreamTimes>>> = {
      Runyard: plan => throughRunyard(server, endpoint, plan),
      'a bare server, nothing kept': plan => throughBareServer(folder, plan),
    }
    const rounds = Array.from({ length: Math.min(effort.rounds, 3) })
    const rows: Table['rows'][number][] = []
    for (const [name, through] of Object.entries(sides)) {
      const paced: StreamTimes[] = []
      const fast: StreamTimes[] = []
      for (const _ of rounds) {
        paced.push(await through(PACED))
        fast.push(await through(FAST))
      }
      const at = (share: number) => median(paced.map(({ delays }) => delays[Math.floor((delays.length - 1) * share)]!))
      rows.push({ name, cells: [at(0.5), at(0.99), at(1), median(fast.map(({ perSecond }) => perSecond))] })
    }
    const delay = (heading: string) => ({ heading: `delay ${heading}, ms`, decimals: 2 })
    const columns = [delay('p50'), delay('p99'), delay('maximum'), { heading: 'chunks per second', decimals: 0 }]
    const table: Table = { title: '1 stream', columns, bars: 0, rows, ratios: {} }
    console.log(tableText(table))
    return [table]
  },
}

async function throughRunyard({ url, key }: RunyardServer, endpoint: string, plan: Plan): Promise<StreamTimes> {
  const headers = { authorization: key, accept: 'text/event-stream' }
  const body = JSON.stringify({ input: plan })
  const base = `${url}/v2/${endpoint}`
  const { id } = (await (await fetch(`${base}/run`, { method: 'POST', headers, body })).json()) as { id: string }
  return measureStream(await fetch(`${base}/stream/${id}`, { headers }), plan)
}

async function throughBareServer(folder: string, plan: Plan): Promise<StreamTimes> {
  let client: ServerResponse | null = null
  let isTaken = false
  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    if (path === '/events') {
      client = response.writeHead(200, { 'content-type': 'text/event-stream' })
      client.flushHeaders()
    } else if (path.includes('/job-take/') && !isTaken) {
      isTaken = true
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: 'job', input: plan }))
    } else if (request.method === 'POST') {
      let text = ''
      for await (const piece of request) text += piece
      if (path.includes('/job-stream/')) client?.write(`data: ${text}\n\n`)
      else client?.end()
      response.end('{}')
    } else if (path.includes('/ping/')) response.end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const events = await fetch(`${origin}/events`)
  const worker = spawn(process.execPath, ['handler.mjs'], {
    cwd: folder,
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      RUNPOD_POD_ID: 'w',
      RUNPOD_AI_API_KEY: 't',
      RUNPOD_WEBHOOK_GET_JOB: `${origin}/job-take/$ID?x=1`,
      RUNPOD_WEBHOOK_POST_OUTPUT: `${origin}/job-done/w/$ID?x=1`,
      RUNPOD_WEBHOOK_POST_STREAM: `${origin}/job-stream/w/$ID?x=1`,
      RUNPOD_WEBHOOK_PING: `${origin}/ping/w?x=1`,
    },
  })
  try {
    return await measureStream(events, plan)
  } finally {
    worker.kill('SIGKILL')
    server.closeAllConnections()
    server.close()
  }
}

async function measureStream(events: Response, { chunks }: Plan): Promise<StreamTimes> {
  const delays: number[] = []
  let firstYield = Number.POSITIVE_INFINITY
  const input = Readable.fromWeb(events.body as NodeReadableStream<Uint8Array>)
  for await (const line of createInterface({ input })) {
    // An event may have several chunks.
    for (const [, at] of line.matchAll(/"at":\s*([\d.]+)/g)) {
      firstYield = Math.min(firstYield, Number(at))
      delays.push(performance.timeOrigin + performance.now() - Number(at))
    }
  }
  if (delays.length !== chunks) throw new Error(`${delays.length} of ${chunks} chunks arrived`)
  const tookMs = performance.timeOrigin + performance.now() - firstYield
  return { delays: delays.sort((a, b) => a - b), perSecond: (chunks * 1_000) / tookMs }
}
