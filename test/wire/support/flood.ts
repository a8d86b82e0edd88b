/** Floods a server, and measures its memory and its speed for others at the same time. */
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { ask, makeEndpoint } from './client.ts'
import { root, type Server, startServer } from './server.ts'
import { sleep } from './until.ts'

/** Bytes of a megabyte. */
export const MB = 1024 * 1024
/**
 * Maximum time of an ordinary run and its status together during a flood, on a small busy machine, in milliseconds.
 */
export const MAX_RESPONSE_MS = 8_000
/** Maximum memory of a server of {@link startBounded}, in megabytes. */
export const MAX_MEMORY_MB = 1_500
/**
 * Without it most of the memory would be what the garbage collector has not got round to. A heap
 * that is full ends the server.
 */
const HEAP = { NODE_OPTIONS: '--max-old-space-size=512' }

/** A server with a small memory budget for bodies. */
export function startBounded(args: readonly string[] = []): Promise<Server> {
  return startServer({ args: ['--max-body-memory', '64', '--log-level', 'warn', ...args], env: HEAP })
}

/** A server with a small memory budget for bodies, and an endpoint whose jobs only wait. */
export async function floodable(args: readonly string[] = []): Promise<{ server: Server; endpoint: string }> {
  const server = await startBounded(args)
  const endpoint = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings: { workersMax: 0 } })
  return { server, endpoint }
}

/** Memory of a process, in megabytes. */
export function memoryOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/** Number of open files and connections of a process. */
export function openFilesOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Observations during a flood. */
export interface Watched<Value> {
  readonly value: Value
  /** Peak of the memory, in megabytes. */
  readonly peakMb: number
  /** Longest response time of the ordinary client, in milliseconds. */
  readonly worstMs: number
  /** Number of its requests. */
  readonly asked: number
}

/** Runs a flood while an ordinary client submits small jobs and reads them, and fails when it is refused. */
export async function whileServing<Value>(
  server: Server,
  endpoint: string,
  flood: () => Promise<Value>,
): Promise<Watched<Value>> {
  let over = false
  let peakMb = memoryOf(server.pid)
  let worstMs = 0
  let requests = 0
  const ticker = setInterval(() => {
    peakMb = Math.max(peakMb, memoryOf(server.pid))
  }, 20)
  const client = async () => {
    do {
      const began = performance.now()
      const { status, json, text } = await ask(server, `/v2/${endpoint}/run`, { body: { input: {} } })
      if (status !== 200) throw new Error(`an ordinary run was answered ${status}: ${text}`)
      const read = await ask(server, `/v2/${endpoint}/status/${json.id}`)
      if (read.status !== 200) throw new Error(`an ordinary status was answered ${read.status}: ${read.text}`)
      worstMs = Math.max(worstMs, performance.now() - began)
      requests += 1
      await sleep(50)
    } while (!over)
  }
  const serving = client()
  try {
    const [value] = await Promise.all([flood().finally(() => (over = true)), serving])
    return { value, peakMb, worstMs, asked: requests }
  } finally {
    over = true
    clearInterval(ticker)
  }
}

const PIECE = Buffer.alloc(65_536, 'x')

/** A large request. */
export interface LargeRequest {
  readonly path: string
  readonly authorization: string
  readonly bytes: number
  /** True if its length is announced. */
  readonly announced: boolean
  /** Text around the filling. */
  readonly before?: string
  readonly after?: string
}

/** Sends so many at once; gives how often each status, or error, came back. */
export async function sendLarge(server: Server, count: number, large: LargeRequest): Promise<Record<string, number>> {
  const agent = new Agent({ keepAlive: true })
  const answers = await Promise.all(Array.from({ length: count }, () => sendOne(server, agent, large)))
  agent.destroy()
  return Object.fromEntries(
    [...Map.groupBy(answers, answer => answer)].map(([answer, all]) => [answer, all.length] as const),
  )
}

function sendOne(server: Server, agent: Agent, large: LargeRequest): Promise<string> {
  const { path, authorization, bytes, announced, before: prefix = '', after: suffix = '' } = large
  const length = { 'content-length': bytes + prefix.length + suffix.length }
  const headers = { authorization, 'content-type': 'application/json', ...(announced ? length : {}) }
  return new Promise(resolve => {
    const call = request(`${server.url}${path}`, { method: 'POST', agent, headers }, answer => {
      answer.resume().on('end', () => resolve(String(answer.statusCode)))
    })
    call.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    let remainingBytes = bytes
    const send = () => {
      while (remainingBytes > 0 && !call.destroyed) {
        const piece = PIECE.subarray(0, Math.min(remainingBytes, PIECE.length))
        remainingBytes -= piece.length
        if (!call.write(piece)) return void call.once('drain', send)
      }
      call.end(suffix)
    }
    call.write(prefix)
    send()
  })
}

/** A bare connection, and what becomes of it. */
export interface Wire {
  readonly socket: Socket
  /** All that came over it. */
  readonly received: () => string
  /** Resolves when it is over, by whoever. */
  readonly closed: Promise<void>
  readonly isClosed: () => boolean
}

/** Opens connections, a few hundred at a time so that no connection is dropped on the way. */
export async function openWires(server: Server, count: number, first = ''): Promise<Wire[]> {
  const wires: Wire[] = []
  while (wires.length < count) {
    const some = Array.from({ length: Math.min(250, count - wires.length) }, () => openWire(server, first))
    wires.push(...(await Promise.all(some)))
  }
  return wires
}

function openWire(server: Server, first: string): Promise<Wire> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: server.port })
    let text = ''
    let over = false
    socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
    const closed = new Promise<void>(done =>
      socket.on('close', () => {
        over = true
        done()
      }),
    )
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject).on('error', () => {})
      if (first !== '') socket.write(first)
      resolve({ socket, received: () => text, closed, isClosed: () => over })
    })
  })
}
