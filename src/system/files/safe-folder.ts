/**
 * Ways through folders that other programs change at the same time. Each folder is opened below the one before, which
 * `/proc/self/fd` names, and no link is followed: what a worker moves or links in between leads nowhere else.
 */
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { FileError, type FileErrorCode } from '../../core/files/file-error.ts'
import type { FilePath } from '../../core/files/file-key.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants
const FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW

/** The path of an entry of an open folder, wherever the folder is by now. */
export function pathIn(folder: FileHandle, name = ''): string {
  return `/proc/self/fd/${folder.fd}${name === '' ? '' : `/${name}`}`
}

/**
 * Opens a folder below another one; null if a part of the path is missing, a file or a link.
 * @param root its path belongs to the server
 * @param makes true to make missing folders
 * @throws FileError `NoSuchBucket` without the root; with `makes`, `InvalidArgument` for what is in the way
 */
export async function openFolder(root: string, path: FilePath, makes = false): Promise<FileHandle | null> {
  let folder = await open(root, FOLDER).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new FileError('NoSuchBucket') : error
  })
  for (const name of path) {
    try {
      const inner = await openOne(folder, name, makes)
      await folder.close()
      folder = inner
    } catch (error) {
      await folder.close()
      const { code } = error as NodeJS.ErrnoException
      const isInWay = code === 'ENOTDIR' || code === 'ELOOP'
      if (makes && isInWay)
        throw new FileError('InvalidArgument', `'${name}' of the key is a file or a link, not a folder`)
      if (isInWay || code === 'ENOENT') return null
      throw error
    }
  }
  return folder
}

async function openOne(folder: FileHandle, name: string, makes: boolean): Promise<FileHandle> {
  const path = pathIn(folder, name)
  try {
    return await open(path, FOLDER)
  } catch (error) {
    if (!makes || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await mkdir(path, 0o755).catch((thrown: NodeJS.ErrnoException) => {
      if (thrown.code !== 'EEXIST') throw thrown
    })
    return open(path, FOLDER)
  }
}

/** Opens a folder as {@link openFolder} for as long as `use` runs; null without the folder. */
export async function inFolder<Value>(
  root: string,
  path: FilePath,
  use: (folder: FileHandle) => Promise<Value>,
): Promise<Value | null> {
  const folder = await openFolder(root, path)
  if (folder === null) return null
  try {
    return await use(folder)
  } finally {
    await folder.close()
  }
}

const CODES: Readonly<Record<string, readonly [FileErrorCode, string?]>> = {
  ENOSPC: ['InsufficientStorage'],
  EDQUOT: ['InsufficientStorage'],
  ENAMETOOLONG: ['KeyTooLongError', 'a name of the key is too long for the disk of the volume'],
  EISDIR: ['InvalidArgument', 'a folder has this name'],
  EACCES: ['AccessDenied', 'the user of the server may not do this in the network volume'],
  EPERM: ['AccessDenied', 'the user of the server may not do this in the network volume'],
  EROFS: ['AccessDenied', 'the network volume can only be read'],
}

/** The error that a client gets for one of the system; others are left as they are. */
export function fileError(thrown: unknown): unknown {
  const [code, message] = CODES[(thrown as NodeJS.ErrnoException | null)?.code ?? ''] ?? []
  return code === undefined ? thrown : new FileError(code, message, { cause: thrown })
}
