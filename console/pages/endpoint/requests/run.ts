/** One run of the runner: sends the call, follows its job, and collects its output as it arrives. */
import { type Signal, signal } from '@preact/signals'
import { ApiError, api, errorSentence, JsonText, request, send } from '../../../client/api.ts'
import type { Job } from '../../../client/api-types.d.ts'
import { Backoff, pause, readEvents } from '../../../client/event-source.ts'
import { onLive } from '../../../client/live.ts'
import { exactBody, parseExact } from './exact-json.ts'
import { isFinal } from './job-story.ts'
import { type Call, chatDelta, type Mode } from './run-call.ts'

/** State of a run. */
export interface RunState {
  /** `ended`: the job has ended. `failed`: there is no job, or it cannot be followed; `problem` has the reason. */
  readonly phase: 'sending' | 'running' | 'ended' | 'failed'
  readonly jobId: string | null
  /** The job as it was last read. */
  readonly job: Job | null
  /** The streamed output. */
  readonly text: string
  readonly chunks: number
  /** True if the beginning of the text was dropped. */
  readonly isCut: boolean
  /** Size of an output that is too large for the page, in bytes; null for any other. */
  readonly largeBytes: number | null
  readonly problem: string | null
}

/** A run in progress. */
export interface Run {
  readonly mode: Mode
  readonly state: Signal<RunState>
  /** Cancels the job. */
  readonly cancel: () => Promise<void>
  /** Stops following; a job goes on, a chat ends with its request. */
  readonly leave: () => void
}

/** Limit of characters of streamed output that the page keeps. */
const MAX_TEXT = 200_000
/** Interval of reads of a job whose changes no event reports, in milliseconds. */
const READ_MS = 1_000
/** Limit of consecutive failed reads of a job, after which it counts as deleted. */
const MAX_FAILURES = 10
/** Time after which a call that is held open asks for the id of its job, in milliseconds. */
const ID_AFTER_MS = 250
/** Limit of bytes of a job that the page reads with its output; a job with more is read as its record. */
const MAX_JOB_BYTES = 32_000_000

/** Starts a run. */
export function startRun(endpoint: string, mode: Mode, call: Call): Run {
  const running = new JobRunner(endpoint, mode, call)
  void running.start()
  return running
}

class JobRunner implements Run {
  readonly mode: Mode
  readonly state = signal<RunState>({
    phase: 'sending',
    jobId: null,
    job: null,
    text: '',
    chunks: 0,
    isCut: false,
    largeBytes: null,
    problem: null,
  })
  readonly #endpoint
  readonly #call
  readonly #left = new AbortController()
  /** Aborts the request of a chat. */
  readonly #chat = new AbortController()
  /** Idempotency key that finds the job of a call that is held open: the same key is the same job. */
  readonly #key = Array.from(crypto.getRandomValues(new Uint32Array(4)), part => part.toString(36)).join('-')

  /** Number of failed reads of the job since the last success. */
  #failures = 0

  constructor(endpoint: string, mode: Mode, call: Call) {
    this.#endpoint = endpoint
    this.mode = mode
    this.#call = call
    this.#left.signal.addEventListener('abort', () => this.#chat.abort())
  }

