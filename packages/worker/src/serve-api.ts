import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { captureConsole, log } from './log.ts'
import { ServedJobs, type Submission, type View } from './served-jobs.ts'
import type { StartOptions } from './types.ts'

/**
 * Address of the job operations, and the number of jobs that run at once; undefined for that
 * of the options of `start`.
 */
export type Api = { host: string; port: number; concurrency: number | undefined }

type Answer = { status: number; body: unknown; location?: string }

const mostBodyBytes = 20 * 1024 * 1024
const syncWaitMs = 90_000
/** Longest wait for a chunk, as on Runyard: below the 10 s after which RunPod's client for Python gives up. */
const streamWaitMs = 8000
/** Longest wait of a realtime request, for whose job no later request can ask. */
const realtimeWaitMs = 24 * 3600 * 1000
const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/**
 * Serves the job operations for one handler, for development: jobs run in this process and end with it. Never
 * resolves; rejects if the address is not free. SIGTERM and SIGINT end the process at once.
 */
export async function serveApi(options: StartOptions, { host, port, concurrency }: Api): Promise<never> {
  const jobs = new ServedJobs(concurrency === undefined ? options : { ...options, concurrency })
  captureConsole()
  const server = createServer((request, response) => {
    respond(jobs, request).then(
      answer => send(response, answer),
      error =>
        send(response, {
          status: error instanceof Refusal ? error.status : 500,
          body: { error: String(error.message) },
        }),
    )
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(0))
  const { port: bound } = server.address() as AddressInfo
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${bound}`
  log(`the development server is at ${origin}, for instance ${origin}/runsync`, { job: null })
  return new Promise(() => {})
}

/** A refused request, with the status and the reason of the answer. */
class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

async function respond(jobs: ServedJobs, request: IncomingMessage): Promise<Answer> {
  guard(request)
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://local')
  const path = /^(?:\/v2\/[^/]+)?\/([\w-]+)(?:\/([^/]+))?$/.exec(pathname)
  const [, operation = '', id = ''] = path ?? []
  if (request.method === 'POST' && id === '' && (operation === 'run' || operation === 'runsync')) {
    const job = await submit(jobs, request)
    return { status: 200, body: operation === 'run' ? job : await jobs.whenOver(job.id, readWaitMs(searchParams)) }
  }
  if (request.method === 'POST' && operation === 'purge-queue' && id === '') {
    return { status: 200, body: { removed: jobs.purge(), status: 'completed' } }
  }
  if (operation === 'health' && id === '') return { status: 200, body: jobs.health() }
  if (request.method === 'POST' && id === 'realtime' && operation === process.env.RUNPOD_ENDPOINT_ID) {
    return { status: 200, body: await realtime(jobs, request) }
  }
  const page = request.method === 'GET' ? describe(pathname) : undefined
  if (page) return page
  if (id !== '') {
    const answer = await about(jobs, operation, { id, waitMs: readWaitMs(searchParams) })
    if (answer !== 'unknown') {
      if (answer === undefined) throw new Refusal(404, `job ${id.slice(0, 64)} does not exist`)
      return { status: 200, body: answer }
    }
  }
  throw new Refusal(404, listing)
}

/** The description of the operations, for a person who opens the address and for programs. */
function describe(pathname: string): Answer | undefined {
  if (pathname === '/') return { status: 200, body: listing }
  if (pathname === '/docs') return { status: 307, body: listing, location: '/' }
  return pathname === '/openapi.json' ? { status: 200, body: openApi() } : undefined
}

/** Runs a job under the id in its body, and answers with its result alone. */
async function realtime(jobs: ServedJobs, request: IncomingMessage): Promise<object> {
  const body = await readSubmission(request)
  if (typeof body.id !== 'string' || body.id === '') throw new Refusal(400, 'the body has no "id"')
  const job = accept(jobs.submit(body, body.id))
  const { output, error, status } = (await jobs.whenOver(job.id, realtimeWaitMs)) ?? {}
  if (status === 'COMPLETED') return { output }
  return { error: error ?? 'the job was cancelled' }
}

async function about(jobs: ServedJobs, operation: string, { id, waitMs }: { id: string; waitMs: number }) {
  if (operation === 'status') return jobs.view(id)
  if (operation === 'status-sync') return jobs.whenOver(id, waitMs)
  if (operation === 'stream') return jobs.chunks(id, streamWaitMs)
  if (operation === 'cancel') return jobs.cancel(id)
  return 'unknown'
}

/** Refuses requests of other sites that a browser has open: through another name of this machine, or from a form. */
function guard({ headers, method, socket }: IncomingMessage): void {
  const name = (headers.host ?? '').replace(/:\d+$/, '')
  const isLocal = /^(?:::ffff:)?127\.|^::1$/.test(socket.localAddress ?? '')
  if (isLocal && !loopback.test(name))
    throw new Refusal(403, `this server answers as localhost, not as ${name.slice(0, 64)}`)
  if (headers.origin !== undefined && method !== 'GET' && headers.origin !== `http://${headers.host}`) {
    throw new Refusal(403, 'requests of other sites are refused')
  }
}

