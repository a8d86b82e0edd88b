/** Workers append to `<folder>/<worker>.log` themselves. worker-log-output.ts describes the files beside it. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkerId } from '../../core/ids.ts'
import { ensureFolder } from '../../disk/durable-file.ts'
import type { Clock } from '../../ports/clock.ts'
import type { LogLine, LogPage, LogReader, PlacedLine, WorkerLogs } from '../../ports/worker-logs.ts'
import { type EndedLine, firstLines, LineAssembler, MAX_LINE_BYTES } from './worker-log-lines.ts'
import { BLOCK_BYTES, LogOutput } from './worker-log-output.ts'

const POLL_MS = 200
const PAGE_BYTES = 64 * 1024
/** Lines from which a page is full: a worker may print nothing but newlines. */
const PAGE_LINES = 4_000
/** Maximum number of bytes that `since` reads back. */
const SINCE_BYTES = 256 * 1024
/** How long an output is kept after its path was read: its worker may be too new for the list of those to keep. */
const NEW_WORKER_MS = 60_000
/** Limit of outputs whose journals are in memory. */
const MAX_OPEN = 256

/** What {@link createWorkerLogs} needs. */
export interface WorkerLogsOptions {
  /** The folder of the outputs; it is made if it is missing. */
  readonly folder: string
  readonly clock: Clock
  /** The size from which `trim` cuts an output; 8 MiB unless given. */
  readonly maxBytes?: number
}

/**
 * Outputs in files, one for each worker, readable by the owner only. `trim` keeps between half and one and a half of the limit of
 * each, and removes no output whose path was read in the last minute.
 */
export function createWorkerLogs({ folder, clock, maxBytes = 8 * 1024 * 1024 }: WorkerLogsOptions): WorkerLogs {
  ensureFolder(folder)
  const outputs = new Outputs(folder, clock)
  const watches = new Watches(outputs, clock)
  const pathReadAt = new Map<string, number>()

  return {
    path(worker) {
      pathReadAt.set(worker, clock.monotonic())
      return outputs.fileOf(worker)
    },
    tail: (worker, lines) => readTail(outputs, worker, lines),
    reader: (worker, from) => new FileReader(outputs, worker, from),
    startOfLast: (worker, lines) => startOfLast(outputs, worker, lines),
    async startOfTime(worker, tsMs) {
      const output = outputs.of(worker)
      output.refresh()
      return output.startOf(tsMs)
    },
    mark: worker => outputs.mark(worker),
    watch: (worker, listener) => watches.add(worker, listener),
    since: (worker, from) => readSince(outputs, worker, from),
    async trim(keep) {
      for (const [worker, readAtMs] of pathReadAt) {
        if (clock.monotonic() - readAtMs >= NEW_WORKER_MS) pathReadAt.delete(worker)
      }
      for (const worker of workersIn(folder)) {
        if (keep.has(worker as WorkerId) || pathReadAt.has(worker)) outputs.trim(worker, maxBytes)
        else outputs.remove(worker)
      }
      return outputs.bytes
    },
    async shrink(limits) {
      for (const [worker, most] of limits) {
        if (most === 0) outputs.remove(worker)
        else outputs.cut(worker, most)
      }
    },
  }
}

function workersIn(folder: string): Set<string> {
  const names = readdirSync(folder).flatMap(name => /^(.+)\.log(?:\.1|\.at)?(?:\.new)?$/.exec(name)?.[1] ?? [])
  return new Set(names)
}

/** The outputs in a folder, those used last in memory. */
class Outputs {
  readonly #folder: string
  readonly #clock: Clock
  readonly #open = new Map<string, LogOutput>()
  /** Sizes at the last trim. */
  readonly #sizes = new Map<string, number>()
  /** Bytes of all files of an output together at the last trim. */
  readonly bytes = new Map<WorkerId, number>()

  constructor(folder: string, clock: Clock) {
    this.#folder = folder
    this.#clock = clock
  }

