import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { RelayShares, type Sharer } from './shares.ts'

/** A body of at most this size is kept in memory while there is room. */
const SMALL_BYTES = 1_048_576
/** All bodies in memory together, and all in files. */
const MEMORY_BYTES = 67_108_864
const FILE_BYTES = 8_589_934_592

/** Error for a body without room, in the limits or on the disk. */
export class SpoolFull extends Error {}

/** A body that was received wholly and can be sent several times. */
export interface SpooledBody {
  readonly bytes: number
  /** SHA-256 in hexadecimal digits; empty unless requested. */
  readonly digest: string
  /** The body from its beginning. */
  read(): Buffer | Readable
  /** Gives its room back. */
  drop(): Promise<void>
}

/** Keeps bodies whole: small ones in memory, others in files without a name, which end with the process. */
export class Spool {
  readonly #folder
  readonly #memory = new RelayShares(MEMORY_BYTES)
  readonly #files = new RelayShares(FILE_BYTES)
  #made = 0

  constructor(folder: string) {
    this.#folder = folder
  }

  /**
   * Receives a body to its end and keeps at most `maxBytes` of it.
   * @param sharer whose share it takes
   * @throws SpoolFull, or the error of the body if its connection ended
   */
  async receive(
    body: AsyncIterable<Buffer> | Iterable<Buffer>,
    maxBytes: number,
    digested: boolean,
    sharer: Sharer,
  ): Promise<SpooledBody> {
    const hash = digested ? createHash('sha256') : null
    const draft: Draft = { sharer, pieces: [], bytes: 0, file: null, inMemory: 0, inFile: 0 }
    try {
      for await (const piece of body) {
        const part = piece.subarray(0, maxBytes - draft.bytes)
        if (part.byteLength === 0) continue
        hash?.update(part)
        await this.#add(draft, part)
      }
    } catch (error) {
      await this.#drop(draft)
      throw error
    }
    const { bytes, file } = draft
    const whole = file === null ? Buffer.concat(draft.pieces) : null
    let dropped = false
    return {
      bytes,
      digest: hash?.digest('hex') ?? '',
      read: () => whole ?? file!.createReadStream({ start: 0, autoClose: false }),
      drop: async () => {
        if (dropped) return
        dropped = true
        await this.#drop(draft)
      },
    }
  }

  async #add(draft: Draft, piece: Buffer): Promise<void> {
    const isSmall = draft.file === null && draft.bytes + piece.byteLength <= SMALL_BYTES
    if (isSmall && this.#memory.take(draft.sharer, piece.byteLength)) {
      draft.pieces.push(piece)
      draft.inMemory += piece.byteLength
    } else {
      await this.#addToFile(draft, piece)
    }
    draft.bytes += piece.byteLength
  }

  async #addToFile(draft: Draft, piece: Buffer): Promise<void> {
    try {
      if (draft.file === null) {
        draft.file = await this.#makeFile()
        for (const heldPiece of draft.pieces) await this.#write(draft, draft.file, heldPiece)
        this.#memory.give(draft.sharer, draft.inMemory)
        draft.inMemory = 0
        draft.pieces = []
      }
      await this.#write(draft, draft.file, piece)
    } catch (cause) {
      throw cause instanceof SpoolFull ? cause : new SpoolFull('the disk does not take it', { cause })
    }
  }

  async #write(draft: Draft, file: FileHandle, piece: Buffer): Promise<void> {
    if (!this.#files.take(draft.sharer, piece.byteLength)) throw new SpoolFull('too much is held')
    draft.inFile += piece.byteLength
    await file.writeFile(piece)
  }

  async #makeFile(): Promise<FileHandle> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    this.#made += 1
    const path = join(this.#folder, `body-${process.pid}-${this.#made}`)
    const file = await open(path, 'wx+', 0o600)
    await unlink(path)
    return file
  }

  async #drop(draft: Draft): Promise<void> {
    this.#memory.give(draft.sharer, draft.inMemory)
    this.#files.give(draft.sharer, draft.inFile)
    draft.pieces = []
    await draft.file?.close()
  }
}

interface Draft {
  readonly sharer: Sharer
  pieces: Buffer[]
  bytes: number
  file: FileHandle | null
  inMemory: number
  inFile: number
}
