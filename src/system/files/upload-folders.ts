import type { Dirent } from 'node:fs'
import { lstat, mkdir, open, opendir, readFile, rename, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { WritingCondition } from '../../core/files/conditions.ts'
import { FileError } from '../../core/files/file-error.ts'
import type { FilePath } from '../../core/files/file-key.ts'
import type { VolumeId } from '../../core/ids.ts'
import { writeDurably } from '../../disk/durable-file.ts'
import type { FileFacts, FileUpload, PartDraft, UploadPart, VolumeUploads } from '../../ports/volume-files.ts'
import { DiskDraft, type FinishedDraft, type RequireRoom } from './file-draft.ts'
import { ignoring, translated } from './file-facts.ts'

/** Limit of unfinished uploads to one volume. */
const MAX_UPLOADS = 1_000
const COPY_BYTES = 1024 ** 2
/** File of an upload that says where it goes. */
const ABOUT = 'upload.json'

/** Options of {@link UploadFolders}. */
export interface UploadFolderParts {
  /** The folder with the drafts of all volumes. */
  readonly root: string
  /** The folder of the drafts and uploads of one volume. */
  readonly draftFolder: (volume: VolumeId) => string
  readonly place: (
    volume: VolumeId,
    draft: FinishedDraft,
    path: FilePath,
    condition: WritingCondition,
  ) => Promise<FileFacts>
  readonly requireRoom: RequireRoom
  readonly unique: () => string
}

/**
 * Multipart uploads as folders of the server: a file about the upload, and one for each part, whose name has its
 * number, MD5 and size.
 */
export class UploadFolders implements VolumeUploads {
  readonly #parts: UploadFolderParts

  constructor(parts: UploadFolderParts) {
    this.#parts = parts
  }

  async begin(volume: VolumeId, path: FilePath): Promise<FileUpload> {
    return translated(async () => {
      const { draftFolder, unique } = this.#parts
      const folder = draftFolder(volume)
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const uploads = (await listEntries(folder)).filter(entry => entry.isDirectory())
      if (uploads.length >= MAX_UPLOADS) {
        const problem = `the network volume has ${MAX_UPLOADS} unfinished multipart uploads; complete or abort some`
        throw new FileError('SlowDown', problem)
      }
      const upload: FileUpload = { id: unique(), path, startedMs: Date.now() }
      await mkdir(join(folder, upload.id), { mode: 0o700 })
      writeDurably(join(folder, upload.id, ABOUT), JSON.stringify({ path, startedMs: upload.startedMs }))
      return upload
    })
  }

  async find(volume: VolumeId, id: string): Promise<FileUpload | null> {
    return translated(async () => {
      const folder = this.#folder(volume, id)
      if (folder === null) return null
      const text = await readFile(join(folder, ABOUT), 'utf8').catch(ignoring('ENOENT', 'ENOTDIR'))
      return text === undefined ? null : { id, ...(JSON.parse(text) as Omit<FileUpload, 'id'>) }
    })
  }

  async list(volume: VolumeId): Promise<FileUpload[]> {
    const entries = await translated(() => listEntries(this.#parts.draftFolder(volume)))
    const folders = entries.filter(entry => entry.isDirectory())
    const uploads = await Promise.all(folders.map(({ name }) => this.find(volume, name)))
    return uploads.filter(upload => upload !== null).sort((a, b) => a.startedMs - b.startedMs)
  }

  async draft(volume: VolumeId, id: string, bytes: number): Promise<PartDraft> {
    return translated(async () => {
      const folder = this.#folder(volume, id)
      if (folder === null) throw new FileError('NoSuchUpload')
      const { requireRoom, unique } = this.#parts
      await requireRoom(bytes)
      const draft = await DiskDraft.create(join(folder, `draft-${unique()}`), requireRoom, () => {
        throw new FileError('InternalError')
      }).catch((error: NodeJS.ErrnoException) => {
        throw error.code === 'ENOENT' ? new FileError('NoSuchUpload') : error
      })
      return {
        get bytes() {
          return draft.bytes
        },
        append: data => draft.append(data),
        drop: () => draft.drop(),
        keep: (number, md5) => keepPart(folder, draft, number, md5),
      }
    })
  }

  async parts(volume: VolumeId, id: string): Promise<UploadPart[]> {
    return translated(async () => {
      const folder = this.#folder(volume, id)
      if (folder === null) return []
      const parts = (await listEntries(folder)).map(({ name }) => readPartName(name)).filter(part => part !== null)
      const dated = parts.map(async part => {
        const stats = await lstat(join(folder, partName(part))).catch(ignoring('ENOENT'))
        return stats === undefined ? null : { ...part, modifiedMs: stats.mtimeMs }
      })
      return (await Promise.all(dated)).filter(part => part !== null).sort((a, b) => a.number - b.number)
    })
  }

  async complete(
    volume: VolumeId,
    { id, path }: FileUpload,
    parts: readonly UploadPart[],
    condition: WritingCondition,
  ): Promise<FileFacts> {
    return translated(async () => {
      const folder = this.#folder(volume, id)
      if (folder === null) throw new FileError('NoSuchUpload')
      const { draftFolder, requireRoom, unique } = this.#parts
      await requireRoom(parts.reduce((sum, { bytes }) => sum + bytes, 0))
      const whole = await DiskDraft.create(join(draftFolder(volume), `draft-${unique()}`), requireRoom, () => {
        throw new FileError('InternalError')
      })
      try {
        for (const part of parts) await copyInto(whole, join(folder, partName(part)), part.bytes)
        const placed = await this.#parts.place(volume, await whole.finish(), path, condition)
        await rm(folder, { recursive: true, force: true })
        return placed
      } finally {
        await whole.drop()
      }
    })
  }

  async abort(volume: VolumeId, id: string): Promise<void> {
    const folder = this.#folder(volume, id)
    if (folder !== null) await translated(() => rm(folder, { recursive: true, force: true }))
  }

  async removeOld(forMs: number): Promise<void> {
    const { root } = this.#parts
    const beforeMs = Date.now() - forMs
    for (const volume of await listEntries(root)) {
      for (const entry of await listEntries(join(root, volume.name))) {
        const path = join(root, volume.name, entry.name)
        const stats = await lstat(path).catch(ignoring('ENOENT'))
        if (stats !== undefined && stats.mtimeMs < beforeMs) await rm(path, { recursive: true, force: true })
      }
    }
  }

  /** Null for what is not the id of an upload. */
  #folder(volume: VolumeId, id: string): string | null {
    return /^[0-9a-f]{8,64}$/.test(id) ? join(this.#parts.draftFolder(volume), id) : null
  }
}

/** Keeps a part in place of an earlier one with its number. */
async function keepPart(folder: string, draft: DiskDraft, number: number, md5: string): Promise<UploadPart> {
  return translated(async () => {
    const { file, facts } = await draft.finish()
    const part = { number, tag: `"${md5}"`, bytes: draft.bytes }
    await rename(file, join(folder, partName(part))).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? new FileError('NoSuchUpload') : error
    })
    for (const { name } of await listEntries(folder)) {
      if (readPartName(name)?.number === number && name !== partName(part)) {
        await unlink(join(folder, name)).catch(ignoring('ENOENT'))
      }
    }
    return { ...part, modifiedMs: facts.modifiedMs }
  })
}

function partName({ number, tag, bytes }: Pick<UploadPart, 'number' | 'tag' | 'bytes'>): string {
  return `part-${number}-${tag.slice(1, -1)}-${bytes}`
}

function readPartName(name: string): Omit<UploadPart, 'modifiedMs'> | null {
  const match = /^part-(\d{1,5})-([0-9a-f]{32})-(\d{1,16})$/.exec(name)
  return match === null ? null : { number: Number(match[1]), tag: `"${match[2]}"`, bytes: Number(match[3]) }
}

async function copyInto(whole: DiskDraft, file: string, bytes: number): Promise<void> {
  const part = await open(file).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new FileError('InvalidPart') : error
  })
  try {
    const data = new Uint8Array(COPY_BYTES)
    for (let at = 0; at < bytes; ) {
      const { bytesRead } = await part.read(data, 0, data.length, at)
      if (bytesRead === 0) throw new FileError('InvalidPart')
      await whole.append(data.subarray(0, bytesRead))
      at += bytesRead
    }
  } finally {
    await part.close()
  }
}

async function listEntries(folder: string): Promise<Dirent[]> {
  const entries: Dirent[] = []
  const open = await opendir(folder).catch(ignoring('ENOENT', 'ENOTDIR'))
  if (open !== undefined) for await (const entry of open) entries.push(entry)
  return entries
}