  async start(): Promise<void> {
    try {
      if (this.mode === 'openai') await this.#runChat()
      else if (this.mode === 'runsync') await this.#runSync()
      else await this.#follow(await this.#submit(this.#call.path.replace(/\/runsync\?.*/s, '/run')))
      if (this.state.value.phase !== 'ended')
        this.#set({ phase: this.state.value.problem === null ? 'ended' : 'failed' })
    } catch (error) {
      if (!this.#left.signal.aborted) this.#set({ phase: 'failed', problem: errorSentence(error) })
    }
  }

  leave = () => this.#left.abort()

  cancel = async (): Promise<void> => {
    if (this.mode === 'openai') return this.#chat.abort()
    const job = this.state.value.jobId ?? (await this.#submit(this.#runPath))
    await api('POST /v2/{endpoint}/cancel/{job}', { path: { endpoint: this.#endpoint, job } })
  }

  get #runPath(): string {
    return `/v2/${encodeURIComponent(this.#endpoint)}/run`
  }

  #set(changes: Partial<RunState>): void {
    if (!this.#left.signal.aborted) this.state.value = { ...this.state.value, ...changes }
  }

  /** Sends the call, or finds the job of an earlier try. */
  async #submit(path: string): Promise<string> {
    const response = await this.#post(path)
    const { id } = (await response.json()) as { id: string }
    this.#set({ jobId: id, phase: 'running' })
    return id
  }

  #post(path: string): Promise<Response> {
    return request('POST', path, {
      body: new JsonText(this.#call.body),
      headers: { 'idempotency-key': this.#key },
      signal: this.#left.signal,
    })
  }

  /** The answer of `runsync` is the job; until then the job is followed as others are, so that its state is shown. */
  async #runSync(): Promise<void> {
    const answered = this.#post(this.#call.path).then(response => this.#jobOf(response))
    const first = await Promise.race([answered, pause(ID_AFTER_MS, this.#left.signal)])
    if (first === undefined && !this.#left.signal.aborted) {
      const followed = this.#submit(this.#runPath).then(id => this.#watch(id))
      followed.catch(() => {})
      const job = await answered
      if (isFinal(job.status)) return this.#set({ job, jobId: job.id, phase: 'ended' })
      return followed
    }
    if (first === undefined) return
    this.#set({ job: first, jobId: first.id, phase: isFinal(first.status) ? 'ended' : 'running' })
    if (!isFinal(first.status)) await this.#watch(first.id)
  }

  async #follow(id: string): Promise<void> {
    await Promise.all([this.#watch(id), this.mode === 'stream' ? this.#readStream(id) : null])
  }

  /** Reads the job at each of its events, until it has ended. */
  async #watch(id: string): Promise<void> {
    const signal = this.#left.signal
    while (!signal.aborted) {
      const changed = new AbortController()
      const stop = onLive(event => {
        if (event === null || event.jobId === id) changed.abort()
      })
      try {
        if (await this.#readJob(id)) return
        await pause(READ_MS, AbortSignal.any([changed.signal, signal]))
      } finally {
        stop()
      }
    }
  }

  /** True if the job has ended. */
  async #readJob(id: string): Promise<boolean> {
    try {
      const path = { endpoint: this.#endpoint, job: id }
      const parameters = { path, signal: this.#left.signal }
      const job = await this.#jobOf(await send('GET /v2/{endpoint}/status/{job}', parameters), id)
      const hasEnded = isFinal(job.status)
      this.#failures = 0
      // Chunks may still arrive after the end of the job.
      const isLast = hasEnded && this.mode !== 'stream' && this.mode !== 'openai'
      this.#set({
        job,
        problem: this.mode === 'openai' ? this.state.value.problem : null,
        ...(isLast ? { phase: 'ended' } : {}),
      })
      return hasEnded
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      // A server that starts may not have loaded all jobs yet.
      this.#failures += 1
      const wasThere = this.state.value.job !== null && this.#failures <= MAX_FAILURES
      if (!error.isPassing && !wasThere) throw error
      this.#set({ problem: `${error.message} The page tries again.` })
      return false
    }
  }

  /** The job of a response, without its output if that is too large. */
  async #jobOf(response: Response, id: string | null = this.state.value.jobId): Promise<Job> {
    if (id === null || Number(response.headers.get('content-length') ?? 0) <= MAX_JOB_BYTES)
      return exactBody<Job>(response)
    void response.body?.cancel().catch(() => {})
    const parameters = { path: { endpoint: this.#endpoint, job: id }, signal: this.#left.signal }
    const record = await api('GET /v2/{endpoint}/requests/{job}', parameters)
    const { status, delayTime, executionTime, outputBytes: largeBytes } = record
    this.#set({ largeBytes })
    return { id, status, delayTime: delayTime ?? 0, ...(executionTime === null ? {} : { executionTime }) }
  }

  /** Reads the chunks of a job; goes on after a lost connection, since chunks that did not arrive are sent again. */
  async #readStream(id: string): Promise<void> {
    const backoff = new Backoff()
    const { signal } = this.#left
    while (!signal.aborted) {
      try {
        const path = `/v2/${encodeURIComponent(this.#endpoint)}/stream/${encodeURIComponent(id)}`
        const response = await request('GET', path, { headers: { accept: 'text/event-stream' }, signal })
        for await (const { name, data } of readEvents(response)) {
          backoff.reset()
          if (name === 'status') return
          if (name === 'restart') this.#set({ text: '', chunks: 0, isCut: false })
          else this.#add(chunkText(data))
        }
      } catch (error) {
        if (signal.aborted || this.state.value.phase === 'failed') return
        const { job } = this.state.value
        if (error instanceof ApiError && error.status === 404 && (job === null || isFinal(job.status))) return
      }
      await pause(backoff.next(), signal)
    }
  }

  async #runChat(): Promise<void> {
    const { path, body } = this.#call
    const cancelled = this.#chat.signal
    let watching: Promise<void> | null = null
    try {
      const response = await request('POST', path, { body: new JsonText(body), signal: cancelled })
      const jobId = response.headers.get('x-runyard-job-id')
      this.#set({ jobId, phase: 'running' })
      watching = jobId === null ? null : this.#watch(jobId)
      watching?.catch(() => {})
      if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true)
        this.#add(indented(await response.text()))
      else
        for await (const { data } of readEvents(response)) {
          const problem = streamError(data)
          if (problem !== null) this.#set({ problem })
          else if (data !== '[DONE]') this.#add(chatDelta(data) ?? '')
        }
    } catch (error) {
      if (!cancelled.aborted) throw error
      if (watching === null) this.#set({ phase: 'failed', problem: 'The chat was cancelled.' })
    }
    await watching
  }

  #add(text: string): void {
    const { text: previousText, chunks, isCut } = this.state.value
    const whole = previousText + text
    this.#set({ text: whole.slice(-MAX_TEXT), chunks: chunks + 1, isCut: isCut || whole.length > MAX_TEXT })
  }
}

/** A chunk for reading: texts are joined, other values have a line each. */
function chunkText(data: string): string {
  try {
    const chunk = parseExact(data)
    const output = typeof chunk === 'object' && chunk !== null && 'output' in chunk ? chunk.output : chunk
    return typeof output === 'string' ? output : `${JSON.stringify(output)}\n`
  } catch {
    return `${data}\n`
  }
}

function indented(text: string): string {
  try {
    return JSON.stringify(parseExact(text), null, 2)
  } catch {
    return text
  }
}

function streamError(data: string): string | null {
  try {
    const { error } = JSON.parse(data) as { error?: { message?: string } | string }
    if (error === undefined) return null
    return typeof error === 'string' ? error : (error.message ?? JSON.stringify(error))
  } catch {
    return null
  }
}
