/**
 * The download of one file of a model into its blob: it continues a part on disk, and the blob
 * counts only once it was checked.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream, existsSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { ModelFile } from '../../core/models/model-files.ts'
import { ModelError } from '../../core/models/model-problem.ts'
import { moveDurably } from '../../disk/durable-file.ts'
import type { OpenedFile } from './hub.ts'
import { modelErrorFrom } from './hub-connection.ts'

/** End of the names of unfinished files, as in the cache of Hugging Face. */
export const INCOMPLETE = '.incomplete'
/** Blobs never change. Workers that run as other users read them, too. */
const BLOB_FILE = 0o444
const PART_FILE = 0o644

/** Options of {@link downloadBlob}. */
export interface BlobDownload {
  readonly file: ModelFile
  /** Path of the blob. */
  readonly path: string
  readonly signal: AbortSignal
  readonly open: (offset: number) => Promise<OpenedFile>
  /** Called with the number of present bytes; it falls when they have to be downloaded again. */
  readonly received: (bytes: number) => void
}

/**
 * Downloads a file once, from where an earlier download ended.
 * @throws ModelError when it ends early or with another content; the received part is used by the
 * next call, unless it is wrong
 */
export async function downloadBlob(download: BlobDownload): Promise<void> {
  const { file, path, received } = download
  if (existsSync(path)) return received(file.bytes)
  const part = `${path}${INCOMPLETE}`
  const handle = await openPart(part)
  try {
    const { hash, offset } = await resume(handle, part, download)
    received(offset)
    const digest = await fill(handle, hash, offset, download)
    if (digest !== file.hash) {
      rmSync(part, { force: true })
      throw new ModelError({ kind: 'content_wrong', file: file.path, what: 'hash' })
    }
    await handle.chmod(BLOB_FILE)
    await handle.sync()
  } catch (thrown) {
    throw diskProblem(thrown, file.bytes)
  } finally {
    await handle.close()
  }
  moveDurably(part, path)
}

/** An error of the disk as a problem of the model; other errors unchanged. @param neededBytes bytes to be written */
export function diskProblem(thrown: unknown, neededBytes: number): unknown {
  if (thrown instanceof ModelError) return thrown
  const { code, syscall } = thrown as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return new ModelError({ kind: 'disk_full', neededBytes }, thrown)
  return syscall === undefined || code === undefined ? thrown : new ModelError({ kind: 'disk_failed', code }, thrown)
}

async function openPart(part: string): Promise<FileHandle> {
  try {
    return await open(part, existsSync(part) ? 'r+' : 'w+', PART_FILE)
  } catch (thrown) {
    throw diskProblem(thrown, 0)
  }
}

/** Reads the part that is on disk. */
async function resume(
  handle: FileHandle,
  part: string,
  { file, signal }: BlobDownload,
): Promise<{ hash: Hash; offset: number }> {
  const hash = startHash(file)
  const { size } = await handle.stat()
  if (size > file.bytes) {
    await handle.truncate(0)
    return { hash, offset: 0 }
  }
  if (size > 0) {
    for await (const bytes of createReadStream(part, { highWaterMark: 1024 * 1024, end: size - 1, signal }))
      hash.update(bytes)
  }
  return { hash, offset: size }
}

/** Downloads the rest. @returns the hash of the whole */
async function fill(handle: FileHandle, resumed: Hash, start: number, download: BlobDownload): Promise<string> {
  const { file, received, signal } = download
  if (start === file.bytes) return resumed.digest('hex')
  const opened = await download.open(start)
  const { body, host, offset } = opened
  // A hub that ignores ranges sends the whole file again.
  const hash = offset === start ? resumed : startHash(file)
  let at = offset
  if (offset !== start) await handle.truncate(0)
  try {
    for await (const bytes of body as AsyncIterable<Buffer>) {
      if (at + bytes.length > file.bytes) throw new ModelError({ kind: 'content_wrong', file: file.path, what: 'size' })
      await writeAll(handle, bytes, at)
      hash.update(bytes)
      at += bytes.length
      received(at)
    }
  } catch (thrown) {
    const diskError = diskProblem(thrown, file.bytes - at)
    throw diskError instanceof ModelError ? diskError : modelErrorFrom(thrown, host, signal)
  } finally {
    body.destroy()
  }
  if (at < file.bytes) throw new ModelError({ kind: 'hub_unreachable', host, said: 'the connection was cut' })
  return hash.digest('hex')
}

async function writeAll(handle: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += (await handle.write(bytes, written, bytes.length - written, at + written)).bytesWritten
  }
}

function startHash({ algorithm, bytes }: ModelFile): Hash {
  return algorithm === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`)
}
