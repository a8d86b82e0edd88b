import type { JobId, WorkerId } from '../../src/core/ids.ts'
import type { Life } from '../life.ts'
import type { Network, Reply } from '../network.ts'
import type { Behavior } from './behavior.ts'

const TAKE_TIMEOUT_MS = 90_000
const POST_TIMEOUT_MS = 600_000
/** Time in which our SDK gathers results for one call. The real one gathers those of a turn of its event loop. */
const GATHER_MS = 500

/** A result that waits for its call. */
interface WaitingResult {
  readonly job: JobId
  readonly body: string
  readonly resolve: (reply: Reply | Promise<Reply>) => void
}

/** The worker that calls. */
export interface Caller {
  readonly id: WorkerId
  readonly sdk: Behavior['sdk']
  readonly env: Readonly<Record<string, string>>
  readonly life: Life
  readonly network: Network
}

/** The calls of the worker protocol, with the headers and addresses of an SDK. */
export class Protocol {
  readonly #caller: Caller
  #waiting: WaitingResult[] = []

  constructor(caller: Caller) {
    this.#caller = caller
  }

  /** Takes jobs. */
  take(free: number, busy: boolean): Promise<Reply> {
    const url = this.#takeUrl()
    const running = `&job_in_progress=${busy ? 1 : 0}`
    if (free === 1) return this.#get(`${url}${running}`, TAKE_TIMEOUT_MS, this.#caller.life)
    const batch = url.replace('/job-take/', '/job-take-batch/')
    return this.#get(`${batch}&batch_size=${free}${running}`, TAKE_TIMEOUT_MS, this.#caller.life)
  }

  /** Polls for jobs to stop. */
  stops(): Promise<Reply> {
    return this.#get(this.#takeUrl().replace('/job-take/', '/job-stop/'), TAKE_TIMEOUT_MS, this.#caller.life)
  }

  /** Sends a ping with the jobs that the worker runs. @param life the process that pings; it may outlive the worker */
  ping(jobs: readonly JobId[], life: Life): Promise<Reply> {
    const list = jobs.length === 0 ? '' : `&job_id=${encodeURIComponent(jobs.join(','))}`
    const url = this.#caller.env.RUNPOD_WEBHOOK_PING!.replace('$RUNPOD_POD_ID', this.#caller.id)
    return this.#get(`${url}${list}&runpod_version=1.12.0`, 20_000, life)
  }

  /** Posts a result, an update or a chunk, once. Our SDK sends results that are ready at the same time in one call. */
  post(kind: 'OUTPUT' | 'STREAM', job: JobId, body: string, extraMs = 0): Promise<Reply> {
    if (kind === 'OUTPUT' && this.#caller.sdk === 'runyard') return this.#join(job, body)
    return this.#postAlone(kind, job, body, extraMs)
  }

  #postAlone(kind: 'OUTPUT' | 'STREAM', job: JobId, body: string, extraMs = 0): Promise<Reply> {
    const { id: who, env } = this.#caller
    const template = env[`RUNPOD_WEBHOOK_POST_${kind}`]!
    const url = `${template.replace('$RUNPOD_POD_ID', who).replace('$ID', job)}&isStream=false`
    return this.#send(url, body, { 'x-request-id': job }, extraMs)
  }

  #send(url: string, body: string, more: Readonly<Record<string, string>>, extraMs: number): Promise<Reply> {
    const { id: who, env, life, network } = this.#caller
    const headers = {
      authorization: env.RUNPOD_AI_API_KEY!,
      'user-agent': this.#userAgent(),
      'content-type': 'application/x-www-form-urlencoded',
      charset: 'utf-8',
      ...more,
    }
    const call = { who, method: 'POST', url, headers, body, life, timeoutMs: POST_TIMEOUT_MS } as const
    return network.send({ ...call, outlives: true, extraMs })
  }

  #join(job: JobId, body: string): Promise<Reply> {
    return new Promise(resolve => {
      if (this.#waiting.length === 0) this.#caller.life.after(GATHER_MS, () => void this.#sendWaiting())
      this.#waiting.push({ job, body, resolve })
    })
  }

  async #sendWaiting(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    const [first] = waiting
    if (waiting.length === 1) return first!.resolve(this.#postAlone('OUTPUT', first!.job, first!.body))
    const url = this.#caller.env.RUNYARD_WEBHOOK_POST_OUTPUTS!.replace('$RUNPOD_POD_ID', this.#caller.id)
    const reply = await this.#send(url, waiting.map(({ job, body }) => `${job}\n${body}`).join('\n'), {}, 0)
    const statuses = reply.ok && reply.status === 200 ? (JSON.parse(reply.text) as number[]) : []
    for (const [at, { resolve }] of waiting.entries())
      resolve(reply.ok ? { ...reply, status: statuses[at] ?? reply.status } : reply)
  }

  #takeUrl(): string {
    return this.#caller.env.RUNPOD_WEBHOOK_GET_JOB!.replace('$ID', this.#caller.id)
  }

  #get(url: string, timeoutMs: number, life: Life): Promise<Reply> {
    const { id: who, env, network } = this.#caller
    const headers = { authorization: env.RUNPOD_AI_API_KEY!, 'user-agent': this.#userAgent() }
    return network.send({ who, method: 'GET', url, headers, life, timeoutMs })
  }

  #userAgent(): string {
    const { sdk } = this.#caller
    if (sdk === 'runyard') return 'Runyard-Worker-SDK/0.1.0 (linux; x64) Language/Node 26.10.0'
    const version = { python: '1.12.0', 'old python': '1.7.9', 'python 2': '2.0.0rc2' }[sdk]
    return `RunPod-Python-SDK/${version} (Linux; x86_64) Language/Python 3.11.9`
  }
}
