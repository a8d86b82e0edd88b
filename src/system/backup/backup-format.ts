/**
 * The file of a backup: a line that names the format, a line with the header, then pieces of files, each a line with
 * its name and length before its bytes, and at the end a line with the SHA-256 of all previous bytes. The pieces of
 * one file follow each other.
 */
import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { AppError } from '../../core/errors.ts'

const MAGIC = 'runyard backup 1\n'
const MAX_LINE_BYTES = 1024 * 1024
/** Maximum bytes of a piece. */
export const PIECE_BYTES = 1024 * 1024
const NEWLINE = 10
/** The last line. */
const END = /^\{"sha256":"[\da-f]{64}"\}\n$/
const END_BYTES = '{"sha256":""}\n'.length + 64

/** Description of a backup in its header. */
export interface BackupHeader {
  /** Version of Runyard that made it. */
  readonly version: string
  /** Number of the newest step of the schema of its database; null without a database. */
  readonly schema: number | null
  readonly createdAt: string
  readonly keys: 'sealed' | 'left out'
  /** True if the encryption key of the server is in RUNYARD_MASTER_KEY, which no backup contains. */
  readonly keyIsGiven: boolean
  /**
   * The address, without its password, of a PostgreSQL whose content is not in the backup. Null for a database in the
   * backup.
   */
  readonly postgres: string | null
  /** Bytes of all files in it. */
  readonly bytes: number
}

/** A piece of a file in a backup. */
export interface BackupPiece {
  /** Path of the file in the data directory. */
  readonly name: string
  readonly bytes: Uint8Array
}

/** The bytes of a backup. */
export async function* writeBackup(header: BackupHeader, pieces: AsyncIterable<BackupPiece>): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  const hashed = (bytes: Uint8Array | string) => {
    const buffer = Buffer.from(bytes as Uint8Array)
    hash.update(buffer)
    return buffer
  }
  yield hashed(`${MAGIC}${JSON.stringify(header)}\n`)
  for await (const { name, bytes } of pieces) {
    yield hashed(`${JSON.stringify({ name, bytes: bytes.byteLength })}\n`)
    yield hashed(bytes)
  }
  yield Buffer.from(`${JSON.stringify({ sha256: hash.digest('hex') })}\n`)
}

/**
 * True if a file begins and ends like a backup: one that was cut off, as on a full disk, or that another program
 * emptied, does not. The rest is not read, so its checksum is for {@link readBackup}. False for a file that cannot be
 * read.
 */
export function isWholeBackup(file: string): boolean {
  try {
    const handle = openSync(file, 'r')
    try {
      const { size } = fstatSync(handle)
      if (size < MAGIC.length + END_BYTES || textAt(handle, 0, MAGIC.length) !== MAGIC) return false
      return END.test(textAt(handle, size - END_BYTES, END_BYTES))
    } finally {
      closeSync(handle)
    }
  } catch {
    return false
  }
}

function textAt(handle: number, position: number, bytes: number): string {
  const buffer = Buffer.alloc(bytes)
  return buffer.toString('latin1', 0, readSync(handle, buffer, 0, bytes, position))
}

/** A backup that is being read. */
export interface ReadBackup {
  readonly header: BackupHeader
  /** Its pieces. Throws at the end unless the backup is whole, so its pieces do not count before that. */
  readonly pieces: AsyncGenerator<BackupPiece>
}

/**
 * Reads a backup.
 * @throws AppError `invalid` for a file that is no backup, was cut off or was changed
 */
export async function readBackup(source: AsyncIterable<Uint8Array>): Promise<ReadBackup> {
  const input = new Input(source)
  if ((await input.line()) !== MAGIC.trimEnd())
    throw invalid('it is not a backup of Runyard, or one of a newer version')
  const header = (await input.object()) as BackupHeader
  return { header, pieces: readPieces(input) }
}

async function* readPieces(input: Input): AsyncGenerator<BackupPiece> {
  for (;;) {
    const sum = input.sum()
    const line = (await input.object()) as { name?: string; bytes?: number; sha256?: string }
    if (line.sha256 !== undefined) {
      if (line.sha256 !== sum) throw invalid('its checksum is wrong: it was changed')
      if (!(await input.isOver())) throw invalid('something follows its end')
      return
    }
    const { name, bytes = -1 } = line
    if (name === undefined || !Number.isInteger(bytes) || bytes < 0 || bytes > PIECE_BYTES) throw damaged()
    yield { name, bytes: await input.take(bytes) }
  }
}

/** Lines and lengths of bytes out of pieces of any size. */
class Input {
  readonly #source: AsyncIterator<Uint8Array>
  readonly #hash = createHash('sha256')
  #held: Buffer = Buffer.alloc(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** SHA-256 of all bytes that were read. */
  sum(): string {
    return this.#hash.copy().digest('hex')
  }

  async line(): Promise<string> {
    let end = this.#held.indexOf(NEWLINE)
    while (end < 0) {
      if (this.#held.length > MAX_LINE_BYTES) throw damaged()
      if (!(await this.#hold(this.#held.length + 1))) throw invalid('it is cut off')
      end = this.#held.indexOf(NEWLINE)
    }
    return (await this.take(end + 1)).toString('utf8').trimEnd()
  }

  /** A line with an object. */
  async object(): Promise<object> {
    const line = await this.line()
    try {
      return Object(JSON.parse(line)) as object
    } catch {
      throw damaged()
    }
  }

  async take(bytes: number): Promise<Buffer> {
    if (!(await this.#hold(bytes))) throw invalid('it is cut off')
    const part = this.#held.subarray(0, bytes)
    this.#held = this.#held.subarray(bytes)
    this.#hash.update(part)
    return part
  }

  async isOver(): Promise<boolean> {
    return this.#held.length === 0 && !(await this.#hold(1))
  }

  /** Reads until at least this many bytes are held. @returns false at an earlier end */
  async #hold(bytes: number): Promise<boolean> {
    const parts = [this.#held]
    let length = this.#held.length
    while (length < bytes) {
      const { value, done } = await this.#source.next()
      if (done === true) return false
      parts.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
      length += value.byteLength
    }
    // Once for all parts: a piece arrives in many.
    if (parts.length > 1) this.#held = Buffer.concat(parts)
    return true
  }
}

function damaged(): AppError {
  return invalid('it is damaged')
}

function invalid(problem: string): AppError {
  return new AppError('invalid', `the backup cannot be used: ${problem}`)
}
