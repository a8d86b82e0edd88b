/** Load-balancing endpoints on real servers, made as their users make them, and what is sent to them. */
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { ask } from './client.ts'
import { python } from './python.ts'
import { fixture, type Server } from './server.ts'

/** Program of the workers of an endpoint, and their number. */
export interface BalancedWish {
  readonly image: string
  readonly args?: string
  readonly env?: Readonly<Record<string, string>>
  /** Target of requests in flight for a worker. */
  readonly requestCount?: number
  readonly workers?: { readonly min?: number; readonly max?: number; readonly idleTimeout?: number }
}

/** An endpoint on a server. */
export interface Balanced {
  readonly server: Server
  readonly id: string
  /** Its address below the server's own. */
  readonly base: string
  /** The address of its origin, for browsers. */
  readonly browserUrl: string | null
  /** The address of its health check. */
  readonly health: string
}

/** The servers of the fixtures as processes of this machine. */
export const inNode = { image: `dir:${fixture('balanced-node')}`, args: `'${process.execPath}' server.mjs` }
export const inFastApi = { image: `dir:${fixture('balanced-fastapi')}`, args: `'${python}' server.py` }
export const ofSockets = { image: `dir:${fixture('balanced-sockets')}`, args: `'${python}' server.py` }

let endpointCount = 0

/** Makes an endpoint. */
export async function balancedEndpoint(server: Server, wish: BalancedWish): Promise<Balanced> {
  endpointCount += 1
  const { image, args = '', env = {}, requestCount = 4, workers = {} } = wish
  const scaling = { type: 'REQUEST_COUNT', requestCount }
  const { json, text: body } = await ask(server, '/v2/serverless', {
    body: {
      name: `balanced-${endpointCount}`,
      type: 'LOAD_BALANCER',
      image,
      args,
      env,
      scaling,
      workers,
      cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
    },
  })
  if (json?.id === undefined) throw new Error(body)
  const { id, requestUrls, browserUrl } = json
  return { server, id, base: requestUrls.base, browserUrl, health: requestUrls.health }
}

/** Changes an endpoint; what is left out is kept. */
export async function changeBalanced({ server, id }: Balanced, changes: object): Promise<void> {
  const { status, text: body } = await ask(server, `/v2/serverless/${id}`, { method: 'PATCH', body: changes })
  if (status !== 200) throw new Error(`the change was answered ${status}: ${body}`)
}

/** One request to an endpoint. */
export interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Names the endpoint by its host and not by the path. */
  readonly byHost?: boolean
  readonly agent?: Agent
}

/** Whole response of a call. */
export interface Called {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** Worker that answered. */
  readonly worker: string
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: answers are compared with what the test expects
  readonly json: any
}

const keeping = new Agent({ keepAlive: true, maxSockets: 256 })

/** Opens a request, whose head is sent with the first byte or the end. */
export function open({ server, id }: Balanced, path: string, call: Call = {}): ClientRequest {
  const { method = 'GET', agent = keeping, byHost = false } = call
  const headers = { authorization: `Bearer ${server.apiKey}`, ...call.headers }
  return request({
    host: '127.0.0.1',
    port: server.port,
    method,
    agent,
    path: byHost ? path : `/lb/${id}${path}`,
    headers: byHost ? { host: `${id}.localhost:${server.port}`, ...headers } : headers,
  })
}

/** The head of the answer to an opened request. */
export function answerOf(opened: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => opened.on('response', resolve).on('error', reject))
}

/** Sends a request and reads its answer. @throws when the answer is not whole */
export async function call(endpoint: Balanced, path: string, how: Call = {}): Promise<Called> {
  const opened = open(endpoint, path, how)
  // Node says how long a body is of those methods only that usually have one.
  if (how.body !== undefined) opened.setHeader('content-length', Buffer.byteLength(how.body))
  opened.end(how.body)
  return whole(await answerOf(opened))
}

/** Reads an answer. @throws when it is not whole */
export async function whole(answer: IncomingMessage): Promise<Called> {
  const body = await text(answer)
  const { statusCode: status = 0, headers } = answer
  if (!answer.complete) throw new Error(`the answer ended after ${body.length} bytes`)
  const isJson = /json/.test(headers['content-type'] ?? '') && body !== ''
  return { status, headers, worker: workerOf(answer), text: body, json: isJson ? JSON.parse(body) : undefined }
}

/** The worker that gave an answer. */
export function workerOf({ headers }: IncomingMessage): string {
  return String(headers['x-runpod-worker-id'] ?? '')
}

/** A WebSocket to an endpoint. */
export class Chat {
  readonly socket: WebSocket
  /** Messages that arrived and were not read yet. */
  readonly #come: (string | ArrayBuffer)[] = []
  #wake: () => void = () => {}
  /** Its end; null while it is open. */
  closed: { readonly code: number; readonly reason: string } | null = null

  constructor({ server, id }: Balanced, path: string) {
    const headers = { authorization: `Bearer ${server.apiKey}` }
    this.socket = new WebSocket(`ws://127.0.0.1:${server.port}/lb/${id}${path}`, { headers } as never)
    this.socket.binaryType = 'arraybuffer'
    this.socket.addEventListener('message', ({ data }) => {
      this.#come.push(data)
      this.#wake()
    })
    this.socket.addEventListener('close', ({ code, reason }) => {
      this.closed = { code, reason }
      this.#wake()
    })
    this.socket.addEventListener('open', () => this.#wake())
  }

  /** Resolves when it is open. @throws when it was refused */
  async opened(): Promise<this> {
    await this.#until(() => this.socket.readyState === WebSocket.OPEN)
    return this
  }

  /** Sends a message and gives the next one that comes. @throws when it is closed instead */
  async say(message: string | Uint8Array<ArrayBuffer>): Promise<string | ArrayBuffer> {
    await this.opened()
    this.socket.send(message)
    await this.#until(() => this.#come.length > 0)
    return this.#come.shift()!
  }

  /** Resolves when it is closed. */
  async ended(): Promise<{ readonly code: number; readonly reason: string }> {
    while (this.closed === null) await this.#next()
    return this.closed
  }

  /** Closes it, as its own end. */
  async end(): Promise<{ readonly code: number; readonly reason: string }> {
    this.socket.close(1000)
    return this.ended()
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.closed !== null) throw new Error(`closed with ${this.closed.code} ${this.closed.reason}`)
      await this.#next()
    }
  }

  #next(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}
