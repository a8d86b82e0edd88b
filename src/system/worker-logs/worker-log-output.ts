/**
 * Reads one worker's output from its parts (`src/disk/worker-output.ts`), and records its growth in a journal beside
 * them.
 */
import { type Stats, statSync } from 'node:fs'
import { type FileHandle, open, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { listParts, partBytes, partFile } from '../../disk/worker-output.ts'
import { WorkerLogJournal } from './worker-log-journal.ts'

/** Maximum number of bytes of one read. */
export const BLOCK_BYTES = 64 * 1024

const NEWLINE = 0x0a
const JOURNAL = 'times'
/** Age up to which a size counts for a reader that continues: less than the pause between polls of a watch. */
const RECENT_MS = 100
/** Greatest error of the times of files. */
const COARSE_MS = 50
/** Maximum time after the end of a job in which its output arrives through the pipe. */
const LATE_MS = 250

/** A part of an output and its beginning. */
export interface Block {
  readonly block: Buffer
  readonly start: number
}

/** A file of an output. */
interface Part {
  readonly begin: number
  readonly end: number
}

/** One output. Its whole state is on disk, so it can be closed and opened again at any time. */
export class LogOutput {
  readonly folder: string
  readonly #partBytes: number
  readonly #journalFile: string
  readonly #now
  readonly #journal
  /** In their order; the last one may grow. */
  #parts: readonly Part[] = []
  #stamp: string | null = null
  #refreshedMs = Number.NEGATIVE_INFINITY
  /** Earliest time of the new bytes. The time of the file is a few milliseconds coarse. */
  #notBeforeMs = 0
  /** Time of the end of the last job; null during the next job. */
  #endedMs: number | null = null
  #marked: { readonly moment: 'begin' | 'end'; readonly atMs: number } | null = null

  /** @param folder the folder of the output, which need not exist yet. @param maxBytes limit of the output */
  constructor(folder: string, maxBytes: number, now: () => number) {
    this.folder = folder
    this.#partBytes = partBytes(maxBytes)
    this.#journalFile = join(folder, JOURNAL)
    this.#now = now
    this.#journal = new WorkerLogJournal(this.#journalFile)
    this.#list()
  }

  /** Reads the size of the output and notes the time of new bytes. @returns the end of the output */
  refresh(): number {
    this.#refreshedMs = this.#now()
    const last = this.#parts.at(-1)
    const stats = last === undefined ? null : findStats(partFile(this.folder, last.begin))
    if (last === undefined) this.#listIfRenamed()
    else if (stats === null || stats.size >= this.#partBytes) this.#list()
    else if (last.begin + stats.size > last.end) this.#grow(last.begin, stats)
    // Behind a part that is not full another one begins after a program removed, emptied or cut the part.
    else this.#listIfRenamed()
    return this.end
  }

  /** The end for a reader at a position: a recent one if it is behind the position, or that of a new look. */
  recentEnd(position: number): number {
    const ageMs = this.#now() - this.#refreshedMs
    const isRecent = ageMs >= 0 && ageMs < RECENT_MS
    return isRecent || position < this.end ? this.end : this.refresh()
  }

  /** The end of the output at the last refresh. */
  get end(): number {
    return Math.max(this.#journal.end, this.#parts.at(-1)?.end ?? 0)
  }

  /**
   * Notes the time of the output so far; later output has a later time. Output soon after the end of a job
   * counts as written before that end. The next reader notes the times of a file that cannot be read.
   */
  mark(moment: 'begin' | 'end'): void {
    // Times are whole milliseconds, and the jobs of one call end within one: the first look counts for all.
    if (this.#marked?.moment === moment && this.#marked.atMs === this.#now()) return
    try {
      this.refresh()
      const nowMs = this.#now()
      this.#notBeforeMs = nowMs + 1
      this.#endedMs = moment === 'end' ? nowMs : null
      this.#marked = { moment, atMs: nowMs }
    } catch {}
  }

  /** The first kept position. */
  get oldest(): number {
    return this.#parts[0]?.begin ?? this.end
  }

  timeAt(position: number): number {
    return this.#journal.timeAt(position)
  }

  startAt(tsMs: number): number {
    return Math.max(this.oldest, this.#journal.startAt(tsMs))
  }

  /**
   * The block at a position, at most `most` bytes and up to the end of the last refresh. It starts later if bytes
   * were removed: at the end of the output when none are left.
   */
  async read(position: number, most = BLOCK_BYTES): Promise<Block> {
    const part = this.#parts.find(({ end }) => end > position)
    if (part === undefined) return { block: Buffer.alloc(0), start: Math.max(position, this.end) }
    const start = Math.max(position, part.begin)
    const handle = await openIfThere(partFile(this.folder, part.begin))
    try {
      const length = Math.min(most, part.end - start)
      const read = await handle?.read(Buffer.alloc(length), 0, length, start - part.begin)
      if (read !== undefined && read.bytesRead > 0) return { block: read.buffer.subarray(0, read.bytesRead), start }
    } finally {
      await handle?.close()
    }
    // The part was emptied, or removed with the output before its end.
    if (handle !== null) return await this.read(part.end, most)
    this.#list()
    return await this.read(position, most)
  }

  /**
   * Makes the output smaller, so that its files have at most this many bytes, as far as its
   * worker does not print in the meantime.
   */
  async cut(maxBytes: number): Promise<void> {
    this.refresh()
    // The rest is for the journal.
    const most = Math.floor(maxBytes / 2)
    const parts = [...this.#parts]
    let bytes = parts.reduce((sum, { begin, end }) => sum + end - begin, 0)
    while (parts.length > 1 && bytes > most) {
      const { begin, end } = parts.shift()!
      bytes -= end - begin
      await rm(partFile(this.folder, begin), { force: true })
    }
    const [last] = parts
    if (last !== undefined && bytes > most) await this.#cutPart(last, most)
    this.#list()
  }

  /** The file that may grow; null for an output without one. */
  get lastFile(): string | null {
    const last = this.#parts.at(-1)
    return last === undefined ? null : partFile(this.folder, last.begin)
  }

  /** Bytes of all its files at the last refresh. */
  bytesOnDisk(): number {
    const bytes = this.#parts.reduce((sum, { begin, end }) => sum + end - begin, 0)
    return bytes + (findStats(this.#journalFile)?.size ?? 0)
  }

  /** Replaces a part by its end, in whole lines. Its writer begins a new part after that. */
  async #cutPart({ begin, end }: Part, most: number): Promise<void> {
    let start = end - most
    const { block } = most === 0 ? { block: Buffer.alloc(0) } : await this.read(start, most)
    const newline = block.indexOf(NEWLINE)
    const wholeLines = newline + 1 < block.length ? block.subarray(newline + 1) : block
    start = end - wholeLines.length
    if (wholeLines.length > 0) {
      const draft = join(this.folder, 'cut.new')
      await writeFile(draft, wholeLines, { mode: 0o600 })
      await rename(draft, partFile(this.folder, start))
    }
    await rm(partFile(this.folder, begin), { force: true })
  }

  /** Lists the parts if there may be other ones: a look at the folder costs less than a list of it. */
  #listIfRenamed(): void {
    if (this.#stamp === null || folderStamp(this.folder, this.#now()) !== this.#stamp) this.#list()
  }

  /** Lists the parts. */
  #list(): void {
    this.#stamp = folderStamp(this.folder, this.#now())
    const begins = listParts(this.folder)
    const recorded = this.#journal.end
    const parts: Part[] = []
    for (const [index, begin] of begins.entries()) {
      const stats = findStats(partFile(this.folder, begin))
      if (stats === null) continue
      const end = Math.min(begin + stats.size, begins[index + 1] ?? Number.POSITIVE_INFINITY)
      parts.push({ begin, end })
      if (end > recorded) this.#note(end, stats)
    }
    this.#parts = parts
  }

  #grow(begin: number, stats: Stats): void {
    const end = begin + stats.size
    this.#parts = [...this.#parts.slice(0, -1), { begin, end }]
    this.#note(end, stats)
  }

  #note(end: number, { mtimeMs }: Stats): void {
    const endedMs = this.#endedMs
    const isLate = endedMs !== null && Math.min(mtimeMs, this.#now()) <= endedMs + LATE_MS
    const tsMs = isLate ? endedMs : Math.min(this.#now(), Math.max(mtimeMs, this.#notBeforeMs))
    this.#journal.note(end, tsMs, this.oldest)
  }
}

/**
 * The time of a folder, which changes with its names, but only every few milliseconds: null while it is so recent
 * that a further change of names would not show. That of a folder which does not exist is {@link NO_FOLDER}.
 */
export function folderStamp(folder: string, nowMs: number): string | null {
  const changedMs = findStats(folder)?.mtimeMs
  if (changedMs === undefined) return NO_FOLDER
  return nowMs - changedMs < COARSE_MS ? null : String(changedMs)
}

/** A worker without output has no folder, and a list of its names would be an exception at each begin and end. */
const NO_FOLDER = 'none'

function findStats(file: string): Stats | null {
  return statSync(file, { throwIfNoEntry: false }) ?? null
}

async function openIfThere(file: string): Promise<FileHandle | null> {
  try {
    return await open(file, 'r')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw thrown
  }
}
