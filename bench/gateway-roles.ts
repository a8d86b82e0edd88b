/** The processes of `bench/gateway.ts`: backend, proxies and clients. Each prints its port when it is ready. */
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Server } from 'node:net'
import { Pool } from 'undici'
import type { EndpointId, OwnerId, WorkerId } from '../src/core/ids.ts'
import { Forwarder } from '../src/gateway/proxy/forwarder.ts'
import { RequestQueues } from '../src/gateway/queue/request-queues.ts'
import { systemClock } from '../src/system/clock.ts'
import { portsWith } from '../test/support/ports.ts'
import { backend } from './harness/backend.ts'

/** The task of a client process. */
export interface Task {
  readonly port: number
  readonly path: string
  readonly connections: number
  readonly ms: number
  /** `get` and `echo` send one request after another on each connection; `idle` opens sockets and holds them. */
  readonly kind: 'get' | 'echo' | 'idle'
  readonly headers: string
}

/** The result of a task: number of operations, and their durations in microseconds. */
export interface Done {
  readonly count: number
  readonly p50: number
  readonly p99: number
}

const HOST = '127.0.0.1'
const MESSAGE = Buffer.alloc(64, 'm')

/** A plain proxy with undici: no checks, no claims, no retries, no trailers. */
function undici(target: number): Server {
  const pool = new Pool(`http://${HOST}:${target}`, { connections: 1_024, pipelining: 1 })
  const server = createServer({ noDelay: true }, (incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming
    const { connection: _, ...passed } = headers
    const body = 'content-length' in headers || 'transfer-encoding' in headers ? incoming : null
    pool
      .stream({ method, path: url, headers: passed, body, opaque: outgoing }, ({ statusCode, headers: back }) => {
        const { connection: _c, 'keep-alive': _k, 'transfer-encoding': _t, ...passedBack } = back
        return outgoing.writeHead(statusCode, passedBack as Record<string, string>)
      })
      .catch(() => outgoing.destroy())
  })
  server.on('upgrade', (incoming, socket, head) => {
    const worker = connect(target, HOST, () => {
      const lines = incoming.rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`))
      worker.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${lines.join('')}\r\n`)
      worker.write(head)
      worker.pipe(socket).pipe(worker)
    })
    for (const side of [socket, worker]) side.on('error', () => {})
  })
  return server
}

/** The forwarder of the gateway with its request queues, without routes, API keys and the store. */
function forwarder(target: number): Server {
  const id = 'bench' as EndpointId
  const notifier = { publish: () => {}, subscribe: () => () => {} }
  const queues = new RequestQueues(portsWith({ clock: systemClock, notifier: notifier as never, emit: () => {} }))
  const at = { host: HOST, port: target }
  queues.keep(
    { id, owner: 'owner' as OwnerId, version: 1, requestCount: 100_000, maxConcurrency: null, paused: false },
    [{ workerId: 'w1' as WorkerId, version: 1, state: 'ready', servedAt: { traffic: at, health: at } }],
  )
  const gateway = new Forwarder({ clock: systemClock, reservations: queues, nextTurn: setImmediate })
  const call = (incoming: ServerResponse['req']) => ({
    requestId: 'r',
    endpointId: id,
    path: incoming.url ?? '/',
    prefix: null,
    toHealth: false,
    rawHeaders: incoming.rawHeaders,
    client: incoming.socket.remoteAddress ?? '',
    protocol: 'http' as const,
    host: incoming.headers.host ?? '',
  })
  const server = createServer({ noDelay: true }, (incoming, outgoing) => {
    void gateway.forward(incoming, outgoing, call(incoming))
  })
  server.on('upgrade', (incoming, socket, head) => void gateway.upgrade(incoming, socket, head, call(incoming)))
  return server
}

function run({ port, path, connections, ms, kind, headers }: Task): Promise<Done> {
  const upgradeHeaders = kind === 'get' ? '' : 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  const request = Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: ${HOST}:${port}\r\nUser-Agent: bench\r\nAccept: */*\r\n${headers}${upgradeHeaders}\r\n`,
  )
  const took: number[] = []
  let measuring = false
  let open = 0
  return new Promise((resolve, reject) => {
    const finish = () => {
      took.sort((a, b) => a - b)
      const of = (share: number) => Math.round(1000 * (took[Math.floor(took.length * share)] ?? 0))
      resolve({ count: took.length, p50: of(0.5), p99: of(0.99) })
    }
    const measure = () => {
      measuring = true
      process.send?.('begun')
      setTimeout(finish, ms)
    }
    const start = () => {
      const socket = connect({ port, host: HOST, noDelay: true })
      let sinceMs = 0
      let remainingBytes = -1
      let upgraded = false
      const send = (bytes: Buffer) => {
        sinceMs = performance.now()
        socket.write(bytes)
      }
      const next = () => {
        if (measuring) took.push(performance.now() - sinceMs)
        if (upgraded) remainingBytes = MESSAGE.length
        send(upgraded ? MESSAGE : request)
      }
      socket.on('connect', () => send(request))
      socket.on('data', bytes => {
        if (remainingBytes < 0) {
          const end = bytes.indexOf('\r\n\r\n')
          const head = bytes.toString('latin1', 0, end)
          if (kind !== 'get') {
            if (!head.startsWith('HTTP/1.1 101')) reject(new Error(`no socket: ${head}`))
            upgraded = true
            open += 1
            if (kind === 'idle') {
              if (open < connections) start()
              else finish()
              return
            }
            next()
            return
          }
          if (!head.startsWith('HTTP/1.1 200')) reject(new Error(`no response: ${head}`))
          remainingBytes = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1])
        }
        remainingBytes -= bytes.length
        if (remainingBytes > 0) return
        remainingBytes = upgraded ? 0 : -1
        next()
      })
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('a connection was closed')))
    }
    // Idle sockets are opened in parallel, but not all at once.
    for (let n = 0; n < (kind === 'idle' ? 16 : connections); n += 1) start()
    if (kind !== 'idle') setTimeout(measure, 700)
  })
}

const ROLES = { backend, undici, forwarder }

process.on('SIGINT', () => process.exit(0))
const [role = '', target = '0'] = process.argv.slice(2)
if (role === 'client') {
  process.on('message', (task: Task) => {
    run(task).then(
      done => process.send?.(done),
      (error: Error) => process.send?.({ error: error.message }),
    )
  })
  process.send?.(0)
} else if (role in ROLES) {
  const server = ROLES[role as keyof typeof ROLES](Number(target))
  // The driver sets the port of a worker.
  server.listen(Number(process.env.PORT ?? 0), HOST, 4_096, () =>
    process.send?.((server.address() as AddressInfo).port),
  )
}
