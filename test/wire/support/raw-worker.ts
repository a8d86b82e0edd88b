/** Workers whose processes only idle, while the test itself speaks the worker protocol with their tokens. */
import { readdirSync, readFileSync } from 'node:fs'
import { temporaryFolder } from './cleanup.ts'
import { type Answer, type Ask, ask, makeEndpoint } from './client.ts'
import { fixture, type Server } from './server.ts'
import { until } from './until.ts'

/** A job as a take hands it out. */
export interface TakenJob {
  readonly id: string
  readonly input: unknown
  readonly [field: string]: unknown
}

/** An endpoint whose workers are silent. */
export interface SilentEndpoint {
  readonly id: string
  /** The worker with this number, from 0 in the order in which they are asked for. */
  worker(): Promise<RawWorker>
}

/**
 * Makes an endpoint with this many silent workers, which stay until their stop signal. A take gets one job, also where
 * the jobs are short.
 */
export async function silentEndpoint(
  server: Server,
  workers = 1,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<SilentEndpoint> {
  const folder = temporaryFolder()
  const id = await makeEndpoint(server, {
    folder: fixture('silent-worker'),
    env: { WIRE_FOLDER: folder, RUNYARD_TAKE_AHEAD: '0' },
    settings: { workersMin: workers, workersMax: workers, idleTimeout: 3600, ...settings },
  })
  const files = new Set<string>()
  const worker = async () => {
    const file = await until('another silent worker', () =>
      readdirSync(folder).find(name => name.endsWith('.json') && !files.has(name)),
    )
    files.add(file)
    return new RawWorker(JSON.parse(readFileSync(`${folder}/${file}`, 'utf8')))
  }
  return { id, worker }
}

/** The six calls, as a test makes them in the name of a worker. */
export class RawWorker {
  readonly id: string
  readonly endpoint: string
  readonly token: string
  readonly env: Readonly<Record<string, string>>
  /** Origin of the address that the worker was given. */
  readonly url: string

  constructor(env: Readonly<Record<string, string>>) {
    this.env = env
    this.url = new URL(env.RUNPOD_WEBHOOK_PING!).origin
    this.id = env.RUNPOD_POD_ID!
    this.endpoint = env.RUNPOD_ENDPOINT_ID!
    this.token = env.RUNPOD_AI_API_KEY!
  }

  /** Path of a call, with the query that the worker's environment puts there. */
  path(call: string, job = ''): string {
    return `/v2/${this.endpoint}/${call}/${this.id}${job === '' ? '' : `/${job}`}?gpu=CPU`
  }

  /** Any of the calls, with the worker's token, to the address that the worker was given. */
  send(path: string, request: Ask = {}): Promise<Answer> {
    return ask({ url: this.url, apiKey: '' }, path, {
      ...request,
      headers: { authorization: this.token, 'user-agent': 'RunPod-Python-SDK/1.12.0 (test)', ...request.headers },
    })
  }

  /** Takes one job; held while the queue is empty. */
  takeAnswer(busy = false): Promise<Answer> {
    return this.send(`${this.path('job-take')}&job_in_progress=${busy ? 1 : 0}`)
  }

  /** Takes one job; fails if the queue is empty. */
  async take(busy = false): Promise<TakenJob> {
    const { status, json } = await this.takeAnswer(busy)
    if (status !== 200) throw new Error(`the take was answered ${status}`)
    return json
  }

  /** Asks for several jobs. */
  async takeBatch(size: number, busy = false): Promise<TakenJob[]> {
    const { status, json } = await this.send(
      `${this.path('job-take-batch')}&batch_size=${size}&job_in_progress=${busy ? 1 : 0}`,
    )
    return status === 204 ? [] : json
  }

  /** Posts a body to job-done under the content type that the Python SDK uses. */
  done(job: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const form = { 'content-type': 'application/x-www-form-urlencoded', charset: 'utf-8', ...headers }
    return this.send(`${this.path('job-done', job)}&isStream=false`, { method: 'POST', body, headers: form })
  }

  /** Posts a stream chunk. */
  chunk(job: string, body: unknown): Promise<Answer> {
    return this.send(`${this.path('job-stream', job)}&isStream=false`, { method: 'POST', body })
  }

  /** Says which jobs the worker has. */
  ping(jobs: readonly string[] = []): Promise<Answer> {
    const list = jobs.length === 0 ? '' : `&job_id=${encodeURIComponent(jobs.join(','))}`
    return this.send(`${this.path('ping')}${list}&runpod_version=1.12.0`)
  }

  /** Reads the jobs to stop; held while the list is empty. */
  async stops(): Promise<string[]> {
    const { status, json } = await this.send(this.path('job-stop'))
    return status === 204 ? [] : json.jobsToStop
  }
}
