/**
 * Outputs of workers, each in a folder of its own. Programs append with an `OutputWriter`, which also bounds the
 * output.
 */
import { statSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { WorkerId } from '../../core/ids.ts'
import { ensureFolder } from '../../disk/durable-file.ts'
import { OUTPUT_BYTES, partBytes } from '../../disk/worker-output.ts'
import type { Clock } from '../../ports/clock.ts'
import type { LogLine, LogPage, LogReader, PlacedLine, WorkerLogs } from '../../ports/worker-logs.ts'
import { type EndedLine, firstLines, LineAssembler, MAX_LINE_BYTES } from './worker-log-lines.ts'
import { BLOCK_BYTES, folderStamp, LogOutput } from './worker-log-output.ts'

const POLL_MS = 200
const PAGE_BYTES = 64 * 1024
/** Lines from which a page is full: a worker may print nothing but newlines. */
const PAGE_LINES = 4_000
/** Maximum number of bytes that `since` reads back. */
const SINCE_BYTES = 256 * 1024
/** Maximum size of the blocks in which the beginning of the last lines is searched. */
const MAX_SEARCH_BYTES = 1024 * 1024
/**
 * Time for which an output is kept after a request for its folder: its worker may be missing in the list of those to
 * keep.
 */
const NEW_WORKER_MS = 60_000
/** Outputs that are looked at in one turn of the event loop: the first look at one takes a tenth of a millisecond. */
const LOOKS = 50
/** Limit of outputs whose journals are in memory. */
const MAX_OPEN = 256

/** Options of {@link createWorkerLogs}. */
export interface WorkerLogsOptions {
  /** The folder of the outputs; created if it is missing. */
  readonly folder: string
  readonly clock: Clock
  /** The limit that writers of the outputs keep; the usual one by default. */
  readonly maxBytes?: number
}

/**
 * Outputs in files that only their owner can read. `trim` removes no output whose folder was
 * asked for in the last minute.
 */
export function createWorkerLogs({ folder, clock, maxBytes = OUTPUT_BYTES }: WorkerLogsOptions): WorkerLogs {
  ensureFolder(folder)
  const outputs = new Outputs(folder, maxBytes, clock)
  const watches = new Watches(outputs, clock)
  const askedAt = new Map<string, number>()

  return {
    folder(worker) {
      askedAt.set(worker, clock.monotonic())
      return outputs.folderPath(worker)
    },
    tail: (worker, lines) => readTail(outputs, worker, lines),
    reader: (worker, from) => new FileReader(outputs, worker, from),
    startOfLast: (worker, lines) => startOfLast(outputs, worker, lines),
    async startOfTime(worker, tsMs) {
      const output = outputs.get(worker)
      output.refresh()
      return output.startAt(tsMs)
    },
    mark: (worker, moment) => outputs.mark(worker, moment),
    watch: (worker, listener) => watches.add(worker, listener),
    since: (worker, from) => readSince(outputs, worker, from),
    async trim(keep) {
      for (const [worker, askedAtMs] of askedAt) {
        if (clock.monotonic() - askedAtMs >= NEW_WORKER_MS) askedAt.delete(worker)
      }
      for (const [at, worker] of (await readdir(folder)).entries()) {
        if (at % LOOKS === LOOKS - 1) await nextTurn()
        if (keep.has(worker as WorkerId) || askedAt.has(worker)) outputs.measure(worker as WorkerId)
        else await outputs.remove(worker)
      }
      return outputs.bytes
    },
    async measure(workers) {
      const bytes = new Map<WorkerId, number>()
      for (const [at, worker] of workers.entries()) {
        if (at % LOOKS === LOOKS - 1) await nextTurn()
        outputs.measure(worker)
        bytes.set(worker, outputs.bytes.get(worker) ?? 0)
      }
      return bytes
    },
    async shrink(limits) {
      for (const [worker, most] of limits) {
        if (most === 0) await outputs.remove(worker)
        else await outputs.cut(worker, most)
      }
    },
  }
}

/** Values of an output that has not changed. */
interface Measured {
  /** The last file. */
  readonly file: string
  readonly size: number
  /** Time of the last change of the names in the folder. */
  readonly stamp: string
}

/** The outputs in a folder, those used last in memory. */
class Outputs {
  readonly #folder
  readonly #maxBytes
  readonly #clock
  readonly #open = new Map<string, LogOutput>()
  /** The last file of each output and its size, at the last trim. */
  readonly #measured = new Map<string, Measured>()
  /** Bytes of all files of an output together at the last trim. */
  readonly bytes = new Map<WorkerId, number>()

  constructor(folder: string, maxBytes: number, clock: Clock) {
    this.#folder = folder
    this.#maxBytes = maxBytes
    this.#clock = clock
  }

  folderPath(worker: string): string {
    return join(this.#folder, worker)
  }

  get(worker: string): LogOutput {
    const opened = this.#open.get(worker)
    const output = opened ?? new LogOutput(this.folderPath(worker), this.#maxBytes, () => this.#clock.now())
    this.#open.delete(worker)
    this.#open.set(worker, output)
    const [oldest] = this.#open.keys()
    if (this.#open.size > MAX_OPEN) this.#open.delete(oldest!)
    return output
  }

  /** Marks a moment in an output, unless that would push others out of memory. */
  mark(worker: string, moment: 'begin' | 'end'): void {
    if (!this.#open.has(worker) && this.#open.size >= MAX_OPEN) return
    this.get(worker).mark(moment)
  }

  /**
   * Records the growth of an output, and its size. Two looks for an unchanged output, since there may be thousands.
   */
  measure(worker: WorkerId): void {
    const measured = this.#measured.get(worker)
    if (measured !== undefined && measured.size < partBytes(this.#maxBytes) && this.#isAsMeasured(worker, measured))
      return
    const output = this.get(worker)
    const stamp = folderStamp(output.folder, this.#clock.now())
    output.refresh()
    this.bytes.set(worker, output.bytesOnDisk())
    const file = output.lastFile
    if (file === null || stamp === null) this.#measured.delete(worker)
    else this.#measured.set(worker, { file, size: fileSize(file), stamp })
  }

  #isAsMeasured(worker: WorkerId, { file, size, stamp }: Measured): boolean {
    return fileSize(file) === size && folderStamp(this.folderPath(worker), this.#clock.now()) === stamp
  }

  /** Cuts an output so that its files have at most this many bytes, unless it grows in the meantime. */
  async cut(worker: WorkerId, most: number): Promise<void> {
    const output = this.get(worker)
    await output.cut(most)
    this.#measured.delete(worker)
    this.bytes.set(worker, output.bytesOnDisk())
  }

  async remove(worker: string): Promise<void> {
    this.#open.delete(worker)
    this.#measured.delete(worker)
    this.bytes.delete(worker as WorkerId)
    await rm(this.folderPath(worker), { recursive: true, force: true, maxRetries: 5 })
  }
}

function fileSize(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? -1
}

/** Polls the watched outputs, each once for all its listeners. */
class Watches {
  readonly #outputs
  readonly #clock
  readonly #watched = new Map<WorkerId, { end: number; readonly listeners: Set<() => void> }>()
  #polls = false

  constructor(outputs: Outputs, clock: Clock) {
    this.#outputs = outputs
    this.#clock = clock
  }

  add(worker: WorkerId, listener: () => void): () => void {
    const watched = this.#watched.get(worker) ?? { end: this.#outputs.get(worker).refresh(), listeners: new Set() }
    this.#watched.set(worker, watched)
    // The same function may watch twice.
    const ownListener = () => listener()
    watched.listeners.add(ownListener)
    this.#pollLater()
    return () => {
      watched.listeners.delete(ownListener)
      if (watched.listeners.size === 0 && this.#watched.get(worker) === watched) this.#watched.delete(worker)
    }
  }

  #pollLater(): void {
    if (this.#polls || this.#watched.size === 0) return
    this.#polls = true
    this.#clock.after(POLL_MS, () => {
      this.#polls = false
      for (const [worker, watched] of this.#watched) {
        const end = this.#end(worker) ?? watched.end
        if (end === watched.end) continue
        watched.end = end
        for (const listener of [...watched.listeners]) listener()
      }
      this.#pollLater()
    })
  }

  /** Null for a file that cannot be read; its readers get the error. */
  #end(worker: WorkerId): number | null {
    try {
      return this.#outputs.get(worker).refresh()
    } catch {
      return null
    }
  }
}

class FileReader implements LogReader {
  readonly #outputs
  readonly #worker
  readonly #assembler = new LineAssembler()
  /** The position up to which lines were returned. */
  #behind: number
  /** The position of the next block; null before the first. */
  #position: number | null = null

  constructor(outputs: Outputs, worker: string, position: number) {
    this.#outputs = outputs
    this.#worker = worker
    this.#behind = position
  }

  async next(how: 'open' | 'over' = 'open'): Promise<LogPage> {
    const output = this.#outputs.get(this.#worker)
    // A reader that continues comes often, and sees new output at the next poll of a watch.
    const goesOn = this.#position !== null && how === 'open'
    const end = goesOn ? output.recentEnd(this.#position!) : output.refresh()
    let missed = 0
    if (this.#position === null) {
      this.#behind = Math.min(this.#behind, end)
      missed = Math.max(0, output.oldest - this.#behind)
      this.#position = await lineStart(output, Math.max(this.#behind, output.oldest))
    }
    const lines: EndedLine[] = []
    let position = this.#position
    // A line may be as long as the whole kept output: it is read in larger blocks.
    let most = BLOCK_BYTES
    for (let bytesLeft = PAGE_BYTES; bytesLeft > 0 && position < end && lines.length < PAGE_LINES; ) {
      const { block: read, start } = await output.read(position, most)
      const block = firstLines(read, PAGE_LINES)
      if (start > position) {
        this.#assembler.reset()
        missed += start - position
      }
      position = start + block.length
      const completed = this.#assembler.push(block, start)
      lines.push(...completed)
      if (lines.length > 0) bytesLeft -= block.length
      else most = Math.min(2 * most, MAX_SEARCH_BYTES)
      if (block.length === 0) break
    }
    this.#position = position
    const hasMore = position < end
    if (how === 'over' && !hasMore) lines.push(...this.#assembler.finish(position))
    const newLines = lines.filter(line => line.position > this.#behind)
    this.#behind = newLines.at(-1)?.position ?? this.#behind
    const placed = newLines.map(({ end: endsAt, ...line }) => ({ ...line, tsMs: output.timeAt(endsAt) }))
    return { lines: placed, position: this.#behind, more: hasMore, missed }
  }
}

/** The beginning of the line that contains a position, unless it is too far before it. */
async function lineStart(output: LogOutput, position: number): Promise<number> {
  const reach = Math.max(output.oldest, position - MAX_LINE_BYTES - 2)
  for (let end = position; end > reach; ) {
    const { block, start } = await blockBefore(output, end, reach)
    const newline = block.lastIndexOf(0x0a)
    if (newline !== -1) return start + newline + 1
    if (start >= end || block.length === 0) break
    end = start
  }
  return reach === output.oldest ? reach : position
}

/** The block before a position, from one or both of the files. */
async function blockBefore(
  output: LogOutput,
  end: number,
  reach: number,
  most = BLOCK_BYTES,
): Promise<{ block: Buffer; start: number }> {
  const blockStart = Math.max(reach, end - most)
  let joined = await output.read(blockStart, end - blockStart)
  // The block may be in both files; the next call returns the bytes before the second.
  while (joined.start + joined.block.length < end && joined.block.length > 0) {
    const next = await output.read(joined.start + joined.block.length, end - joined.start - joined.block.length)
    if (next.block.length === 0) break
    joined =
      next.start === joined.start + joined.block.length
        ? { block: Buffer.concat([joined.block, next.block]), start: joined.start }
        : next
  }
  return joined
}

async function startOfLast(outputs: Outputs, worker: string, lines: number): Promise<number> {
  const output = outputs.get(worker)
  let linesLeft = lines + 1
  // A line may be as long as the whole kept output: then larger blocks are inspected.
  let most = BLOCK_BYTES
  for (let end = output.refresh(); end > output.oldest; most = Math.min(2 * most, MAX_SEARCH_BYTES)) {
    const { block, start } = await blockBefore(output, end, output.oldest, most)
    for (
      let newline = block.lastIndexOf(0x0a);
      newline !== -1;
      newline = newline === 0 ? -1 : block.lastIndexOf(0x0a, newline - 1)
    ) {
      linesLeft -= 1
      if (linesLeft === 0) return start + newline + 1
    }
    if (start >= end || block.length === 0) break
    end = start
  }
  return output.oldest
}

async function readTail(outputs: Outputs, worker: string, lines: number): Promise<LogLine[]> {
  if (lines <= 0) return []
  const end = outputs.get(worker).refresh()
  const reader = new FileReader(outputs, worker, await startOfLast(outputs, worker, lines))
  let tail: LogLine[] = []
  for (let hasMore = true; hasMore; ) {
    const page = await reader.next('over')
    tail.push(...page.lines.map(bare))
    if (tail.length > 2 * lines) tail = tail.slice(-lines)
    hasMore = page.more && page.position < end
  }
  return tail.slice(-lines)
}

async function readSince(
  outputs: Outputs,
  worker: string,
  from: number | null,
): Promise<{ lines: LogLine[]; position: number }> {
  const output = outputs.get(worker)
  const end = output.refresh()
  const first = Math.max(from ?? 0, end - SINCE_BYTES)
  const reader = new FileReader(outputs, worker, first)
  const lines: LogLine[] = []
  for (;;) {
    const page = await reader.next()
    lines.push(...page.lines.map(bare))
    // The output may grow faster than it is read.
    if (!page.more || page.position >= end) return { lines, position: page.position }
  }
}

function bare({ position: _position, tsMs: _tsMs, ...line }: PlacedLine): LogLine {
  return line
}
