/**
 * Copies the output of a worker that others keep, such as a container engine, to the log of its worker. A note beside
 * the log has the copied position, so that a server that was killed in the middle goes on where it stopped: nothing
 * is missing, and nothing is there twice.
 */
import { rmSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import type { ByteBudget, ByteRate } from '../../core/byte-budget.ts'
import { OutputWriter } from '../../disk/worker-output.ts'
import type { Clock } from '../../ports/clock.ts'
import { BEGIN, type LogEntry, LogPosition, type OutputPlace } from './log-position.ts'
import { LoopPause } from './loop-pause.ts'

/** Place up to which an output was copied. */
interface Note extends OutputPlace {
  /** The end of the log behind it. */
  readonly end: number
}

/** Reading rate of all copies of a driver together: the event loop of the server reads them, and has more to do. */
export const COPY_RATE: ByteRate = { bytesPerSecond: 8 * 1024 * 1024, burstBytes: 8 * 1024 * 1024 }

/** Maximum delay of a note behind the log; that part is read again. */
const NOTE_MS = 1_000
/**
 * Pause behind small pieces that come often: engines send each line by itself, and to write each by itself would be
 * most of the work.
 */
const GATHER_MS = 100
/** Maximum number of pieces in that time that are written as they come. */
const AT_ONCE = 16
const SMALL_BYTES = 32 * 1024
const RETRY_MS = 500
/** Size of the end of the output that is searched for the message of an init that could not start a program. */
const TAIL_BYTES = 1_024
/** Cost of reading an entry, in bytes: output may be nothing but ends of lines. */
const ENTRY_COST = 256

/** The copying of one output; goes on until the worker has ended, across absences of whoever keeps it. */
export class LogCopy {
  readonly #options
  #position = new LogPosition(BEGIN)
  /** The end of the log after the copied part. */
  #end = 0
  #notedMs = Number.NEGATIVE_INFINITY
  #tail = Buffer.alloc(0)
  #closed = new AbortController()
  /** True once the worker has ended: a stream that ends then was read to its end. */
  #over = false
  readonly #finished: Promise<void>
  readonly #pause

  constructor(options: {
    readonly clock: Clock
    /**
     * Asks for the output from a second since 1970 on. The entries come as they are written, until the signal or until
     * the output is over. Rejects when they cannot be read now.
     */
    readonly read: (sinceS: number, signal: AbortSignal) => Promise<AsyncIterable<readonly LogEntry[]>>
    /** Pause before the output is asked for again, in ms; 500 by default. */
    readonly pauseMs?: () => number
    /** Reading rate of all copies together: one reads on when its last piece was let through. */
    readonly budget: ByteBudget
    /** The folder of the log. */
    readonly logFolder: string
    readonly noteFile: string
  }) {
    this.#options = options
    this.#pause = new LoopPause(options.clock)
    this.#finished = this.#run()
  }

  /** The last output that was copied. */
  get tail(): string {
    return this.#tail.toString()
  }

  /** The worker has ended: resolves when all of its output is copied, after that time at the latest. */
  async finish(forMs: number): Promise<void> {
    this.#over = true
    this.#pause.wake()
    const deadline = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(forMs, deadline.resolve)
    await Promise.race([this.#finished, deadline.promise])
    cancel()
    void this.close()
  }

  /** Asks for the output again at once, such as after an absence. */
  resume(): void {
    this.#pause.wake()
  }

  /** Stops copying; another server may go on. Resolves after the last write. */
  close(): Promise<void> {
    this.#closed.abort()
    this.#pause.close()
    return this.#finished
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed
    try {
      const { end, ...place } = await readNote(this.#options.noteFile)
      this.#position = new LogPosition(place)
      this.#end = end
      for (;;) {
        const wasOver = this.#over
        const read = await this.#copy().catch(() => false)
        if (signal.aborted || (wasOver && read)) break
        if (!this.#over) await this.#pause.wait(this.#options.pauseMs?.() ?? RETRY_MS)
        else if (!read) break
      }
    } finally {
      if (this.#position.place.last !== '') await this.#keep(true)
    }
  }

  /** Copies the present output, and new output until its end. */
  async #copy(): Promise<boolean> {
    const { read, logFolder, budget, clock } = this.#options
    const log = await OutputWriter.open(logFolder)
    try {
      const pieces = await read(this.#position.place.since, this.#closed.signal)
      // The log includes the output after the last note.
      let skip = Math.max(0, log.end - this.#end)
      this.#position.begin()
      let [sinceMs, pieceCount] = [Number.NEGATIVE_INFINITY, 0]
      for await (const entries of pieces) {
        const fresh = entries.filter(entry => this.#position.isNew(entry))
        skip = await this.#write(log, fresh, skip)
        const bytes = entries.reduce((sum, { text }) => sum + text.length, 0)
        await budget.take(bytes + entries.length * ENTRY_COST)
        const nowMs = clock.monotonic()
        if (nowMs - sinceMs >= GATHER_MS) [sinceMs, pieceCount] = [nowMs, 0]
        pieceCount += 1
        if (bytes < SMALL_BYTES && pieceCount > AT_ONCE && !this.#over) await this.#pause.wait(GATHER_MS)
      }
      return true
    } finally {
      await log.close()
    }
  }

  /** @param skip bytes of the output that are in the log already @returns those of them that are left to skip */
  async #write(log: OutputWriter, entries: readonly LogEntry[], skip: number): Promise<number> {
    if (entries.length === 0) return skip
    const text = Buffer.concat(entries.map(entry => entry.text))
    const skipped = Math.min(skip, text.length)
    const bytesToSkip = skip - skipped
    if (skipped < text.length) await log.write(text.subarray(skipped))
    this.#tail = Buffer.concat([this.#tail, text.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES)
    this.#end = log.end - bytesToSkip
    await this.#keep(false)
    return bytesToSkip
  }

  async #keep(isForced: boolean): Promise<void> {
    const { clock, noteFile } = this.#options
    if (!isForced && clock.monotonic() - this.#notedMs < NOTE_MS) return
    this.#notedMs = clock.monotonic()
    try {
      await writeFile(`${noteFile}.new`, JSON.stringify({ ...this.#position.place, end: this.#end }), { mode: 0o600 })
      await rename(`${noteFile}.new`, noteFile)
    } catch {
      // A full disk costs the note; some lines may then be there twice after a restart.
    }
  }
}

/** Removes the note of an output. */
export function forgetCopy(noteFile: string): void {
  rmSync(noteFile, { force: true })
  rmSync(`${noteFile}.new`, { force: true })
}

async function readNote(file: string): Promise<Note> {
  try {
    const { since, count, first, last, end } = JSON.parse(await readFile(file, 'utf8')) as Note
    const isNote = [since, count, end].every(Number.isInteger) && [first, last].every(text => typeof text === 'string')
    return isNote ? { since, count, first, last, end } : { ...BEGIN, end: 0 }
  } catch {
    return { ...BEGIN, end: 0 }
  }
}
