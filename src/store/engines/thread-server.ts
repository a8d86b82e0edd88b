import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { findOperation } from './operations.ts'
import { countCharacters, MAX_BATCH, SqliteEngine, type SqliteEngineOptions } from './sqlite-engine.ts'
import {
  type LargeAnswers,
  type NumberedCall,
  type NumberedOutcome,
  packError,
  type Request,
  type Response,
} from './thread-messages.ts'

/** Size in characters from which results are sent at once, and counted until the main thread has taken them. */
const LARGE = 256 * 1024
/**
 * Limit of characters of large results of reads on their way, and the same of writes; more calls of that kind wait
 * until the main thread has taken some.
 */
const MAX_UNTAKEN = 8 * 1024 * 1024

/**
 * Answers the main thread's calls. Everything that has arrived is taken together: first the reads, which wait for no
 * flush, then the writes, with one commit for as many as came in while the last one was flushed.
 */
export function serveStore(port: MessagePort, options: SqliteEngineOptions): void {
  try {
    new StoreServer(port, new SqliteEngine(options)).start()
  } catch (error) {
    port.postMessage({ kind: 'failed', error: packError(error) } satisfies Response)
    port.close()
  }
}

class StoreServer {
  readonly #port
  readonly #engine
  /** By their first argument, in fair turns: many large reads of one endpoint do not hold up others. */
  readonly #reads = new Map<unknown, NumberedCall[]>()
  #writes: NumberedCall[] = []
  readonly #untaken = { reads: 0, writes: 0 }

  constructor(port: MessagePort, engine: SqliteEngine) {
    this.#port = port
    this.#engine = engine
  }

  start(): void {
    this.#port.on('message', (first: Request) => this.#serve([first, ...arrived(this.#port)]))
    this.#send({ kind: 'ready' })
  }

  #serve(requests: readonly Request[]): void {
    for (const request of requests) {
      if (request.kind === 'taken') this.#untaken[request.large.to] -= request.large.characters
      if (request.kind !== 'calls') continue
      for (const call of request.calls) {
        if (!findOperation(call.name).reads) this.#writes.push(call)
        else this.#reads.getOrInsertComputed(call.args[0], () => []).push(call)
      }
    }
    const closing = requests.some(request => request.kind === 'close')
    const mostUntaken = closing ? Number.POSITIVE_INFINITY : MAX_UNTAKEN
    this.#answerReads(mostUntaken)
    this.#answerWrites(mostUntaken)
    for (const request of requests) {
      if (request.kind === 'stats') this.#send({ kind: 'stats', id: request.id, stats: this.#engine.stats })
    }
    if (!closing) return
    this.#engine.close()
    this.#port.close()
  }

  /** Small answers travel together. Large ones would fill the memory where the main thread has other things to do. */
  #answerReads(mostUntaken: number): void {
    let outcomes: NumberedOutcome[] = []
    let characters = 0
    const send = () => {
      if (outcomes.length === 0) return
      this.#sendOutcomes(outcomes, { to: 'reads', characters })
      outcomes = []
      characters = 0
    }
    while (this.#untaken.reads < mostUntaken) {
      const call = this.#nextRead()
      if (call === undefined) break
      const outcome = this.#read(call)
      outcomes.push(outcome)
      characters += outcome.ok ? countCharacters(outcome.value) : 0
      if (characters >= LARGE) send()
    }
    send()
  }

  #nextRead(): NumberedCall | undefined {
    const [first] = this.#reads
    if (first === undefined) return undefined
    const [about, calls] = first
    this.#reads.delete(about)
    const call = calls.shift()
    if (calls.length > 0) this.#reads.set(about, calls)
    return call
  }

  /** They keep their order, so all of them wait while large answers to writes are on their way. */
  #answerWrites(mostUntaken: number): void {
    while (this.#writes.length > 0 && this.#untaken.writes < mostUntaken) {
      const batch = this.#writes.slice(0, MAX_BATCH)
      const done = this.#engine.write(batch)
      this.#writes = this.#writes.slice(done.length)
      let characters = 0
      for (const outcome of done) characters += outcome.ok ? countCharacters(outcome.value) : 0
      const outcomes = done.map((outcome, index) => packed({ ...outcome, id: batch[index]!.id }))
      this.#sendOutcomes(outcomes, { to: 'writes', characters })
    }
  }

  #sendOutcomes(outcomes: readonly NumberedOutcome[], answers: LargeAnswers): void {
    const isLarge = answers.characters >= LARGE
    if (isLarge) this.#untaken[answers.to] += answers.characters
    this.#send({ kind: 'outcomes', outcomes, ...(isLarge ? { large: answers } : {}) })
  }

  #read(call: NumberedCall): NumberedOutcome {
    try {
      return { id: call.id, ok: true, value: this.#engine.read(call) }
    } catch (error) {
      return packed({ id: call.id, ok: false, error })
    }
  }

  #send(response: Response): void {
    this.#port.postMessage(response)
  }
}

function arrived(port: MessagePort): Request[] {
  const requests: Request[] = []
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
    requests.push(next.message as Request)
  }
  return requests
}

function packed(outcome: NumberedOutcome): NumberedOutcome {
  return outcome.ok ? outcome : { ...outcome, error: packError(outcome.error) }
}
