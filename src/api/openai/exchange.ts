import { LARGE_BODY_BYTES } from '../../core/bodies/body-readings.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import { isFinal, type Job } from '../../core/jobs/job.ts'
import { RESULT_BYTES } from '../../core/jobs/result.ts'
import { gatherSlices } from '../../core/json/text-slices.ts'
import type { ErrorForm } from '../../core/openai/error-form.ts'
import {
  failureAnswer,
  failureEventText,
  inForm,
  type OpenAiAnswer,
  openAiAnswer,
  openAiRefusal,
  readErrorObject,
  workerErrorAnswer,
} from '../../core/openai/openai.ts'
import {
  EventWriter,
  isJson,
  itemsFromChunks,
  itemsFromOutput,
  type Piece,
  PieceReader,
  type StreamItem,
} from '../../core/openai/openai-stream.ts'
import { TokenReader, type TokenUsage, tokensOfText } from '../../core/openai/token-usage.ts'
import { UsageEventFilter } from '../../core/openai/usage-in-streams.ts'
import type { StreamAnswer } from '../../services/jobs/streams.ts'
import type { ApiParts } from '../parts.ts'
import { refusalHeaders, reportFailure, type SurfaceCall, textResponse } from '../surface.ts'

/** Length of one long poll for chunks, in ms. */
const POLL_MS = 25_000

/** A line of a stream that clients ignore, and the time between two of them in ms: proxies cut silent responses. */
const COMMENT = ': waiting for a worker\n\n'
const COMMENT_MS = 10_000

const EVENT_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
} as const

/** The next part of the response: at least one piece, or the end as a final job. */
interface Part {
  readonly pieces: readonly Piece[]
  readonly end: Job | null
}

/** Makes a Response of an OpenAI answer. */
export function respond(answer: OpenAiAnswer, headers: Readonly<Record<string, string>>): Response {
  const { status, contentType, text } = answer
  // Official clients would retry a request that has already used its whole time.
  const once: Record<string, string> = status === 504 ? { 'x-should-retry': 'false' } : {}
  return textResponse(text, { status, headers: { 'content-type': contentType, ...once, ...headers } })
}

/** One request and its job. The job is cancelled when the client goes away, because no other client waits for it. */
export class OpenaiExchange {
  readonly headers: Readonly<Record<string, string>>
  readonly #parts
  readonly #call
  readonly #gone = new AbortController()
  readonly #ended
  readonly #onTokens
  /** Null for a stream that passes whole. */
  readonly #filter: UsageEventFilter | null
  readonly #signals: readonly AbortSignal[]
  readonly #writer
  readonly #form
  #reader = new PieceReader()
  #job: Job
  /** The attempt whose pieces were read; 0 before the first. */
  #attempt = 0
  /** Its worker: an attempt that did not count is followed by another one with its number. */
  #workerId: WorkerId | null = null

  /**
   * @param ended aborts when the caller may no longer read the response; its reason is the error
   * @param onTokens called once with the tokens that a successful answer reports, null if it reports none; null for a
   *   request whose answer has none
   * @param hidesUsage true if the event of usage of its stream is for the server alone
   * @param form of its errors
   */
  constructor(
    parts: ApiParts,
    job: Job,
    call: SurfaceCall,
    ended: AbortSignal,
    {
      onTokens,
      hidesUsage,
      form,
    }: { onTokens: ((usage: TokenUsage | null) => void) | null; hidesUsage: boolean; form: ErrorForm },
  ) {
    this.#parts = parts
    this.#onTokens = onTokens
    this.#form = form
    this.#writer = new EventWriter(form)
    this.#filter = hidesUsage ? new UsageEventFilter() : null
    this.#job = job
    this.#call = call
    this.#ended = ended
    this.#signals = [call.request.signal, parts.stopping, ended, this.#gone.signal]
    this.headers = { 'x-runyard-job-id': job.id }
  }

