import { type FileHandle, link, open, rename, unlink } from 'node:fs/promises'
import { matches, type WritingCondition } from '../../core/files/conditions.ts'
import { FileError } from '../../core/files/file-error.ts'
import type { FilePath } from '../../core/files/file-key.ts'
import type { FileDraft, FileFacts } from '../../ports/volume-files.ts'
import { factsFrom, readStats, translated } from './file-facts.ts'
import { openFolder, pathIn } from './safe-folder.ts'

/** A finished file that waits for its place. */
export interface FinishedDraft {
  readonly file: string
  readonly facts: FileFacts
}

/** Resolves if the disk has room for more bytes. @throws FileError `InsufficientStorage` */
export type RequireRoom = (bytes: number) => Promise<void>

/** Puts a finished draft at its place. */
export type PlaceDraft = (draft: FinishedDraft, path: FilePath, condition: WritingCondition) => Promise<FileFacts>

/** Bytes of a draft after which the room on the disk is checked again: other uploads and workers take of it. */
const CHECK_BYTES = 4 * 1024 ** 2

/** A file that nobody else sees yet, in a folder of the server. */
export class DiskDraft implements FileDraft {
  readonly file: string
  bytes = 0
  readonly #handle: FileHandle
  readonly #requireRoom: RequireRoom
  readonly #place: PlaceDraft
  #uncheckedBytes = 0
  #isClosed = false

  private constructor(handle: FileHandle, file: string, requireRoom: RequireRoom, place: PlaceDraft) {
    this.#requireRoom = requireRoom
    this.#handle = handle
    this.file = file
    this.#place = place
  }

  /** Makes a new file. */
  static async create(file: string, requireRoom: RequireRoom, place: PlaceDraft): Promise<DiskDraft> {
    return new DiskDraft(await open(file, 'wx', 0o644), file, requireRoom, place)
  }

  append(data: Uint8Array): Promise<void> {
    return translated(async () => {
      this.#uncheckedBytes += data.length
      if (this.#uncheckedBytes >= CHECK_BYTES) {
        await this.#requireRoom(0)
        this.#uncheckedBytes = 0
      }
      await this.#handle.writeFile(data)
      this.bytes += data.length
    })
  }

  /** Writes it to stable storage and closes it. */
  finish(): Promise<FinishedDraft> {
    return translated(async () => {
      await this.#handle.sync()
      const facts = factsFrom(await this.#handle.stat({ bigint: true }))
      await this.#close()
      return { file: this.file, facts }
    })
  }

  async place(path: FilePath, condition: WritingCondition): Promise<FileFacts> {
    return this.#place(await this.finish(), path, condition)
  }

  async drop(): Promise<void> {
    await this.#close().catch(() => {})
    await unlink(this.file).catch(() => {})
  }

  async #close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#handle.close()
  }
}

/**
 * Puts a finished draft at its place in a volume, in one step. @param root the folder of the volume
 * @throws FileError as {@link FileDraft.place}
 */
export async function placeDraft(
  root: string,
  { file, facts }: FinishedDraft,
  path: FilePath,
  condition: WritingCondition,
): Promise<FileFacts> {
  const folder = await openFolder(root, path.slice(0, -1), true)
  if (folder === null) throw removedMeanwhile()
  try {
    const target = pathIn(folder, path.at(-1))
    if (condition === 'absent') {
      // Unlike a rename, a link never replaces.
      await link(file, target).catch((error: NodeJS.ErrnoException) => {
        throw error.code === 'EEXIST' ? new FileError('PreconditionFailed', 'there is a file with this key') : error
      })
      await unlink(file)
    } else {
      if (condition !== null) await requireTag(target, condition.tags)
      await rename(file, target)
    }
    await folder.sync()
    return facts
  } catch (error) {
    // An open folder that a worker removed takes no file.
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? removedMeanwhile(error) : error
  } finally {
    await folder.close()
  }
}

function removedMeanwhile(cause?: unknown): FileError {
  return new FileError('ServiceUnavailable', 'a folder of the key was moved or removed meanwhile', { cause })
}

async function requireTag(target: string, tags: string): Promise<void> {
  const stats = await readStats(target)
  if (stats === null || !stats.isFile()) throw new FileError('NoSuchKey')
  if (!matches(tags, factsFrom(stats).tag)) throw new FileError('PreconditionFailed')
}

/** Runs what has the same name one after another. */
export class NamedTurns {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<Value>(name: string, act: () => Promise<Value>): Promise<Value> {
    const turn = (this.#last.get(name) ?? Promise.resolve()).then(act)
    const settled = turn.catch(() => {})
    this.#last.set(name, settled)
    try {
      return await turn
    } finally {
      if (this.#last.get(name) === settled) this.#last.delete(name)
    }
  }
}
