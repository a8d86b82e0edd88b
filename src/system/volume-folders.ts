import { chmod, lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { VolumeId } from '../core/ids.ts'
import { ensureFolder, moveDurably } from '../disk/durable-file.ts'
import { removeTree } from '../disk/remove-tree.ts'
import type { VolumeFolders } from '../ports/volume-folders.ts'

/** Folder of the folders that wait to be emptied; no volume can have this id. */
const REMOVED = '.removed'

/** Options of {@link createVolumeFolders}. */
export interface VolumeFoldersOptions {
  /** Absolute path of the folder with all volumes; created at its first use. */
  readonly root: string
  /** Returns a different word at each call. */
  readonly unique: () => string
  /** Called when a removed folder could not be emptied. The next start tries again. */
  readonly onError: (error: unknown) => void
}

/** Folders of volumes, with the removal of their content in the background. */
export interface DiskVolumeFolders extends VolumeFolders {
  /** Empties the remaining folders, also those of an earlier run; resolves when that is done, never fails. */
  sweep(): Promise<void>
}

/**
 * Volumes as folders `<root>/<id>`. A removed folder is first renamed, so that nothing can be put into it by its
 * old path, and then emptied in the background, entry by entry: links are unlinked and never followed.
 */
export function createVolumeFolders({ root, unique, onError }: VolumeFoldersOptions): DiskVolumeFolders {
  const removed = join(root, REMOVED)
  const path = (id: VolumeId) => {
    if (!/^[a-z0-9]{1,63}$/.test(id)) throw new AppError('internal', `'${id}' is not the id of a volume`)
    return join(root, id)
  }
  const emptying = new Map<string, Promise<void>>()
  const empty = (folder: string): Promise<void> => {
    const running = emptying.get(folder)
    if (running !== undefined) return running
    const work = removeTree(folder)
      .catch(onError)
      .finally(() => emptying.delete(folder))
    emptying.set(folder, work)
    return work
  }
  return {
    path,
    async create(id) {
      const folder = path(id)
      ensureFolder(folder)
      if (!(await lstat(folder)).isDirectory()) throw new AppError('internal', `${folder} is not a folder`)
      await chmod(folder, 0o700)
    },
    async remove(id) {
      ensureFolder(removed)
      const folder = join(removed, `${id}-${unique()}`)
      try {
        moveDurably(path(id), folder)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
        throw error
      }
      void empty(folder)
    },
    async sweep() {
      try {
        for (const name of await namesIn(removed)) await empty(join(removed, name))
      } catch (error) {
        onError(error)
      }
    },
  }
}

async function namesIn(folder: string): Promise<string[]> {
  const names: string[] = []
  try {
    for await (const entry of await opendir(folder)) names.push(entry.name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return names
}
