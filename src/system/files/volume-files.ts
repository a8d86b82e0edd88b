import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, rmdir, statfs, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { WritingCondition } from '../../core/files/conditions.ts'
import { FileError } from '../../core/files/file-error.ts'
import type { FilePath } from '../../core/files/file-key.ts'
import type { VolumeId } from '../../core/ids.ts'
import type { OpenFile, VolumeFiles } from '../../ports/volume-files.ts'
import { DiskDraft, type FinishedDraft, NamedTurns, placeDraft } from './file-draft.ts'
import { factsFrom, ignoring, readStats, translated } from './file-facts.ts'
import { FileLists, NAMES_AT_ONCE } from './file-lists.ts'
import { measureFolder } from './measured-folder.ts'
import { inFolder, openFolder, pathIn } from './safe-folder.ts'
import { UploadFolders } from './upload-folders.ts'

/** Folder of drafts beside the volumes, so that workers do not see them; no volume has this id. */
const DRAFTS = '.s3'
const READ_BYTES = 262_144
/** Room on the disk that uploads leave to the database and to workers. */
const LEFT_BYTES = 1024 ** 3

/** Options of {@link createVolumeFiles}. */
export interface VolumeFilesOptions {
  /** Absolute path of the folder with all volumes. */
  readonly root: string
  /** Returns another word of hexadecimal digits at each call. */
  readonly unique: () => string
  /** Bytes that uploads leave free; 1 GiB by default. */
  readonly leftBytes?: number
  /** Names of a folder that a list holds at once; 50,000 by default. */
  readonly namesAtOnce?: number
}

/** Files in the folders of volumes, `<root>/<id>`. Needs `/proc`, so Linux. */
export function createVolumeFiles(options: VolumeFilesOptions): VolumeFiles {
  const { root, unique, leftBytes = LEFT_BYTES, namesAtOnce = NAMES_AT_ONCE } = options
  const within = (folder: string, volume: VolumeId) => {
    if (!/^[a-z0-9]{1,63}$/.test(volume)) throw new FileError('NoSuchBucket')
    return join(folder, volume)
  }
  const volumeFolder = (volume: VolumeId) => within(root, volume)
  const draftFolder = (volume: VolumeId) => within(join(root, DRAFTS), volume)
  const lists = new FileLists(namesAtOnce)
  const turns = new NamedTurns()
  const requireRoom = async (bytes: number) => {
    const { bavail, bsize } = await statfs(root)
    if (bavail * bsize - bytes < leftBytes) throw new FileError('InsufficientStorage')
  }
  const place = (volume: VolumeId, draft: FinishedDraft, path: FilePath, condition: WritingCondition) =>
    translated(() =>
      turns.run([volume, ...path].join('/'), async () => {
        const placed = await placeDraft(volumeFolder(volume), draft, path, condition)
        lists.forget(volumeFolder(volume))
        return placed
      }),
    )
  return {
    open: (volume, path) => translated(() => openFile(volumeFolder(volume), path)),
    facts: (volume, path, isFolder = false) =>
      translated(() =>
        inFolder(volumeFolder(volume), path.slice(0, -1), async folder => {
          const stats = await readStats(pathIn(folder, path.at(-1)))
          if (stats === null || !(isFolder ? stats.isDirectory() : stats.isFile())) return null
          return { ...factsFrom(stats), ...(isFolder ? { bytes: 0 } : {}) }
        }),
      ),
    list: (volume, base, request, signal) => translated(() => lists.list(volumeFolder(volume), base, request, signal)),
    draft: (volume, bytes) =>
      translated(async () => {
        const folder = draftFolder(volume)
        await requireRoom(bytes)
        await mkdir(folder, { recursive: true, mode: 0o700 })
        return DiskDraft.create(join(folder, `draft-${unique()}`), (draft, path, condition) =>
          place(volume, draft, path, condition),
        )
      }),
    makeFolder: (volume, path) =>
      translated(async () => {
        const folder = await openFolder(volumeFolder(volume), path, true)
        await folder?.close()
        lists.forget(volumeFolder(volume))
      }),
    remove: (volume, path, isFolder) =>
      translated(async () => {
        await inFolder(volumeFolder(volume), path.slice(0, -1), async folder => {
          const entry = pathIn(folder, path.at(-1))
          const stats = await readStats(entry)
          if (isFolder && stats?.isDirectory() === true) await rmdir(entry).catch(ignoring('ENOTEMPTY', 'ENOENT'))
          if (!isFolder && stats?.isFile() === true) await unlink(entry).catch(ignoring('ENOENT'))
        })
        lists.forget(volumeFolder(volume))
      }),
    measure: volume =>
      translated(async () => {
        const drafts = measureFolder(draftFolder(volume)).catch(() => 0)
        return (await measureFolder(volumeFolder(volume))) + (await drafts)
      }),
    uploads: new UploadFolders({ root: join(root, DRAFTS), draftFolder, place, requireRoom, unique }),
  }
}

async function openFile(root: string, path: FilePath): Promise<OpenFile | null> {
  const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
  return inFolder(root, path.slice(0, -1), async folder => {
    // A pipe would wait for its writer.
    const opened = open(pathIn(folder, path.at(-1)), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    const handle = await opened.catch(ignoring('ENOENT', 'ELOOP', 'ENXIO', 'ENODEV'))
    if (handle === undefined) return null
    const stats = await handle.stat({ bigint: true })
    if (!stats.isFile()) {
      await handle.close()
      return null
    }
    return { ...factsFrom(stats), read: (first, last) => readBytes(handle, first, last), close: () => handle.close() }
  })
}

async function* readBytes(handle: FileHandle, first: number, last: number): AsyncGenerator<Uint8Array> {
  try {
    for (let at = first; at <= last; ) {
      const data = new Uint8Array(Math.min(READ_BYTES, last - at + 1))
      const { bytesRead } = await handle.read(data, 0, data.length, at)
      // The response is cut off: its length was announced.
      if (bytesRead === 0) throw new Error('the file became shorter while it was read')
      at += bytesRead
      yield bytesRead === data.length ? data : data.subarray(0, bytesRead)
    }
  } finally {
    await handle.close()
  }
}
