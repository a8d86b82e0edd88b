import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, rmdir, statfs, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { WritingCondition } from '../../core/files/conditions.ts'
import { FileError } from '../../core/files/file-error.ts'
import type { FilePath } from '../../core/files/file-key.ts'
import type { VolumeId } from '../../core/ids.ts'
import type { OpenFile, VolumeFiles } from '../../ports/volume-files.ts'
import { DiskDraft, type FinishedDraft, NamedTurns, type PlaceDraft, placeDraft } from './file-draft.ts'
import { factsFrom, ignoring, readStats, translated } from './file-facts.ts'
import { FileLists, LIST_MS, NAMES_AT_ONCE } from './file-lists.ts'
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
  /** Time after which a list ends early; 15 s by default. */
  readonly listMs?: number
  /** Returns the free bytes of the disk; asks the system by default. */
  readonly freeBytes?: () => Promise<number>
}

/** Files in the folders of volumes, `<root>/<id>`. Needs `/proc`, so Linux. */
export function createVolumeFiles(options: VolumeFilesOptions): VolumeFiles {
  const { root, unique, leftBytes = LEFT_BYTES, namesAtOnce = NAMES_AT_ONCE, listMs = LIST_MS } = options
  const { freeBytes = () => statfs(root).then(({ bavail, bsize }) => bavail * bsize) } = options
  const within = (folder: string, volume: VolumeId) => {
    if (!/^[a-z0-9]{1,63}$/.test(volume)) throw new FileError('NoSuchBucket')
    return join(folder, volume)
  }
  const volumeFolder = (volume: VolumeId) => within(root, volume)
  const draftFolder = (volume: VolumeId) => within(join(root, DRAFTS), volume)
  const lists = new FileLists(namesAtOnce, listMs)
  const turns = new NamedTurns()
  const requireRoom = async (bytes: number) => {
    if ((await freeBytes()) - bytes < leftBytes) throw new FileError('InsufficientStorage')
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
        const placeDraft: PlaceDraft = (draft, path, condition) => place(volume, draft, path, condition)
        return DiskDraft.create(join(folder, `draft-${unique()}`), requireRoom, placeDraft)
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

/**
 * Names an entry without opening it (Linux; Node has no name for it): to open a device that a worker made can do
 * something, and a pipe would wait for its writer.
 */
const O_PATH = 0o10000000

async function openFile(root: string, path: FilePath): Promise<OpenFile | null> {
  const { O_NOFOLLOW, O_RDONLY } = constants
  return inFolder(root, path.slice(0, -1), async folder => {
    const entry = await open(pathIn(folder, path.at(-1)), O_PATH | O_NOFOLLOW).catch(ignoring('ENOENT'))
    if (entry === undefined) return null
    try {
      const stats = await entry.stat({ bigint: true })
      if (!stats.isFile()) return null
      const handle = await open(pathIn(entry), O_RDONLY)
      return { ...factsFrom(stats), read: (first, last) => readBytes(handle, first, last), close: () => handle.close() }
    } finally {
      await entry.close()
    }
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
