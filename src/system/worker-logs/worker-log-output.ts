/** The files of one worker's output: the file that it appends to, an older part that was cut from it, and a journal about both. */
import {
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { removeJournal, WorkerLogJournal } from './worker-log-journal.ts'

/** Maximum number of bytes of one read. */
export const BLOCK_BYTES = 64 * 1024

/** A part of an output and where it begins. */
export interface Block {
  readonly block: Buffer
  readonly start: number
}

/** One output. Its whole state is on disk, so it can be closed and opened again at any time. */
export class LogOutput {
  readonly file: string
  readonly #older: string
  readonly #draft: string
  readonly #bookFile: string
  readonly #now: () => number
  readonly #book: WorkerLogJournal
  /** What is new was written at this instant or after it. The time of the file is a few milliseconds coarse. */
  #notBeforeMs = 0

  /** @param file the file that the worker appends to */
  constructor(file: string, now: () => number) {
    this.file = file
    this.#older = `${file}.1`
    this.#draft = `${file}.1.new`
    this.#bookFile = `${file}.at`
    this.#now = now
    this.#book = new WorkerLogJournal(this.#bookFile)
    if (this.#book.isNew) this.#adoptFiles()
    if (this.#book.cutting !== null) this.#endCutOfBefore()
  }

  /** Reads the size of the file and notes the time of new bytes. @returns the end of the output */
  refresh(): number {
    const found = statSync(this.file, { throwIfNoEntry: false })
    const size = found?.size ?? 0
    const { begin, olderBegin, olderEnd } = this.#book.layout
    const known = this.#book.end
    if (begin + size < known) {
      // Another program has emptied the file. New bytes follow everything that was ever written.
      this.#book.place({ begin: known, olderBegin, olderEnd })
      if (size > 0) this.#book.note(known + size, this.#timeOf(found!.mtimeMs))
    } else if (begin + size > known) this.#book.note(begin + size, this.#timeOf(found!.mtimeMs))
    return this.#book.end
  }

  /** Notes the time of what was written, and that what comes is later. A file that cannot be read has its times by the next reader. */
  mark(): void {
    try {
      this.refresh()
      this.#notBeforeMs = this.#now() + 1
    } catch {}
  }

  #timeOf(writtenMs: number): number {
    return Math.min(this.#now(), Math.max(writtenMs, this.#notBeforeMs))
  }

  get oldest(): number {
    return this.#book.oldest
  }

  timeAt(position: number): number {
    return this.#book.timeAt(position)
  }

  startOf(tsMs: number): number {
    return this.#book.startOf(tsMs)
  }

  /**
   * The block at a position, at most `most` bytes and none after the end of the last refresh. It starts later where bytes were removed.
   */
  async read(position: number, most = BLOCK_BYTES): Promise<Block> {
    const { begin, olderBegin, olderEnd } = this.#book.layout
    const inOlder = position < olderEnd
    const start = inOlder ? Math.max(position, olderBegin) : Math.max(position, begin)
    const end = inOlder ? olderEnd : this.#book.end
    const handle = await openIfThere(inOlder ? this.#older : this.file)
    try {
      const length = Math.max(0, Math.min(most, end - start))
      const read = await handle?.read(Buffer.alloc(length), 0, length, start - (inOlder ? olderBegin : begin))
      // A cut in between has moved the bytes.
      if (this.#book.layout.begin !== begin) return await this.read(position, most)
      return { block: read?.buffer.subarray(0, read.bytesRead) ?? Buffer.alloc(0), start }
    } finally {
      await handle?.close()
    }
  }

  /**
   * Cuts the file in place when it has grown past a limit. Its writer does not notice, because it appends: the last half becomes the older
   * part, and the file is empty again. Runs without a pause, to lose as little as possible of what is written meanwhile.
   */
  cut(maxBytes: number): void {
    const handle = openSync(this.file, constants.O_RDWR)
    try {
      const begin = this.refresh() // The time of its last bytes has to be noted before they move.
      const size = begin - this.#book.layout.begin
      const from = Math.max(0, size - Math.floor(maxBytes / 2))
      const kept = readFully(handle, from)
      const end = this.#book.layout.begin + from + kept.length
      this.#book.note(end, this.#now())
      const newline = from === 0 ? -1 : kept.indexOf(0x0a)
      const lineStart = newline + 1 < kept.length ? newline + 1 : 0
      const olderBegin = end - kept.length + lineStart
      writeFileSync(this.#draft, kept.subarray(lineStart), { mode: 0o600 })
      this.#book.beginCut(end, olderBegin)
      renameSync(this.#draft, this.#older)
      ftruncateSync(handle, 0)
      this.#book.place({ begin: end, olderBegin, olderEnd: end })
    } finally {
      closeSync(handle)
    }
  }

  /** Bytes of all its files. */
  bytesOnDisk(): number {
    const sizes = [this.file, this.#older, this.#bookFile].map(
      file => statSync(file, { throwIfNoEntry: false })?.size ?? 0,
    )
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  /** Removes the draft of a server that was killed during a cut. */
  tidy(): void {
    rmSync(this.#draft, { force: true })
  }

  remove(): void {
    for (const file of [this.file, this.#older, this.#draft]) rmSync(file, { force: true })
    removeJournal(this.#bookFile)
  }

  /** Adopts the files of a version without a journal. */
  #adoptFiles(): void {
    const size = statSync(this.#older, { throwIfNoEntry: false })?.size
    if (size !== undefined) this.#book.place({ begin: size, olderBegin: 0, olderEnd: size })
  }

  /** Finishes a cut in which the server was killed: it writes a draft, notes it, renames it, and empties the file. */
  #endCutOfBefore(): void {
    const { begin, olderBegin } = this.#book.cutting!
    const { layout } = this.#book
    if (existsSync(this.#draft)) {
      this.tidy()
      this.#book.place(layout)
    } else if (this.#stillHolds(begin - layout.begin, begin - olderBegin)) {
      rmSync(this.#older, { force: true })
      this.#book.place({ begin: layout.begin, olderBegin: layout.begin, olderEnd: layout.begin })
    } else this.#book.place({ begin, olderBegin, olderEnd: begin })
  }

  /** Whether the file was not emptied: its first `size` bytes end with the older part. */
  #stillHolds(size: number, olderSize: number): boolean {
    if ((statSync(this.file, { throwIfNoEntry: false })?.size ?? 0) < size) return false
    return readFile(this.file, size - olderSize, olderSize).equals(readFile(this.#older, 0, olderSize))
  }
}

function readFile(file: string, from: number, length: number): Buffer {
  let handle: number
  try {
    handle = openSync(file, 'r')
  } catch {
    return Buffer.alloc(0)
  }
  try {
    return readFully(handle, from, length)
  } finally {
    closeSync(handle)
  }
}

function readFully(handle: number, from: number, most = Number.POSITIVE_INFINITY): Buffer {
  const blocks: Buffer[] = []
  for (let done = 0; ; ) {
    const block = Buffer.alloc(Math.min(BLOCK_BYTES, most - done))
    const count = readSync(handle, block, 0, block.length, from + done)
    if (count === 0) return Buffer.concat(blocks)
    blocks.push(block.subarray(0, count))
    done += count
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
