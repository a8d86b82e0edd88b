import * as http from 'node:http'
import type { Config } from './config.ts'
import { version } from './version.ts'

/** One request to the platform. */
export type Ask = {
  url: string
  /** JSON text of a POST; undefined for a GET. */
  body?: string
  /** Job of a POST; undefined for one about several jobs. */
  jobId?: string
  /** Longest silence of the connection, in ms. */
  timeoutMs: number
  /** Its abort ends the request at once, even if an answer is on its way. */
  cancel?: AbortSignal
  /** Its abort ends the request unless an answer has begun; see `hangUp`. */
  giveUp?: AbortSignal
}

/** The platform's answer, read to its end. */
export type Reply = { status: number; retryAfter: string | undefined; body: string }

/** Sends requests; rejects with the socket's error if no complete answer arrives. */
export type Client = { send(ask: Ask): Promise<Reply> }

/** The error of a silent connection, as opposed to one that was refused or reset. */
export class NoAnswer extends Error {}

/** Creates a client that authenticates as this worker and keeps connections open between requests. */
export async function createClient(config: Config): Promise<Client> {
  const urls = [config.takeUrl, config.outputUrl, config.streamUrl, config.pingUrl]
  // TLS costs start-up time, so it is loaded only if an address needs it.
  const https = urls.some(url => url?.startsWith('https:')) ? await import('node:https') : undefined
  const pool = (limit: number) => {
    // Idle connections are closed early: a proxy that forgot one would swallow a result posted on it.
    const settings = { keepAlive: true, maxSockets: limit, timeout: 10_000 }
    return { plain: new http.Agent(settings), secure: https && new https.Agent(settings) }
  }
  // Posts have their own pool, so that many of them can never hold up a take, a stop poll or a ping.
  const pools = { polls: pool(6), posts: pool(64) }
  const headers = commonHeaders(config)

  function once(ask: Ask): Promise<Reply> {
    const { plain, secure } = ask.body === undefined ? pools.polls : pools.posts
    const tls = ask.url.startsWith('https:')
    const request = tls && https ? https.request : http.request
    return exchange(ask, settings => request(ask.url, { ...settings, agent: tls ? secure : plain }), headers)
  }

  async function send(ask: Ask): Promise<Reply> {
    try {
      return await once(ask)
    } catch (error) {
      const stale = error instanceof Error && 'stale' in error && ask.body === undefined
      if (!stale || ask.cancel?.aborted || ask.giveUp?.aborted) throw error
      return await once(ask)
    }
  }
  return { send }
}

function commonHeaders(config: Config): Record<string, string> {
  const runtime = `${process.platform}; ${process.arch}`
  return {
    Accept: '*/*',
    'User-Agent': `Runyard-Worker-SDK/${version} (${runtime}) Language/Node ${process.versions.node}`,
    ...(config.token ? { Authorization: config.token } : {}),
  }
}

// The headers that RunPod's own workers send with a result, although the body is JSON.
function postHeaders(body: string, jobId: string | undefined): Record<string, string> {
  return {
    'Content-Type': 'application/x-www-form-urlencoded',
    charset: 'utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    ...(jobId === undefined ? {} : { 'X-Request-ID': encodeURIComponent(jobId) }),
  }
}

function exchange(
  ask: Ask,
  open: (settings: http.RequestOptions) => http.ClientRequest,
  common: Record<string, string>,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { body, cancel, giveUp } = ask
    const headers = body === undefined ? common : { ...common, ...postHeaders(body, ask.jobId) }
    if (cancel?.aborted || giveUp?.aborted) return reject(new NoAnswer('given up'))
    const request = open({ method: body === undefined ? 'GET' : 'POST', headers, timeout: ask.timeoutMs })
    let answered = false
    const onCancel = () => request.destroy(new NoAnswer('cancelled'))
    const onGiveUp = () => setImmediate(() => answered || hangUp(request))
    cancel?.addEventListener('abort', onCancel)
    giveUp?.addEventListener('abort', onGiveUp)
    request.on('close', () => {
      cancel?.removeEventListener('abort', onCancel)
      giveUp?.removeEventListener('abort', onGiveUp)
    })
    request.on('timeout', () => request.destroy(new NoAnswer(`no answer within ${ask.timeoutMs / 1000} s`)))
    request.on('error', (error: NodeJS.ErrnoException) => {
      const stale = !answered && request.reusedSocket && error.code === 'ECONNRESET'
      reject(stale ? Object.assign(error, { stale }) : error)
    })
    request.on('response', response => {
      answered = true
      readReply(response).then(resolve, reject)
    })
    request.end(body)
  })
}

// With events, which cost less than the iterator of a response.
function readReply(response: http.IncomingMessage): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('error', reject)
    response.on('close', () => reject(new Error('the connection ended before the answer did')))
    response.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], body })
    })
  })
}

/**
 * Withdraws a poll without losing a job in its answer: the end of our half of the connection shows the server that
 * nobody waits, and an answer already on its way can still be read.
 */
function hangUp(request: http.ClientRequest): void {
  if (!request.socket || request.socket.connecting) {
    request.destroy(new NoAnswer('given up'))
    return
  }
  request.socket.end()
  const timer = setTimeout(() => request.destroy(new NoAnswer('given up')), 1000)
  request.on('close', () => clearTimeout(timer))
}
