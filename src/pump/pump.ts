/**
 * Writes the output of workers from their pipes to their files. A worker that prints faster than the common limit
 * waits in its own write.
 */
import { closeSync, constants, openSync, readdirSync, readSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { type BudgetClock, ByteBudget, type ByteRate } from '../core/byte-budget.ts'
import { OUTPUT_BYTES, OutputWriter } from '../disk/worker-output.ts'

/**
 * Limit of the output of all workers together: a multiple of what people read, and little for a disk and a processor.
 */
const PUMP_RATE: ByteRate = { bytesPerSecond: 16 * 1024 * 1024, burstBytes: 32 * 1024 * 1024 }

/** Size of a pipe: a shorter read emptied it. */
const PIPE_BYTES = 64 * 1024
/** Pause after a read that emptied the pipe, so that lines that arrive one by one are written together. */
const GATHER_MS = 20

/** The pipes of a folder. */
export class Pump {
  readonly #options
  readonly #budget
  readonly #open = new Map<string, OutputPipe>()

  constructor(options: {
    /** The folder of the pipes; exists. */
    readonly pipes: string
    /** The folder of the outputs, each in a folder of its own named after its worker. */
    readonly logs: string
    readonly clock: BudgetClock
    readonly rate?: ByteRate
    readonly maxBytes?: number
  }) {
    this.#options = options
    this.#budget = new ByteBudget(options.rate ?? PUMP_RATE, options.clock)
  }

  /** True while no worker has a pipe. */
  get idle(): boolean {
    return this.#open.size === 0
  }

  /** Opens pipes that are new, and closes those that were removed. @throws when the folder of the pipes is gone */
  look(): void {
    const { pipes, logs, clock, maxBytes } = this.#options
    // The name of a draft begins with a dot, unlike that of a worker.
    const workers = new Set(readdirSync(pipes).filter(name => !name.startsWith('.')))
    for (const [worker, pipe] of this.#open) if (!workers.has(worker)) pipe.close()
    for (const worker of workers) {
      if (this.#open.has(worker)) continue
      const parts = { pipe: join(pipes, worker), folder: join(logs, worker), maxBytes: maxBytes ?? OUTPUT_BYTES }
      const pipe = openPipe({ ...parts, budget: this.#budget, clock })
      if (pipe === null) continue
      this.#open.set(worker, pipe)
      void pipe.run().finally(() => this.#open.delete(worker))
    }
  }
}

interface PipeParts {
  /** The path of the pipe. */
  readonly pipe: string
  /** The folder of the output. */
  readonly folder: string
  readonly maxBytes: number
  readonly budget: ByteBudget
  readonly clock: BudgetClock
}

/** Null for a pipe that was removed. */
function openPipe(parts: PipeParts): OutputPipe | null {
  try {
    return new OutputPipe(parts, openSync(parts.pipe, constants.O_RDONLY | constants.O_NONBLOCK))
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw thrown
  }
}

/** The pipe of one worker. */
class OutputPipe {
  readonly #parts
  readonly #fd
  #socket: Socket | null = null
  #isClosed = false
  /** Number of bytes that could not be written since the last write, and the error code. */
  #lost = { bytes: 0, code: '' }

  constructor(parts: PipeParts, fd: number) {
    this.#parts = parts
    this.#fd = fd
  }

  /** Writes until no process has the pipe open, and then removes it. */
  async run(): Promise<void> {
    const { pipe, budget, clock } = this.#parts
    let writer: OutputWriter | null = null
    try {
      for await (const bytes of this.#pieces()) {
        writer = await this.#write(writer, bytes)
        await budget.take(bytes.length)
        if (bytes.length < PIPE_BYTES) await new Promise<void>(resolve => clock.after(GATHER_MS, resolve))
      }
      rmSync(pipe, { force: true })
    } catch (thrown) {
      // The output of a removed pipe has no reader.
      if (!this.#isClosed) throw thrown
    } finally {
      await writer?.close().catch(() => {})
    }
  }

  /** Closes a removed pipe. */
  close(): void {
    this.#isClosed = true
    this.#socket?.destroy()
  }

  async *#pieces(): AsyncGenerator<Buffer> {
    const first = readNow(this.#fd)
    // The end of a pipe that nobody has open is no event, unless a process had it open since it was opened here.
    if (first?.length === 0) return closeSync(this.#fd)
    // Output of a pause has to stay in the pipe, of which the next read takes all, and not in here as one piece a
    // line.
    const options = { fd: this.#fd, readable: true, writable: false, readableHighWaterMark: 1 }
    this.#socket = new Socket(options)
    if (first !== null) yield first
    for await (const bytes of this.#socket) yield bytes as Buffer
  }

  /**
   * Counts bytes that cannot be written, for a line that reports them later: a worker does not stop for a full disk.
   */
  async #write(opened: OutputWriter | null, bytes: Buffer): Promise<OutputWriter | null> {
    const { folder, maxBytes } = this.#parts
    let writer = opened
    let bytesLeft = bytes.length
    try {
      writer ??= await OutputWriter.open(folder, maxBytes)
      if (this.#lost.bytes > 0) {
        await writer.write(Buffer.from(`\nrunyard: ${this.#lost.bytes} bytes are missing here (${this.#lost.code})\n`))
        this.#lost.bytes = 0
      }
      const end = writer.end + bytes.length
      bytesLeft = 0
      await writer.write(bytes).catch(thrown => {
        bytesLeft = Math.max(0, end - writer!.end)
        throw thrown
      })
    } catch (thrown) {
      this.#lost = {
        bytes: this.#lost.bytes + bytesLeft,
        code: (thrown as NodeJS.ErrnoException).code ?? 'unknown problem',
      }
    }
    return writer
  }
}

/** Bytes that can be read without a wait: empty at the end, null before the next bytes. */
function readNow(fd: number): Buffer | null {
  const bytes = Buffer.alloc(PIPE_BYTES)
  try {
    return bytes.subarray(0, readSync(fd, bytes))
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EAGAIN') return null
    throw thrown
  }
}
