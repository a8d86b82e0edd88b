import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { type FileHandle, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { ArtifactError } from '../../core/apps/archive.ts'
import { isBuildId } from '../../core/apps/build.ts'
import { AppError } from '../../core/errors.ts'
import type { ArtifactKey, BuildId } from '../../core/ids.ts'
import { ensureFolder, moveDurably, writeDurably } from '../../disk/durable-file.ts'
import { removeTree } from '../../disk/remove-tree.ts'
import type { ArtifactDraft, ArtifactFiles } from '../../ports/artifact-files.ts'
import { unpackArtifact } from './unpack.ts'

/** End of the names of archives. */
const ARCHIVE = '.tar.gz'
/** Begin of the names of files and folders that are not whole, and of folders that are being removed. */
const HIDDEN = '.'
/** End of the name of the note beside a folder that is whole. */
const NOTE = '.whole'

/** Options of {@link createArtifactFiles}. */
export interface ArtifactFilesOptions {
  /** Absolute path of the folder of everything; created at its first use. */
  readonly root: string
  /** Called when a removed folder could not be emptied; the next start tries again. */
  readonly onError: (error: unknown) => void
  /**
   * Prepares an unpacked build for its workers, before anybody sees it. Must not fail.
   * @param folder its present path
   * @param final its path from then on
   */
  readonly prepare?: (folder: string, final: string) => Promise<void>
  /** Name of the present run of the machine; that of Linux by default. */
  readonly bootId?: string
}

/** Archives and folders of builds, with the removal of what an earlier run left. */
export interface DiskArtifactFiles extends ArtifactFiles {
  /** Empties folders that are being removed, and parts of folders of an earlier run. Never fails. */
  sweep(): Promise<void>
}

/**
 * Archives as `<root>/artifacts/<key>.tar.gz`, folders as `<root>/builds/<build>`. A folder is not flushed file by
 * file: it counts as whole in the run of the machine that made it, and is made again of its archive after that.
 */
export function createArtifactFiles({
  root,
  onError,
  prepare,
  bootId = linuxBootId(),
}: ArtifactFilesOptions): DiskArtifactFiles {
  const artifacts = join(root, 'artifacts')
  const builds = join(root, 'builds')
  const archive = (key: ArtifactKey) => join(artifacts, `${checked(key)}${ARCHIVE}`)
  const path = (id: BuildId) => join(builds, checked(id))
  const note = (id: BuildId) => join(builds, `${HIDDEN}${checked(id)}${NOTE}`)
  const hidden = (folder: string) => join(folder, `${HIDDEN}${randomBytes(8).toString('hex')}`)
  const isWhole = (id: BuildId) => {
    try {
      return existsSync(path(id)) && readFileSync(note(id), 'utf8') === bootId
    } catch {
      return false
    }
  }
  const empty = (folder: string) =>
    removeTree(folder).catch(error => {
      // Somebody else removed it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') onError(error)
    })
  const takeAway = async (id: BuildId) => {
    await rm(note(id), { force: true })
    const folder = hidden(builds)
    try {
      // A folder that is for reading alone can be renamed: the right to do so is that of the folder around it.
      await rename(path(id), folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    void empty(folder)
  }
  return {
    path,
    isWhole,
    async draft(key) {
      ensureFolder(artifacts)
      return DiskDraft.create(hidden(artifacts), archive(key))
    },
    async bytes(key) {
      try {
        return (await stat(archive(key))).size
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
    },
    async unpack(id, key, rules) {
      if (isWhole(id)) return null
      ensureFolder(builds)
      const file = archive(key)
      if (!existsSync(file)) throw new ArtifactError('does not exist on this machine')
      await takeAway(id)
      const folder = hidden(builds)
      try {
        const bytes = await unpackArtifact(file, folder, rules)
        await prepare?.(folder, path(id))
        await rename(folder, path(id))
        writeDurably(note(id), bootId)
        return bytes
      } catch (error) {
        await empty(folder)
        throw error
      }
    },
    async unpacked() {
      return (await namesIn(builds)).filter(isBuildId)
    },
    removeFolder: takeAway,
    async removeArtifact(key) {
      await rm(archive(key), { force: true })
    },
    async old(forMs) {
      const keys: ArtifactKey[] = []
      const beforeMs = Date.now() - forMs
      for (const name of await namesIn(artifacts)) {
        const file = join(artifacts, name)
        const facts = await stat(file).catch(() => null)
        if (facts === null || facts.mtimeMs > beforeMs) continue
        const key = name.slice(0, -ARCHIVE.length)
        if (name.startsWith(HIDDEN)) await rm(file, { force: true })
        else if (name.endsWith(ARCHIVE) && isBuildId(key)) keys.push(key as unknown as ArtifactKey)
      }
      return keys
    },
    async sweep() {
      try {
        for (const name of await namesIn(builds)) {
          if (name.startsWith(HIDDEN) && !name.endsWith(NOTE)) await empty(join(builds, name))
        }
      } catch (error) {
        onError(error)
      }
    },
  }
}

/** An archive that is being received. */
class DiskDraft implements ArtifactDraft {
  bytes = 0
  readonly #handle
  readonly #draft
  readonly #file
  #isOpen = true

  private constructor(handle: FileHandle, draft: string, file: string) {
    this.#handle = handle
    this.#draft = draft
    this.#file = file
  }

  static async create(draft: string, file: string): Promise<DiskDraft> {
    return new DiskDraft(await open(draft, 'wx', 0o600), draft, file)
  }

  async append(data: Uint8Array): Promise<void> {
    await this.#handle.writeFile(data)
    this.bytes += data.length
  }

  async keep(): Promise<void> {
    await this.#handle.sync()
    await this.#close()
    moveDurably(this.#draft, this.#file)
  }

  async drop(): Promise<void> {
    await this.#close().catch(() => {})
    await unlink(this.#draft).catch(() => {})
  }

  async #close(): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    await this.#handle.close()
  }
}

/** Ids and keys become names of files. @throws AppError `internal` for another text */
function checked(name: BuildId | ArtifactKey): string {
  if (!isBuildId(name)) throw new AppError('internal', `'${name}' is not the id of a build`)
  return name
}

function linuxBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Other systems have none: folders are made again at each start of the server.
    return randomBytes(16).toString('hex')
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