  /** The whole response, once the job is final. */
  async whole(): Promise<Response> {
    const job = answerable(await this.#parts.jobs.whenFinal(this.#job, Number.POSITIVE_INFINITY, this.#signals))
    if (!isFinal(job.status)) return this.#cutOff()
    const isBare = job.status === 'COMPLETED' && (job.output === null || /^\s*(?:null|\[\s*\])\s*$/.test(job.output))
    const answer = isBare ? await this.#collected(job) : await this.#buildAnswer(job, job.output)
    if (answer.status === 200 && answer.contentType === 'application/json') this.#onTokens?.(tokensOfText(answer.text))
    return respond(inForm(answer, this.#form), this.headers)
  }

  /**
   * Sends server-sent events as the worker yields them. The response status waits for the first event, so that a job
   * which fails earlier is answered with its error.
   */
  async stream(): Promise<Response> {
    const first = await this.#next()
    if (first === null) return this.#cutOff()
    const { pieces, end } = first
    if (pieces.length === 0 && end !== null && end.status !== 'COMPLETED') {
      return respond(inForm(await this.#buildAnswer(end, null), this.#form), this.headers)
    }
    const [piece] = pieces
    const failure = piece?.kind === 'json' ? await this.#readError(piece.json) : null
    if (failure !== null) return respond(inForm(failure, this.#form), this.headers)
    return new Response(this.#events(first), { headers: { ...EVENT_HEADERS, ...this.headers } })
  }

  /**
   * Sends the head of a stream at once, and comments until its first event, so that clients and proxies see that it
   * lives. A job that fails is reported in the stream.
   * @param cause for which the job waits, in the header `x-runyard-wait`
   */
  early(cause: string): Response {
    return new Response(this.#events(null), { headers: { ...EVENT_HEADERS, ...this.headers, 'x-runyard-wait': cause } })
  }

  /** Cancels the job if it is not final. */
  async cancelJob(): Promise<void> {
    const { emit } = this.#parts.ports
    const { jobs } = this.#parts
    // The job may have become final or expired in the meantime.
    await jobs
      .cancel(this.#job.endpointId, this.#job.id)
      .catch(error => reportFailure(emit, 'openai', this.#call, error))
  }

  /**
   * Cancels the job after the client disconnected, unless the whole response was sent: then the job ends by itself.
   */
  async #leave(): Promise<void> {
    if (!this.#writer.isDone) await this.cancelJob()
  }

  /** Reads the next part only after the client has read the previous one. */
  #events(first: Part | null): ReadableStream<Uint8Array> {
    const texts = this.#texts(first)
    const encoder = new TextEncoder()
    const tokens = this.#onTokens === null ? null : new TokenReader('events')
    let isCounted = false
    const count = () => {
      if (tokens !== null && !isCounted) this.#onTokens?.(tokens.end())
      isCounted = true
    }
    return new ReadableStream<Uint8Array>(
      {
        pull: async controller => {
          for (let shown = 0; shown === 0; ) {
            const { value, done } = await texts.next()
            if (this.#gone.signal.aborted) return
            if (done === true) {
              count()
              const rest = this.#filter?.end()
              if (rest !== undefined && rest.length > 0) controller.enqueue(rest)
              controller.close()
              return
            }
            const bytes = encoder.encode(value)
            tokens?.take(bytes)
            const parts = this.#filter?.push(bytes) ?? [bytes]
            shown = parts.length
            for (const part of parts) controller.enqueue(part)
          }
        },
        cancel: async () => {
          count()
          this.#gone.abort()
          await this.#leave()
        },
      },
      { highWaterMark: 0 },
    )
  }

  async *#texts(first: Part | null): AsyncGenerator<string, void> {
    let part: Part | AppError = first ?? (yield* this.#waited())
    if (this.#gone.signal.aborted) return
    while (!(part instanceof AppError)) {
      const { pieces, end } = part
      yield* gatherSlices(pieces.map(piece => this.#writer.write(piece)))
      if (end !== null) {
        yield* gatherSlices([end.status === 'COMPLETED' ? this.#writer.done() : await this.#failed(end)])
        return
      }
      part = await this.#nextOrError()
      if (this.#gone.signal.aborted) return
    }
    yield this.#writer.failed(failureEventText(openAiRefusal(part), this.#form))
  }

  /** The first part, after comments while it is not there. */
  async *#waited(): AsyncGenerator<string, Part | AppError> {
    const next = this.#nextOrError()
    for (;;) {
      yield COMMENT
      const { promise: tick, resolve } = Promise.withResolvers<null>()
      const cancel = this.#parts.ports.clock.after(COMMENT_MS, () => resolve(null))
      const part = await Promise.race([next, tick])
      cancel()
      if (part !== null) return part
    }
  }

  async #failed(end: Job): Promise<string> {
    const { error } = end
    const isLong = error !== null && error.length >= LARGE_BODY_BYTES
    const short = { ...end, input: '', output: null, error: null }
    const answer = isLong
      ? await this.#parts.ports.bodies.read(end.owner, 'openAiFailure', error, short)
      : failureAnswer(end)
    return this.#writer.failed(failureEventText(answer, this.#form))
  }

  /** The response status was sent already, so a failure is reported in the stream. */
  async #nextOrError(): Promise<Part | AppError> {
    try {
      return (await this.#next()) ?? this.#over()
    } catch (error) {
      reportFailure(this.#parts.ports.emit, 'openai', this.#call, error)
      await this.cancelJob()
      return toAppError(error)
    } finally {
      if (this.#isOver()) await this.#leave()
    }
  }

  /** Waits for the next part without a timeout. Null: the client disconnected or the server stops. */
  async #next(): Promise<Part | null> {
    for (;;) {
      const answer = await this.#poll()
      if (this.#isOver()) {
        answer.settle(false)
        return null
      }
      const end = isFinal(answer.status) ? answerable(answer.job) : null
      const restarted = this.#attempt > 0 && this.#isRestarted(answer)
      let pieces: readonly Piece[] = []
      try {
        if (!restarted) pieces = await this.#take(answer)
      } catch (error) {
        answer.settle(false)
        throw error
      }
      answer.settle(true)
      if (restarted) return this.#restart(answer.job)
      if (pieces.length > 0 || end !== null) return { pieces, end }
    }
  }

  async #take(answer: StreamAnswer): Promise<readonly Piece[]> {
    if (answer.chunks.length > 0) {
      this.#attempt = answer.attempt
      this.#workerId = answer.job.workerId
    }
    const pieces: Piece[] = []
    for (const item of await this.#readItems(answer)) {
      const piece = this.#reader.take(item)
      if (piece === null) continue
      if (piece.kind !== 'joined') pieces.push(piece)
      else if (await this.#isJson(piece.json)) pieces.push({ kind: 'json', json: piece.json })
    }
    return pieces
  }

  /** The new items. Long texts are parsed in a thread. */
  async #readItems({ chunks, job }: StreamAnswer): Promise<readonly StreamItem[]> {
    const { bodies } = this.#parts.ports
    const isLong = chunks.reduce((sum, chunk) => sum + chunk.length, 0) >= LARGE_BODY_BYTES
    const items = isLong ? await bodies.read(job.owner, 'streamItems', '', chunks) : itemsFromChunks(chunks)
    const { status, output } = job
    // A handler that is not a generator has its whole response in the output.
    if (this.#attempt > 0 || status !== 'COMPLETED' || output === null) return items
    return output.length >= LARGE_BODY_BYTES ? bodies.read(job.owner, 'outputItems', output) : itemsFromOutput(output)
  }

  async #readError(json: string): Promise<OpenAiAnswer | null> {
    return json.length >= LARGE_BODY_BYTES
      ? this.#parts.ports.bodies.read(this.#job.owner, 'openAiError', json)
      : readErrorObject(json)
  }

  async #isJson(text: string): Promise<boolean> {
    return text.length >= LARGE_BODY_BYTES
      ? this.#parts.ports.bodies.read(this.#job.owner, 'isJson', text)
      : isJson(text)
  }

  #isRestarted({ job, chunks, attempt }: StreamAnswer): boolean {
    const isOther = attempt !== this.#attempt || job.workerId !== this.#workerId
    return job.status === 'IN_QUEUE' || (chunks.length > 0 && isOther)
  }

  /** Fails the job: another attempt would repeat from the start the part that the client has received. */
  async #restart(job: Job): Promise<Part> {
    await this.cancelJob()
    const error = 'the worker was lost in the middle of its answer'
    return { pieces: [], end: { ...job, status: 'FAILED', error } }
  }

  /** One long poll for chunks. A job that no longer exists is reported with its last state. */
  async #poll(): Promise<StreamAnswer> {
    const { clock } = this.#parts.ports
    const { streams, jobs } = this.#parts
    const { endpointId, id, expiresAtMs } = this.#job
    const forMs = Math.min(POLL_MS, Math.max(0, expiresAtMs + 1 - clock.now()))
    try {
      const answer = await streams.next(endpointId, id, forMs, this.#signals)
      this.#job = answer.job
      return answer
    } catch (error) {
      if (toAppError(error).code !== 'not_found') throw error
      const job = await jobs.whenFinal(this.#job, 0, [])
      return { job, status: job.status, chunks: [], attempt: job.attempt, settle: () => {} }
    }
  }

  /** The response from the chunks of a generator, for a job without an output. */
  async #collected(job: Job): Promise<OpenAiAnswer> {
    const texts: string[] = []
    let characters = 0
    for (;;) {
      const part = await this.#next()
      if (part === null) return openAiRefusal(this.#over())
      for (const piece of part.pieces) {
        const text = piece.kind === 'json' ? piece.json : JSON.stringify(piece.text)
        characters += text.length
        texts.push(text)
      }
      if (characters > RESULT_BYTES.kept) return workerErrorAnswer('the chunks of the job are too large for one answer')
      if (part.end !== null) return this.#buildAnswer(job, `[${texts.join(',')}]`)
    }
  }

  /** The response of a final job. Long texts are parsed in a thread. */
  async #buildAnswer(job: Job, output: string | null): Promise<OpenAiAnswer> {
    const { bodies } = this.#parts.ports
    const short = { ...job, input: '', output: null }
    if (job.status !== 'COMPLETED' && (job.error?.length ?? 0) >= LARGE_BODY_BYTES)
      return bodies.read(job.owner, 'openAiFailure', job.error!, { ...short, error: null })
    if (output !== null && output.length >= LARGE_BODY_BYTES)
      return bodies.read(job.owner, 'openAiAnswer', output, short)
    return openAiAnswer(job, output)
  }

  #isOver(): boolean {
    return this.#signals.some(signal => signal.aborted)
  }

  /**
   * Cancels the job and responds with an error: the client disconnected (and does not see it), or the server stops.
   */
  async #cutOff(): Promise<Response> {
    await this.cancelJob()
    const error = this.#over()
    return respond(inForm(openAiRefusal(error), this.#form), { ...this.headers, ...refusalHeaders(error) })
  }

  #over(): AppError {
    if (this.#ended.aborted) return this.#ended.reason
    const reason = this.#parts.stopping.aborted ? 'the server is stopping' : 'the client went away'
    return new AppError('unavailable', reason)
  }
}

/** The job as these clients get it: an output that is not held in memory is no answer. */
function answerable(job: Job): Job {
  const { largeOutput, ...rest } = job
  if (largeOutput === undefined || job.status !== 'COMPLETED') return job
  const error = `the output of the job is too large for an answer of this kind (${largeOutput.bytes} bytes); /status has it`
  return { ...rest, status: 'FAILED', error }
}
