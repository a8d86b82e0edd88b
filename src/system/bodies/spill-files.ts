import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureFolder, removeDurably } from '../../disk/durable-file.ts'
import type { Spill, SpilledBody } from '../../ports/spill.ts'

/** Options of {@link createSpillFiles}. */
export interface SpillFilesOptions {
  /** A folder for these files alone: it is emptied at the start. */
  readonly folder: string
  readonly maxBytes: number
}

/**
 * Keeps bodies in files without a name, which end with the process. A file of a process that ended before it removed
 * the name is removed now.
 * @throws the system's error when the folder cannot be created
 */
export function createSpillFiles({ folder, maxBytes }: SpillFilesOptions): Spill {
  removeDurably(folder)
  ensureFolder(folder)
  let fileCount = 0
  return {
    maxBytes,
    async create() {
      fileCount += 1
      const path = join(folder, `body-${process.pid}-${fileCount}`)
      const file = await open(path, 'wx+', 0o600)
      await unlink(path)
      return spilledBody(file)
    },
  }
}

function spilledBody(file: FileHandle): SpilledBody {
  let bytes = 0
  let dropped: Promise<void> | null = null
  return {
    async append(piece) {
      // A write may take less than it gets.
      for (let at = 0; at < piece.byteLength; ) {
        const { bytesWritten } = await file.write(piece, at, piece.byteLength - at, bytes)
        at += bytesWritten
        bytes += bytesWritten
      }
    },
    async read() {
      const whole = new Uint8Array(bytes)
      for (let at = 0; at < bytes; ) {
        const { bytesRead } = await file.read(whole, at, bytes - at, at)
        if (bytesRead === 0) throw new Error('the file of a body is shorter than it was')
        at += bytesRead
      }
      return whole
    },
    drop() {
      dropped ??= file.close().catch(() => {})
      return dropped
    },
  }
}
