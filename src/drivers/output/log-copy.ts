/**
 * Copies the output of a worker that others keep, such as a container engine, to the log of its worker. A note beside the log says how far it has come, so that a server that
 * was killed in the middle goes on where it stopped: nothing is missing, and nothing is there twice.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import type { Clock } from '../../ports/clock.ts'
import { BEGIN, type LogEntry, LogPosition, type OutputPlace } from './log-position.ts'

/** How far an output was copied. */
interface Note extends OutputPlace {
  /** The size of the log behind it, in bytes. */
  readonly size: number
}

/** What {@link LogCopy} needs. */
export interface LogCopyOptions {
  readonly clock: Clock
  /**
   * Asks for the output from a second since 1970 on. The entries come as they are written, until the signal or until the output is over.
   * Rejects when they cannot be had now.
   */
  readonly read: (sinceS: number, signal: AbortSignal) => Promise<AsyncIterable<readonly LogEntry[]>>
  /** Pause before the output is asked for again, in ms; 500 unless given. */
  readonly pauseMs?: () => number
  /** Where the output goes. */
  readonly logFile: string
  readonly noteFile: string
}

const NOTE_MS = 200
const AGAIN_MS = 500
/** Size of the end of the output that is searched for the message of an init that could not start a program. */
const TAIL_BYTES = 1_024

/** The copying of one output; goes on until the worker has ended, across absences of whoever keeps it. */
export class LogCopy {
  readonly #options: LogCopyOptions
  #position = new LogPosition(BEGIN)
  /** The size of the log behind what was copied. */
  #size = 0
  #notedMs = Number.NEGATIVE_INFINITY
  #tail = Buffer.alloc(0)
  #closed = new AbortController()
  /** Whether the worker has ended: then a stream that ends was read to its end. */
  #over = false
  readonly #finished: Promise<void>
  #wake: () => void = () => {}

  constructor(options: LogCopyOptions) {
    this.#options = options
    this.#finished = this.#run()
  }

  /** The last output that was copied. */
  get tail(): string {
    return this.#tail.toString()
  }

  /** The worker has ended: resolves when all of its output is copied, after that time at the latest. */
  async finish(forMs: number): Promise<void> {
    this.#over = true
    this.#wake()
    const waited = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(forMs, waited.resolve)
    await Promise.race([this.#finished, waited.promise])
    cancel()
    void this.close()
  }

  /** Asks for the output again at once, such as after an absence. */
  resume(): void {
    this.#wake()
  }

  /** Stops copying; another server may go on. Resolves when nothing is written any more. */
  close(): Promise<void> {
    this.#closed.abort()
    this.#wake()
    return this.#finished
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed
    try {
      const { size, ...place } = await readNote(this.#options.noteFile)
      this.#position = new LogPosition(place)
      this.#size = size
      for (;;) {
        const wasOver = this.#over
        const read = await this.#copy().catch(() => false)
        if (signal.aborted || (wasOver && read)) break
        if (!this.#over) await this.#pause()
        else if (!read) break
      }
    } finally {
      if (this.#position.place.last !== '') this.#keep(true)
    }
  }

  /** Copies what there is, and what comes until it ends. */
  async #copy(): Promise<boolean> {
    const { read, logFile } = this.#options
    const log = await open(logFile, 'a', 0o600)
    try {
      const pieces = await read(this.#position.place.since, this.#closed.signal)
      // What was written after the last note is there already.
      let skip = Math.max(0, (await log.stat()).size - this.#size)
      this.#position.begin()
      for await (const entries of pieces) {
        const fresh = entries.filter(entry => this.#position.isNew(entry))
        skip = await this.#write(log, fresh, skip)
      }
      return true
    } finally {
      await log.close()
    }
  }

  /** @param skip how much of the output is in the log already. Gives how much of that is left */
  async #write(log: FileHandle, entries: readonly LogEntry[], skip: number): Promise<number> {
    if (entries.length === 0) return skip
    const text = Buffer.concat(entries.map(entry => entry.text))
    const skipped = Math.min(skip, text.length)
    const left = skip - skipped
    if (skipped < text.length) await log.writeFile(text.subarray(skipped))
    this.#tail = Buffer.concat([this.#tail, text]).subarray(-TAIL_BYTES)
    const before = this.#size
    this.#size = Math.max(0, (await log.stat()).size - left)
    // The log was cut meanwhile, so that the old size says nothing any more.
    this.#keep(this.#size < before + text.length)
    return left
  }

  #keep(now: boolean): void {
    const { clock, noteFile } = this.#options
    if (!now && clock.monotonic() - this.#notedMs < NOTE_MS) return
    this.#notedMs = clock.monotonic()
    try {
      writeFileSync(`${noteFile}.new`, JSON.stringify({ ...this.#position.place, size: this.#size }), { mode: 0o600 })
      renameSync(`${noteFile}.new`, noteFile)
    } catch {
      // A full disk costs the note; some lines may then be there twice after a restart.
    }
  }

  #pause(): Promise<void> {
    return new Promise(resolve => {
      const { clock, pauseMs } = this.#options
      const cancel = clock.after(pauseMs?.() ?? AGAIN_MS, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }
}

/** Removes the note of an output. */
export function forgetCopy(noteFile: string): void {
  rmSync(noteFile, { force: true })
  rmSync(`${noteFile}.new`, { force: true })
}

async function readNote(file: string): Promise<Note> {
  try {
    const { since, count, first, last, size } = JSON.parse(await readFile(file, 'utf8')) as Note
    const isNote = [since, count, size].every(Number.isInteger) && [first, last].every(text => typeof text === 'string')
    return isNote ? { since, count, first, last, size } : { ...BEGIN, size: 0 }
  } catch {
    return { ...BEGIN, size: 0 }
  }
}
