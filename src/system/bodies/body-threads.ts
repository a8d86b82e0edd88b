import { setImmediate as nextTurn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Body, Pieces, ReadingName } from '../../core/bodies/body-readings.ts'
import { AppError } from '../../core/errors.ts'
import { compileCacheEnvironment } from '../../disk/compile-cache.ts'
import { programFile } from '../../disk/package-files.ts'
import type { BodyParser } from '../../ports/body-parser.ts'
import { unpackError } from '../../store/engines/thread-messages.ts'

/** What is to be done with a body. */
export interface Reading {
  readonly name: ReadingName
  readonly rest: readonly unknown[]
}

/** A message to a thread: the pieces of a body, and then what to do with them, or with a text. */
export type ReadingRequest =
  | { readonly kind: 'piece'; readonly bytes: Uint8Array }
  | (Reading & { readonly kind: 'read'; readonly text?: string })

/** What it answers, in the order in which it was asked. */
export type ReadingAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown }

/** Two, so that one large body does not hold up another; more would take the processors from everything else. */
const THREADS = 2
/** A body of 20 MB makes at most some 500 MB of values. */
const HEAP_MB = 1_024
const PROGRAM = pathToFileURL(programFile('system/bodies/body-thread'))

/** Bytes that are handed over in one turn of the loop. */
const TURN_BYTES = 1_048_576

/** How large bodies are read. */
export interface BodyThreadsOptions {
  /** Awaited before what was read is handed on. */
  readonly ready?: () => Promise<void>
  /** Another program for the threads, for tests. */
  readonly program?: URL
}

interface Waiting extends PromiseWithResolvers<unknown> {
  readonly reading: Reading
  readonly body: Body
}

/**
 * Reads large bodies in threads, which are started when the first one comes. What waits for a thread is bounded by the room
 * for bodies, in which each lies while it is read. A thread that runs out of memory takes only the body with it that it was
 * reading; the next body gets a new one. Idle ones keep no process alive.
 */
export class BodyThreads implements BodyParser {
  readonly #ready: () => Promise<void>
  readonly #program: URL
  readonly #line: Waiting[] = []
  readonly #threads = new Map<Worker, Waiting | null>()

  constructor({ ready = async () => {}, program = PROGRAM }: BodyThreadsOptions = {}) {
    this.#ready = ready
    this.#program = program
  }

  read: BodyParser['read'] = async (name, body, ...rest) => {
    const waiting = { ...Promise.withResolvers<unknown>(), reading: { name, rest }, body }
    this.#line.push(waiting)
    this.#hand()
    const [value] = await Promise.all([waiting.promise, this.#ready()])
    return value as Awaited<ReturnType<BodyParser['read']>> as never
  }

  #hand(): void {
    if (this.#line.length === 0) return
    const idle = [...this.#threads].find(([, reading]) => reading === null)?.[0]
    const thread = idle ?? (this.#threads.size < THREADS ? this.#start() : null)
    if (thread === null) return
    const waiting = this.#line.shift()!
    this.#threads.set(thread, waiting)
    thread.ref()
    void send(thread, waiting)
  }

  #start(): Worker {
    const thread = new Worker(this.#program, {
      name: 'bodies',
      env: compileCacheEnvironment(),
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    thread.on('message', (answer: ReadingAnswer) => {
      const reading = this.#threads.get(thread)
      this.#threads.set(thread, null)
      thread.unref()
      // Taking the answer over took its time; what is done with it comes in another turn of the loop.
      void nextTurn().then(() => {
        if (answer.ok) reading?.resolve(answer.value)
        else reading?.reject(unpackError(answer.error))
      })
      this.#hand()
    })
    thread.on('error', error => this.#ended(thread, error))
    thread.on('exit', () => this.#ended(thread, null))
    this.#threads.set(thread, null)
    return thread
  }

  #ended(thread: Worker, cause: unknown): void {
    const reading = this.#threads.get(thread)
    if (reading === undefined) return
    this.#threads.delete(thread)
    reading?.reject(new AppError('unavailable', 'the body could not be read', { cause }))
    this.#hand()
  }
}

async function send(thread: Worker, { reading, body }: Waiting): Promise<void> {
  if (typeof body === 'string') {
    thread.postMessage({ kind: 'read', ...reading, text: body } satisfies ReadingRequest)
    return
  }
  await sendPieces(thread, body)
  thread.postMessage({ kind: 'read', ...reading } satisfies ReadingRequest)
}

async function sendPieces(thread: Worker, pieces: Pieces): Promise<void> {
  for (let from = 0; from < pieces.length; ) {
    let bytes = 0
    let to = from
    while (to < pieces.length && (bytes === 0 || bytes < TURN_BYTES)) bytes += pieces[to++]!.byteLength
    const block = new Uint8Array(bytes)
    let at = 0
    for (const piece of pieces.slice(from, to)) {
      block.set(piece, at)
      at += piece.byteLength
    }
    thread.postMessage({ kind: 'piece', bytes: block } satisfies ReadingRequest, [block.buffer])
    from = to
    await nextTurn()
  }
}
