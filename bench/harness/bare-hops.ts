/**
 * The hops of a `runsync` with nothing in them: a server, a relay and a worker, each a program of Node, and two
 * flushes of a file. No queue, no key, no database: a lower bound of what such a way takes on this machine. As a
 * program it takes one of the three parts, prints its port, and finds the next one at `HOP_PORT`.
 */
import { fdatasyncSync, openSync, writeSync } from 'node:fs'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { SMALL_JOB } from './runyard.ts'
import { type Bench, requestText, type Side } from './sides.ts'

interface Job {
  readonly id: number
  readonly input: typeof SMALL_JOB.input
}

interface JobResult {
  readonly id: number
  readonly output: unknown
}

/** Starts the three programs. */
export async function bareHopsSide(bench: Bench): Promise<Omit<Side, 'name'>> {
  const start = (part: string, env: Readonly<Record<string, string>>) =>
    bench.start(process.execPath, [import.meta.filename, part], env)
  const server = await start('server', { HOP_FILE: join(bench.folder, 'bare-hops') })
  const relay = await start('relay', { HOP_PORT: server.line })
  const worker = await start('worker', { HOP_PORT: relay.line })
  const port = Number(server.line)
  return { port, request: requestText(port, '/job', {}, SMALL_JOB), pids: [server.pid, relay.pid, worker.pid] }
}

const agent = new Agent({ keepAlive: true })

async function textOf(message: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of message.setEncoding('utf8')) text += piece
  return text
}

function respond(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
}

function call(method: string, path: string, body = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-length': Buffer.byteLength(body) }
    request({ agent, host: '127.0.0.1', port: Number(process.env.HOP_PORT), method, path, headers }, response => {
      textOf(response).then(resolve, reject)
    })
      .on('error', reject)
      .end(body)
  })
}

function listen(answer: (incoming: IncomingMessage, response: ServerResponse) => Promise<void>): void {
  const server = createServer({ noDelay: true }, (incoming, response) => void answer(incoming, response))
  server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
}

/** Stores each job and each result, and passes them on. */
function runServer(): void {
  const file = openSync(process.env.HOP_FILE!, 'w')
  const clients = new Map<number, ServerResponse>()
  const waiting: Job[] = []
  const takes: ServerResponse[] = []
  const store = (text: string) => {
    writeSync(file, text, 0)
    fdatasyncSync(file)
  }
  let count = 0
  listen(async (incoming, response) => {
    if (incoming.url === '/take') {
      const job = waiting.shift()
      if (job === undefined) takes.push(response)
      else respond(response, JSON.stringify(job))
      return
    }
    const text = await textOf(incoming)
    if (incoming.url === '/job') {
      const { input } = JSON.parse(text) as typeof SMALL_JOB
      count += 1
      const job = { id: count, input }
      clients.set(job.id, response)
      store(text)
      const take = takes.shift()
      if (take === undefined) waiting.push(job)
      else respond(take, JSON.stringify(job))
      return
    }
    const { id, output } = JSON.parse(text) as JobResult
    store(text)
    const client = clients.get(id)
    clients.delete(id)
    if (client !== undefined) respond(client, JSON.stringify({ id, status: 'COMPLETED', output }))
    respond(response, '{}')
  })
}

/** Passes calls of the worker to the server. */
function runRelay(): void {
  listen(async (incoming, response) => {
    respond(response, await call(incoming.method!, incoming.url!, await textOf(incoming)))
  })
}

/** Takes one job after another, without waiting for the end of the one before. */
async function runWorker(): Promise<void> {
  console.log('ready')
  for (;;) {
    const { id, input } = JSON.parse(await call('GET', '/take')) as Job
    void call('POST', '/done', JSON.stringify({ id, output: { length: input.prompt.length } }))
  }
}

if (import.meta.main) {
  const [part] = process.argv.slice(2)
  if (part === 'server') runServer()
  else if (part === 'relay') runRelay()
  else await runWorker()
}
