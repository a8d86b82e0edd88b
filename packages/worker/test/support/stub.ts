/** A platform with the worker calls alone, which records all requests. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Kind = 'job-take' | 'job-take-batch' | 'job-stop' | 'job-done' | 'job-done-batch' | 'job-stream' | 'ping'
export type Call = {
  at: number
  kind: Kind
  jobId: string | undefined
  url: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  body: string
  gone: boolean
}
export type Answer = { status: number; headers?: Record<string, string>; body?: unknown; afterMs?: number }
type Job = { id: string; input?: unknown }

/** Answers in place of those of a usual platform; a rule that returns undefined leaves the usual answer. */
export type Rules = Partial<Record<Kind, (call: Call, count: number) => Answer | undefined>> & { holdMs?: number }

export class Stub {
  readonly calls: Call[] = []
  rules: Rules
  port = 0
  readonly #waiting: Job[] = []
  readonly #stops: string[] = []
  readonly #polls = new Set<() => boolean>()
  readonly #server = createServer({ keepAliveTimeout: 20_000 }, (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', text => {
      body += text
    })
    request.on('end', () => {
      const url = new URL(request.url ?? '', 'http://stub')
      const [, , , kind, , jobId] = url.pathname.split('/')
      const query = url.searchParams
      const { headers } = request
      const at = performance.now()
      const call = { at, kind: kind as Kind, jobId, url: request.url ?? '', query, headers, body, gone: false }
      response.on('close', () => {
        call.gone = !response.writableFinished
      })
      this.calls.push(call)
      this.#respond(call, response)
    })
  })

  constructor(rules: Rules = {}) {
    this.rules = rules
  }

  async listen(): Promise<void> {
    await new Promise<void>(resolve => this.#server.listen(this.port, '127.0.0.1', resolve))
    this.port = (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  queue(...jobs: Job[]): void {
    this.#waiting.push(...jobs)
    this.#wake()
  }

  stop(jobId: string): void {
    this.#stops.push(jobId)
    this.#wake()
  }

  of(kind: Kind, jobId?: string): Call[] {
    return this.calls.filter(call => call.kind === kind && (jobId === undefined || call.jobId === jobId))
  }

  takes(): Call[] {
    return this.calls.filter(call => call.kind.startsWith('job-take'))
  }

  bodies(kind: Kind, jobId: string): unknown[] {
    return this.of(kind, jobId).map(call => JSON.parse(call.body))
  }

  /** @param joins true for the call that takes several results */
  env(joins = false): Record<string, string> {
    const base = `http://127.0.0.1:${this.port}/v2/ep1`
    return {
      RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=NVIDIA+L4`,
      RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=NVIDIA+L4`,
      RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=NVIDIA+L4`,
      RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID?gpu=NVIDIA+L4`,
      ...(joins ? { RUNYARD_WEBHOOK_POST_OUTPUTS: `${base}/job-done-batch/$RUNPOD_POD_ID?gpu=NVIDIA+L4` } : {}),
      RUNPOD_PING_INTERVAL: '200',
      RUNPOD_AI_API_KEY: 'WORKERSECRET',
      RUNPOD_POD_ID: 'w-1',
      RUNPOD_POD_HOSTNAME: 'w-1-00c0ffee',
    }
  }

  #respond(call: Call, response: ServerResponse): void {
    const answer = this.rules[call.kind]?.(call, this.of(call.kind).length)
    if (answer) setTimeout(send, answer.afterMs ?? 0, response, answer).unref()
    else if (call.kind === 'job-stop') this.#hold(response, () => this.#takeStops())
    else if (call.kind.startsWith('job-take')) this.#hold(response, () => this.#takeJobs(call))
    else send(response, { status: 200, body: {} })
  }

  #takeStops(): unknown {
    return this.#stops.length > 0 ? { jobsToStop: this.#stops.splice(0) } : undefined
  }

  #takeJobs({ kind, query }: Call): unknown {
    const batch = kind === 'job-take-batch'
    const jobs = this.#waiting.splice(0, batch ? Number(query.get('batch_size')) : 1)
    if (jobs.length === 0) return undefined
    return batch ? jobs : jobs[0]
  }

  #hold(response: ServerResponse, find: () => unknown): void {
    const poll = () => {
      const body = response.destroyed ? undefined : find()
      if (body !== undefined) send(response, { status: 200, body })
      return body !== undefined
    }
    if (poll()) return
    this.#polls.add(poll)
    const timer = setTimeout(() => response.writeHead(204).end(), this.rules.holdMs ?? 20_000)
    response.on('close', () => {
      clearTimeout(timer)
      this.#polls.delete(poll)
    })
  }

  #wake(): void {
    for (const poll of this.#polls) if (poll()) this.#polls.delete(poll)
  }
}

function send(response: ServerResponse, { status, headers = {}, body }: Answer): void {
  if (body === undefined) response.writeHead(status, headers).end()
  else response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))
}