  fileOf(worker: string): string {
    return join(this.#folder, `${worker}.log`)
  }

  of(worker: string): LogOutput {
    const known = this.#open.get(worker)
    const output = known ?? new LogOutput(this.fileOf(worker), () => this.#clock.now())
    this.#open.delete(worker)
    this.#open.set(worker, output)
    const [oldest] = this.#open.keys()
    if (this.#open.size > MAX_OPEN) this.#open.delete(oldest!)
    return output
  }

  /** Divides an output, unless that would push others out of memory. */
  mark(worker: string): void {
    if (!this.#open.has(worker) && this.#open.size >= MAX_OPEN) return
    this.of(worker).mark()
  }

  /** Refreshes an output that has changed, and cuts one that is too long. */
  trim(worker: string, maxBytes: number): void {
    const size = statSync(this.fileOf(worker), { throwIfNoEntry: false })?.size ?? -1
    if (this.#sizes.get(worker) === size) return
    const output = this.of(worker)
    output.tidy()
    output.refresh()
    if (size > maxBytes) output.cut(maxBytes)
    this.#sizes.set(worker, size > maxBytes ? 0 : size)
    this.bytes.set(worker as WorkerId, output.bytesOnDisk())
  }

  /** Cuts an output so that its files have at most this many bytes, as far as it does not grow meanwhile. */
  cut(worker: string, most: number): void {
    const output = this.of(worker)
    output.cut(most)
    this.#sizes.set(worker, 0)
    this.bytes.set(worker as WorkerId, output.bytesOnDisk())
  }

  remove(worker: string): void {
    this.of(worker).remove()
    this.#open.delete(worker)
    this.#sizes.delete(worker)
    this.bytes.delete(worker as WorkerId)
  }
}

/** Polls the watched outputs, each once for all its listeners. */
class Watches {
  readonly #outputs: Outputs
  readonly #clock: Clock
  readonly #watched = new Map<WorkerId, { end: number; readonly listeners: Set<() => void> }>()
  #polls = false

  constructor(outputs: Outputs, clock: Clock) {
    this.#outputs = outputs
    this.#clock = clock
  }

  add(worker: WorkerId, listener: () => void): () => void {
    const watched = this.#watched.get(worker) ?? { end: this.#outputs.of(worker).refresh(), listeners: new Set() }
    this.#watched.set(worker, watched)
    // The same function may watch twice.
    const own = () => listener()
    watched.listeners.add(own)
    this.#pollLater()
    return () => {
      watched.listeners.delete(own)
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

  /** Null where the file cannot be read; its readers get the error. */
  #end(worker: WorkerId): number | null {
    try {
      return this.#outputs.of(worker).refresh()
    } catch {
      return null
    }
  }
}

class FileReader implements LogReader {
  readonly #outputs: Outputs
  readonly #worker: string
  readonly #assembler = new LineAssembler()
  /** The position up to which lines were returned. */
  #behind: number
  /** The position of the next block; null before the first. */
  #position: number | null = null

  constructor(outputs: Outputs, worker: string, from: number) {
    this.#outputs = outputs
    this.#worker = worker
    this.#behind = from
  }

  async next(how: 'open' | 'over' = 'open'): Promise<LogPage> {
    const output = this.#outputs.of(this.#worker)
    const end = output.refresh()
    let missed = 0
    if (this.#position === null) {
      this.#behind = Math.min(this.#behind, end)
      missed = Math.max(0, output.oldest - this.#behind)
      this.#position = await lineStart(output, Math.max(this.#behind, output.oldest))
    }
    const lines: EndedLine[] = []
    let position = this.#position
    for (let left = PAGE_BYTES; left > 0 && position < end && lines.length < PAGE_LINES; ) {
      const { block: read, start } = await output.read(position)
      const block = firstLines(read, PAGE_LINES)
      if (start > position) {
        this.#assembler.reset()
        missed += start - position
      }
      position = start + block.length
      left -= block.length
      lines.push(...this.#assembler.push(block, start))
      if (block.length === 0) break
    }
    this.#position = position
    const more = position < end
    if (how === 'over' && !more) lines.push(...this.#assembler.finish(position))
    const given = lines.filter(line => line.position > this.#behind)
    this.#behind = given.at(-1)?.position ?? this.#behind
    const placed = given.map(({ end: endsAt, ...line }) => ({ ...line, tsMs: output.timeAt(endsAt) }))
    return { lines: placed, position: this.#behind, more, missed }
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
async function blockBefore(output: LogOutput, end: number, reach: number): Promise<{ block: Buffer; start: number }> {
  const from = Math.max(reach, end - BLOCK_BYTES)
  let found = await output.read(from, end - from)
  // It may be in both files; the next call returns what precedes the second.
  while (found.start + found.block.length < end && found.block.length > 0) {
    const next = await output.read(found.start + found.block.length, end - found.start - found.block.length)
    if (next.block.length === 0) break
    found =
      next.start === found.start + found.block.length
        ? { block: Buffer.concat([found.block, next.block]), start: found.start }
        : next
  }
  return found
}

async function startOfLast(outputs: Outputs, worker: string, lines: number): Promise<number> {
  const output = outputs.of(worker)
  let left = lines + 1
  for (let end = output.refresh(); end > output.oldest; ) {
    const { block, start } = await blockBefore(output, end, output.oldest)
    for (let from = block.lastIndexOf(0x0a); from !== -1; from = from === 0 ? -1 : block.lastIndexOf(0x0a, from - 1)) {
      left -= 1
      if (left === 0) return start + from + 1
    }
    if (start >= end || block.length === 0) break
    end = start
  }
  return output.oldest
}

async function readTail(outputs: Outputs, worker: string, lines: number): Promise<LogLine[]> {
  if (lines <= 0) return []
  const end = outputs.of(worker).refresh()
  const reader = new FileReader(outputs, worker, await startOfLast(outputs, worker, lines))
  let found: LogLine[] = []
  for (let more = true; more; ) {
    const page = await reader.next('over')
    found.push(...page.lines.map(bare))
    if (found.length > 2 * lines) found = found.slice(-lines)
    more = page.more && page.position < end
  }
  return found.slice(-lines)
}

async function readSince(
  outputs: Outputs,
  worker: string,
  from: number | null,
): Promise<{ lines: LogLine[]; position: number }> {
  const output = outputs.of(worker)
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
