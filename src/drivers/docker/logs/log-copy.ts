/**
 * Copies the output of a container to the log of its worker. A note beside the log says how far it has come, so that a server that
 * was killed in the middle goes on where it stopped: nothing is missing, and nothing is there twice.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import type { Clock } from '../../../ports/clock.ts'
import type { Engine } from '../engine.ts'
import { FrameReader, type LogEntry } from './log-frames.ts'
import { BEGIN, LogPosition, type OutputPlace } from './log-position.ts'

/** How far an output was copied. */
interface Note extends OutputPlace {
  /** The size of the log behind it, in bytes. */
  readonly size: number
}

/** What {@link LogCopy} needs. */
export interface LogCopyOptions {
  readonly engine: Engine
  readonly clock: Clock
  readonly container: string
  /** Where the output goes. */
  readonly logFile: string
  readonly noteFile: string
}

const NOTE_MS = 200
const AGAIN_MS = 500
/** Size of the end of the output that is searched for the message of an init that could not start a program. */
const TAIL_BYTES = 1_024

/** The copying of one output; goes on until the container has ended, across absences of the engine. */
export class LogCopy {
  readonly #options: LogCopyOptions
  #position = new LogPosition(BEGIN)
  /** The size of the log behind what was copied. */
  #size = 0
  #notedMs = Number.NEGATIVE_INFINITY
  #tail = Buffer.alloc(0)
  #closed = new AbortController()
  /** Whether the container has ended: then a stream that ends was read to its end. */
  #over = false
  readonly #finished: Promise<void>
  #wake: () => void = () => {}

  constructor(options: LogCopyOptions) {
    this.#options = options
    this.#finished = this.#run()
  }

  /** The last output of the container that was copied. */
  get tail(): string {
    return this.#tail.toString()
  }

  /** The container has ended: resolves when all of its output is copied, after that time at the latest. */
  async finish(forMs: number): Promise<void> {
    this.#over = true
    this.#wake()
    const waited = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(forMs, waited.resolve)
    await Promise.race([this.#finished, waited.promise])
    cancel()
    void this.close()
  }

  /** Reads the output again after the engine was away. */
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

  /** Copies what there is, and what comes until the engine ends the stream. */
  async #copy(): Promise<boolean> {
    const { engine, container, logFile } = this.#options
    const stream = await engine.stream({
      method: 'GET',
      path: `/containers/${container}/logs`,
      signal: this.#closed.signal,
      query: { stdout: true, stderr: true, follow: true, timestamps: true, since: this.#position.place.since },
    })
    const log = await open(logFile, 'a', 0o600)
    try {
      // What was written after the last note is there already.
      let skip = Math.max(0, (await log.stat()).size - this.#size)
      this.#position.begin()
      const frames = new FrameReader()
      for await (const chunk of stream) {
        const fresh = frames.push(chunk).filter(entry => this.#position.isNew(entry))
        skip = await this.#write(log, fresh, skip)
      }
      return true
    } finally {
      stream.destroy()
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
      const cancel = this.#options.clock.after(AGAIN_MS, resolve)
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