async function submit(jobs: ServedJobs, request: IncomingMessage): Promise<View> {
  return accept(jobs.submit(await readSubmission(request)))
}

function accept(job: View | undefined): View {
  if (!job) throw new Refusal(429, 'too many jobs have not ended, or the one with this id has not')
  return job
}

async function readSubmission(request: IncomingMessage): Promise<Submission & { id?: unknown }> {
  const text = await readBody(request)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (error) {
    throw new Refusal(400, `the body is not JSON: ${error instanceof Error ? error.message : error}`)
  }
  if (typeof body !== 'object' || body === null || !('input' in body)) {
    throw new Refusal(400, 'the body has no "input": send {"input": ...}')
  }
  const { webhook } = body as { webhook?: unknown }
  if (webhook !== undefined && webhook !== null && !isWebAddress(webhook)) {
    throw new Refusal(400, '"webhook" must be an http or https URL')
  }
  return body as Submission
}

function isWebAddress(text: unknown): boolean {
  return typeof text === 'string' && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > mostBodyBytes) throw new Refusal(413, `the body is larger than ${mostBodyBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function readWaitMs(query: URLSearchParams): number {
  const wait = Number(query.get('wait') ?? syncWaitMs)
  return wait >= 1 && wait <= 300_000 ? wait : syncWaitMs
}

function send(response: ServerResponse, { status, body, location }: Answer): void {
  if (response.headersSent || response.destroyed) return
  const isText = status < 400 && typeof body === 'string'
  const headers = {
    'Content-Type': isText ? 'text/plain; charset=utf-8' : 'application/json',
    ...(location === undefined ? {} : { Location: location }),
    ...(status === 413 ? { Connection: 'close' } : {}),
  }
  response.writeHead(status, headers).end(`${isText ? body : JSON.stringify(body)}\n`)
}

/**
 * An operation of the development server: its method, its path and its effect; `takesJob` is true if it takes a job.
 */
type Operation = { method: 'get' | 'post'; path: string; does: string; takesJob?: true }

const operations: Operation[] = [
  { method: 'post', path: '/run', does: 'queues a job', takesJob: true },
  { method: 'post', path: '/runsync', does: 'queues a job and waits until it is over', takesJob: true },
  { method: 'get', path: '/status/{id}', does: 'shows a job' },
  { method: 'get', path: '/status-sync/{id}', does: 'shows a job once it is over' },
  { method: 'get', path: '/stream/{id}', does: 'returns the unread chunks' },
  { method: 'post', path: '/cancel/{id}', does: 'cancels a job' },
  { method: 'post', path: '/purge-queue', does: 'cancels the queued jobs' },
  { method: 'get', path: '/health', does: 'counts the jobs' },
]

/** The operations as a text with a line for each. */
const listing = `The development server of a worker. Its operations:
${operations.map(({ method, path, does }) => `  ${method.toUpperCase()} ${path.slice(1)}: ${does}`).join('\n')}
/v2/<anything>/ may stand before them. openapi.json describes them for programs.`

const job = {
  type: 'object',
  required: ['input'],
  properties: {
    input: { description: 'input of the handler' },
    webhook: {
      type: 'string',
      format: 'uri',
      description: 'receives the end of the job: a POST with the answer of status',
    },
  },
}

/** The operations as a document of OpenAPI 3.1. */
function openApi(): object {
  const paths = Object.fromEntries(operations.map(operation => [operation.path, pathItem(operation)]))
  return { openapi: '3.1.0', info: { title: 'Development server of a worker', version: '1' }, paths }
}

function pathItem({ method, path, does, takesJob }: Operation): object {
  const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } }
  return {
    [method]: {
      summary: does,
      ...(path.includes('{id}') ? { parameters: [id] } : {}),
      ...(takesJob ? { requestBody: { required: true, content: { 'application/json': { schema: job } } } } : {}),
      responses: { 200: { description: 'as JSON', content: { 'application/json': {} } } },
    },
  }
}
