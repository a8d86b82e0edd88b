import { setImmediate as nextTurn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Body, Pieces, ReadingName } from '../../core/bodies/body-readings.ts'
import { AppError } from '../../core/errors.ts'
import { compileCacheEnvironment } from '../../disk/compile-cache.ts'
import { programFile } from '../../disk/package-files.ts'
import type { BodyParser } from '../../ports/body-parser.ts'
import { unpackError } from '../../store/engines/thread-messages.ts'
import { ThreadTurns, type ThreadTurnsLimits, type TurnsFull } from './thread-turns.ts'

/** The work on a body. */
export interface ReadingCall {
  readonly name: ReadingName
  readonly rest: readonly unknown[]
}

/** A message to a thread: the pieces of a body, and then the task with them, or with a text. */
export type ReadingRequest =
  | { readonly kind: 'piece'; readonly bytes: Uint8Array }
  | (ReadingCall & { readonly kind: 'read'; readonly text?: string })

/** An answer of a thread, in the order of the requests. */
export type ReadingAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: unknown }

/**
 * Two for one account, so that a large body does not hold up another, and one for others. More would take processors
 * from everything else. The bytes of one account bound its waiting bodies before their number does, unless they are
 * small.
 */
const LIMITS = { threads: 3, waiting: 2_048, waitingOfAll: 8_192 } as const
/** Default of the bytes that wait for the threads. */
const WAITING_BYTES = 256 * 1024 * 1024
/** A body of 20 MB makes at most some 500 MB of values. */
const HEAP_MB = 1_024
const PROGRAM = pathToFileURL(programFile('system/bodies/body-thread'))

/** Bytes that are passed to a thread in one turn of the loop. */
const TURN_BYTES = 1_048_576

interface Waiting extends PromiseWithResolvers<unknown> {
  readonly account: string
  readonly reading: ReadingCall
  readonly body: Body
}

/**
 * Reads large bodies in threads, which start when they are needed. Accounts take turns, and one thread is always for
 * accounts whose bodies no thread reads. A thread that runs out of memory loses only the body that it was reading;
 * the next body gets a new thread. Idle threads keep no process alive.
 */
export class BodyThreads implements BodyParser {
  readonly #program: URL
  readonly #turns: ThreadTurns<Waiting>
  readonly #threads = new Map<Worker, Waiting | null>()

  constructor(
    options: {
      /** Bytes of one account that may wait for a thread, at least those that its bodies may have in memory. */
      readonly waitingBytes?: number
      /** Other limits, for tests. */
      readonly limits?: Partial<ThreadTurnsLimits>
      /** Another program for the threads, for tests. */
      readonly program?: URL
    } = {},
  ) {
    const { waitingBytes = WAITING_BYTES, limits = {}, program = PROGRAM } = options
    this.#program = program
    this.#turns = new ThreadTurns({ ...LIMITS, waitingBytes, ...limits })
  }

  read: BodyParser['read'] = async (owner, name, body, ...rest) => {
    const account = owner ?? ''
    const waiting = { ...Promise.withResolvers<unknown>(), account, reading: { name, rest }, body }
    const full = this.#turns.add(account, waiting, bodySize(body))
    if (full !== null) throw fullError(full)
    this.#hand()
    return (await waiting.promise) as Awaited<ReturnType<BodyParser['read']>> as never
  }

  /** These threads for a store. @param ready is awaited with each body before its values are returned */
  whenReady(ready: () => Promise<void>): BodyParser {
    return {
      read: async (...asked) => {
        const [value] = await Promise.all([this.read(...asked), ready()])
        return value
      },
    }
  }

  #hand(): void {
    for (let waiting = this.#turns.take(); waiting !== null; waiting = this.#turns.take()) {
      const idle = [...this.#threads].find(([, reading]) => reading === null)?.[0]
      const thread = idle ?? this.#start()
      this.#threads.set(thread, waiting)
      thread.ref()
      void send(thread, waiting)
    }
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
      if (reading) this.#turns.leave(reading.account)
      // The transfer of the answer took its time; its use comes in another turn of the loop.
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
    if (reading !== null) this.#turns.leave(reading.account)
    reading?.reject(new AppError('unavailable', 'the body could not be read', { cause }))
    this.#hand()
  }
}

function bodySize(body: Body): number {
  return typeof body === 'string' ? body.length : body.reduce((bytes, piece) => bytes + piece.byteLength, 0)
}

function fullError(full: TurnsFull): AppError {
  return full === 'account'
    ? new AppError('rate_limited', 'too many large bodies of this account wait to be read', { retryAfterSeconds: 5 })
    : new AppError('unavailable', 'too many large bodies wait to be read')
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
  for (let start = 0; start < pieces.length; ) {
    let bytes = 0
    let end = start
    while (end < pieces.length && (bytes === 0 || bytes < TURN_BYTES)) bytes += pieces[end++]!.byteLength
    const block = new Uint8Array(bytes)
    let at = 0
    for (const piece of pieces.slice(start, end)) {
      block.set(piece, at)
      at += piece.byteLength
    }
    thread.postMessage({ kind: 'piece', bytes: block } satisfies ReadingRequest, [block.buffer])
    start = end
    await nextTurn()
  }
}
