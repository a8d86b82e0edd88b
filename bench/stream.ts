/**
 * From a worker's yield to the event at the client: the same worker and the same reader of server-sent events, once with Runyard
 * between them (every chunk on stable storage) and once with a bare HTTP server that only forwards each chunk.
 *
 *     ./bin/node bench/stream.ts [chunks]
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { ready } from './ready.ts'

const CHUNKS = Number(process.argv[2] ?? 300)
const HANDLER = `import { start } from '@runyard/worker'
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))
start({
  async *handler({ input }) {
    for (let n = 0; n < input.chunks; n += 1) {
      await pause(10)
      yield { at: performance.timeOrigin + performance.now() }
    }
  },
})
`
const base = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
const folder = join(base, 'streamer')
mkdirSync(join(folder, 'node_modules', '@runyard'), { recursive: true })
symlinkSync(resolve('packages/worker'), join(folder, 'node_modules', '@runyard', 'worker'))
writeFileSync(join(folder, 'handler.mjs'), HANDLER)

try {
  const bare = await throughBareServer()
  const runyard = await throughRunyard()
  console.log(`from yield to client, ${CHUNKS} chunks 10 ms apart; milliseconds, p50 / p99 / maximum`)
  console.log(row('through Runyard, each chunk stored', runyard))
  console.log(row('through a bare server, in memory only', bare))
} finally {
  rmSync(base, { recursive: true, force: true })
}

async function throughRunyard(): Promise<number[]> {
  const args = [
    'serve',
    '--worker',
    folder,
    '--port',
    '0',
    '--json',
    '--data-dir',
    join(base, 'data'),
    '--log-level',
    'silent',
  ]
  const server = spawn('./bin/runyard', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const { url, key } = await ready(server)
    const endpoint = `${url}/v2/streamer`
    const headers = { authorization: key, accept: 'text/event-stream' }
    const body = JSON.stringify({ input: { chunks: CHUNKS } })
    const { id } = (await (await fetch(`${endpoint}/run`, { method: 'POST', headers, body })).json()) as { id: string }
    return await delays(await fetch(`${endpoint}/stream/${id}`, { headers }))
  } finally {
    server.kill('SIGTERM')
    await new Promise(resolve => server.once('exit', resolve))
  }
}

async function throughBareServer(): Promise<number[]> {
  let client: ServerResponse | null = null
  let taken = false
  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    if (path === '/events') {
      client = response.writeHead(200, { 'content-type': 'text/event-stream' })
      client.flushHeaders()
    } else if (path.includes('/job-take/') && !taken) {
      taken = true
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"id":"job","input":{"chunks":${CHUNKS}}}`)
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
  const result = await delays(events)
  worker.kill('SIGKILL')
  server.closeAllConnections()
  server.close()
  return result
}

async function delays(events: Response): Promise<number[]> {
  const found: number[] = []
  const input = Readable.fromWeb(events.body as NodeReadableStream<Uint8Array>)
  for await (const line of createInterface({ input })) {
    const at = /"at":\s*([\d.]+)/.exec(line)?.[1]
    if (at !== undefined) found.push(performance.timeOrigin + performance.now() - Number(at))
  }
  if (found.length !== CHUNKS) throw new Error(`${found.length} of ${CHUNKS} chunks arrived`)
  return found
}

function row(name: string, values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(2)
  return `  ${name.padEnd(38)} ${at(0.5)} / ${at(0.99)} / ${at(1)}`
}
