/**
 * Workers append to `<folder>/<worker>.log` by themselves. An output that has grown past its limit is cut in place,
 * which its writer does not notice because it appends: the last half of it moves to `<worker>.log.1`, and the file
 * goes on from nothing. What a worker writes in the moment between the copy and the cut is lost.
 */
import {
  closeSync,
  constants,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { WorkerId } from '../core/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { LogLine, WorkerLogs } from '../ports/worker-logs.ts'
import { LineAssembler, LineCollector } from './worker-log-lines.ts'

const BLOCK_BYTES = 64 * 1024
const POLL_MS = 200
/** How far back `since` reaches. */
const SINCE_BYTES = 256 * 1024

/** How long an output is kept whose worker may have been too new for the list of those to keep. */
const NEW_WORKER_MS = 60_000

/** What {@link createWorkerLogs} needs. */
export interface WorkerLogsOptions {
  /** The folder of the outputs; it is made when it is missing. */
  readonly folder: string
  readonly clock: Clock
  /** The size from which `trim` cuts an output; 8 MiB unless given. */
  readonly maxBytes?: number
}

/**
 * Outputs in files, one for each worker, readable by the owner only. `trim` keeps between half the limit and the limit
 * of each, and removes none whose path was asked for in the last minute.
 */
export function createWorkerLogs({ folder, clock, maxBytes = 8 * 1024 * 1024 }: WorkerLogsOptions): WorkerLogs {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const askedAt = new Map<string, number>()
  const removedBytes = new Map<string, number>()
  const outputOf = (worker: string): Output => {
    const file = join(folder, `${worker}.log`)
    return { file, older: `${file}.1`, removedBytes: () => removedBytes.get(worker) ?? 0 }
  }

  return {
    path(worker) {
      askedAt.set(worker, clock.monotonic())
      return outputOf(worker).file
    },
    tail: async (worker, lines) => (await readTail(outputOf(worker), lines, 'shown')).lines,
    since: (worker, from) => readSince(outputOf(worker), from),
    follow: (worker, lines, signal) => follow(outputOf(worker), lines, clock, signal),
    async trim(keep) {
      for (const [worker, asked] of askedAt) {
        if (clock.monotonic() - asked >= NEW_WORKER_MS) askedAt.delete(worker)
      }
      for (const worker of workersIn(folder)) {
        const { file, older } = outputOf(worker)
        rmSync(draftOf(older), { force: true })
        if (keep.has(worker as WorkerId) || askedAt.has(worker)) {
          const cut = cutOutput(file, older, maxBytes)
          if (cut > 0) removedBytes.set(worker, (removedBytes.get(worker) ?? 0) + cut)
          continue
        }
        rmSync(file, { force: true })
        rmSync(older, { force: true })
        removedBytes.delete(worker)
      }
    },
  }
}

/** The files of one worker's output. */
interface Output {
  readonly file: string
  readonly older: string
  /** How much this process has cut from the file: where it begins, in bytes of the whole output. */
  removedBytes(): number
}

/** What is being written to become the older part; one that stays is of a server that was killed meanwhile. */
function draftOf(older: string): string {
  return `${older}.new`
}

function workersIn(folder: string): Set<string> {
  const names = readdirSync(folder).flatMap(name => /^(.+)\.log(?:\.1(?:\.new)?)?$/.exec(name)?.[1] ?? [])
  return new Set(names)
}

/**
 * Moves the last half of a file that is too long aside, from the beginning of a line on, and empties the file. Does
 * not give way to anything else in between, to lose as little as possible of what is written meanwhile.
 * @returns the bytes that were taken away
 */
function cutOutput(file: string, older: string, maxBytes: number): number {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (size <= maxBytes) return 0
  const handle = openSync(file, constants.O_RDWR)
  try {
    const from = size - Math.floor(maxBytes / 2)
    const kept = readFully(handle, from)
    const lineStart = kept.indexOf(0x0a) + 1
    writeFileSync(draftOf(older), lineStart < kept.length ? kept.subarray(lineStart) : kept, { mode: 0o600 })
    renameSync(draftOf(older), older)
    ftruncateSync(handle, 0)
    return from + kept.length
  } finally {
    closeSync(handle)
  }
}

function readFully(handle: number, from: number): Buffer {
  const blocks: Buffer[] = []
  for (let position = from; ; ) {
    const block = Buffer.alloc(BLOCK_BYTES)
    const count = readSync(handle, block, 0, BLOCK_BYTES, position)
    if (count === 0) return Buffer.concat(blocks)
    blocks.push(block.subarray(0, count))
    position += count
  }
}

/** The last lines, and where in the whole output the last finished one ends. */
interface Tail {
  readonly lines: LogLine[]
  readonly end: number
}

async function readTail(output: Output, wanted: number, unfinished: 'shown' | 'left'): Promise<Tail> {
  const begin = output.removedBytes()
  const live = await openIfThere(output.file)
  const older = await openIfThere(output.older)
  try {
    const size = (await live?.stat())?.size ?? 0
    const collector = new LineCollector(wanted, unfinished)
    if (live !== null) await collect(live, size, collector)
    if (older !== null) await collect(older, (await older.stat()).size, collector)
    // A cut in between has moved what was being read.
    if (output.removedBytes() !== begin) return await readTail(output, wanted, unfinished)
    return { lines: collector.finish(), end: begin + size - collector.unfinishedBytes }
  } finally {
    await live?.close()
    await older?.close()
  }
}

/** Finished lines between a position and the end, which is looked up once: an output may grow faster than it is read. */
async function readSince(output: Output, from: number | null): Promise<{ lines: LogLine[]; position: number }> {
  const size = statSync(output.file, { throwIfNoEntry: false })?.size ?? 0
  const begin = output.removedBytes()
  const end = begin + size
  const wanted = from !== null && from <= end ? from : begin
  const first = Math.max(wanted, end - SINCE_BYTES)
  const assembler = new LineAssembler()
  const lines: LogLine[] = []
  // Behind a cut the rest of a line stands first.
  let inside = first > wanted
  let behind = first
  for (let position = first; position < end; ) {
    const { block, start } = await readNext(output, position)
    if (start !== position) assembler.reset()
    inside ||= start > position
    if (block.length === 0) break
    const newline = inside ? block.indexOf(0x0a) : -1
    if (!inside || newline !== -1) {
      lines.push(...assembler.push(block.subarray(newline + 1)))
      inside = false
    }
    const last = block.lastIndexOf(0x0a)
    if (last !== -1) behind = start + last + 1
    position = start + block.length
  }
  return { lines, position: behind }
}

async function* follow(
  output: Output,
  wanted: number,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<LogLine, void, undefined> {
  const tail = await readTail(output, wanted, 'left')
  yield* tail.lines
  const assembler = new LineAssembler()
  for (let position = tail.end; !signal.aborted; ) {
    const { block, start } = await readNext(output, position)
    const stands = start === position && block.length === 0
    if (start !== position) assembler.reset()
    position = start + block.length
    for (const line of assembler.push(block)) {
      if (signal.aborted) return
      yield line
    }
    if (stands) await pause(clock, POLL_MS, signal)
  }
}

/**
 * What stands at a position of the whole output, at most one block. It starts later when something in between is gone
 * for good, and at the beginning of the file when somebody else has emptied that.
 */
async function readNext(output: Output, position: number): Promise<{ block: Buffer; start: number }> {
  const begin = output.removedBytes()
  const inOlder = position < begin
  const handle = await openIfThere(inOlder ? output.older : output.file)
  try {
    const size = (await handle?.stat())?.size ?? 0
    const first = inOlder ? begin - size : begin
    const start = inOlder ? Math.max(position, first) : position > begin + size ? begin : position
    const length = Math.min(BLOCK_BYTES, first + size - start)
    const read = await handle?.read(Buffer.alloc(length), 0, length, start - first)
    if (output.removedBytes() !== begin) return await readNext(output, position)
    return { block: read?.buffer.subarray(0, read.bytesRead) ?? Buffer.alloc(0), start }
  } finally {
    await handle?.close()
  }
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      cancel()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.after(ms, done)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}

async function collect(handle: FileHandle, size: number, collector: LineCollector): Promise<void> {
  for (let end = size; end > 0 && !collector.full; ) {
    const length = Math.min(BLOCK_BYTES, end)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, end - length)
    collector.push(buffer.subarray(0, bytesRead))
    end -= length
  }
}

async function openIfThere(file: string): Promise<FileHandle | null> {
  try {
    return await open(file, 'r')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw thrown
  }
}
