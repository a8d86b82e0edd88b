/**
 * The files of a worker's output: parts `<position>.log` in a folder of its own, named by the number of bytes that
 * the worker wrote before them. A full part never changes, and the oldest are removed, so a worker that prints
 * without end has a bounded number of bytes on the disk. No note records the positions, so a kill at any moment needs
 * no repair.
 */
import { readdirSync } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Limit in bytes of all parts of one output, apart from the lines in which they end. */
export const OUTPUT_BYTES = 8 * 1024 * 1024
/** Number of kept parts, the growing one included. */
const PARTS = 4
/** Excess of a part for the end of its last line. */
const LINE_BYTES = 64 * 1024

const NEWLINE = 0x0a
const NAME = /^(\d{1,15})\.log$/

/** The size from which a part is full. @param maxBytes limit of the whole output */
export function partBytes(maxBytes: number): number {
  return Math.ceil(maxBytes / PARTS)
}

/** The path of the part that begins at a position. */
export function partFile(folder: string, begin: number): string {
  return join(folder, `${begin}.log`)
}

/** Positions at which the parts in a folder begin, in order; empty for a folder that does not exist. */
export function listParts(folder: string): number[] {
  try {
    return partBegins(readdirSync(folder))
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw thrown
  }
}

function partBegins(names: readonly string[]): number[] {
  return names
    .flatMap(name => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b)
}

/** Appends to an output, which may have only one writer at a time. */
export class OutputWriter {
  readonly #folder
  readonly #partBytes: number
  /** The part that grows; null before the first byte. */
  #part: FileHandle | null = null
  #begin = 0
  #size = 0
  #endsWithLine = false

  private constructor(folder: string, maxBytes: number) {
    this.#folder = folder
    this.#partBytes = partBytes(maxBytes)
  }

  /** Opens an output at its end. @param folder created with the first byte */
  static async open(folder: string, maxBytes = OUTPUT_BYTES): Promise<OutputWriter> {
    const writer = new OutputWriter(folder, maxBytes)
    const last = listParts(folder).at(-1)
    if (last !== undefined) await writer.#open(last)
    return writer
  }

  /** Number of bytes that were ever written to the output. */
  get end(): number {
    return this.#begin + this.#size
  }

  /**
   * Appends bytes, and removes the oldest parts above the limit.
   * @throws when the disk is full or fails; `end` shows how much was written
   */
  async write(bytes: Buffer): Promise<void> {
    if (this.#part === null || (await this.#isChanged())) await this.#next()
    for (let rest = bytes; rest.length > 0; ) {
      if (this.#isFull) await this.#next()
      const piece = rest.subarray(0, this.#fitting(rest))
      await this.#append(piece)
      rest = rest.subarray(piece.length)
    }
  }

  async close(): Promise<void> {
    await this.#part?.close()
    this.#part = null
  }

  get #isFull(): boolean {
    const over = this.#size - this.#partBytes
    return over >= LINE_BYTES || (over >= 0 && this.#endsWithLine)
  }

  /** Number of bytes for this part: up to the first end of a line at which it is full. */
  #fitting(bytes: Buffer): number {
    const left = this.#partBytes - this.#size
    if (bytes.length < left) return bytes.length
    const newline = bytes.indexOf(NEWLINE, Math.max(0, left - 1))
    return Math.min(newline === -1 ? bytes.length : newline + 1, left + LINE_BYTES)
  }

  async #append(piece: Buffer): Promise<void> {
    const part = this.#part!
    try {
      await part.appendFile(piece)
      this.#size += piece.length
    } catch (thrown) {
      this.#size = Math.max(this.#size, (await part.stat()).size)
      throw thrown
    }
    this.#endsWithLine = piece.at(-1) === NEWLINE
  }

  /** True when another program removed or emptied the part: the next bytes need a new one. */
  async #isChanged(): Promise<boolean> {
    const { nlink, size } = await this.#part!.stat()
    return nlink === 0 || size !== this.#size
  }

  async #next(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    // First, since these may fill the disk.
    for (const begin of partBegins(await readdir(this.#folder)).slice(0, 1 - PARTS)) {
      await rm(partFile(this.#folder, begin), { force: true })
    }
    const before = this.#part
    await this.#open(this.end)
    await before?.close()
  }

  async #open(begin: number): Promise<void> {
    const part = await open(partFile(this.#folder, begin), 'a', 0o600)
    this.#size = (await part.stat()).size
    this.#part = part
    this.#begin = begin
    this.#endsWithLine = false
  }
}
