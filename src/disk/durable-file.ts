/**
 * Files that survive a power cut (docs/adr/0026). A file system may lose unflushed data, and the name of a file is
 * kept in its folder, which is flushed separately. When a function here returns, the change is on stable storage;
 * before, the old state or the new one is.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isNoSpaceError } from './full-disk.ts'

/** For its owner alone. */
const OWN_FILE = 0o600
const OWN_FOLDER = 0o700
/** End of the names of files that are not whole yet. */
export const DRAFT = '.new'

/**
 * Error codes of file systems that cannot flush a folder or have no links, as some of networks and of other systems.
 */
const CANNOT = new Set(['EINVAL', 'ENOSYS', 'ENOTSUP', 'EISDIR', 'EPERM', 'EACCES'])

/**
 * Creates a folder for its owner alone, with its missing parents. An existing one is not changed. @throws the
 * system's error
 */
export function ensureFolder(folder: string): void {
  const missing: string[] = []
  for (let path = resolve(folder); !existsSync(path); path = dirname(path)) missing.unshift(path)
  // One by one: on a file system that creates no folders, such as /proc, the recursive mkdir of Node does not end.
  for (const path of missing) {
    makeFolder(path)
    flushFolder(dirname(path))
  }
  // Fails for the name of a file.
  if (missing.length === 0) makeFolder(resolve(folder))
}

/** Creates a folder, unless another process created it in the meantime. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: OWN_FOLDER })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error
  }
}

/**
 * Writes a file for its owner alone, and replaces an existing one: at each moment one of them exists, whole.
 * @param draft the file before it has its name, in the same folder; differs where several processes may write at once
 * @throws the system's error; the file is then unchanged
 */
export function writeDurably(file: string, content: string | Uint8Array, draft = `${file}${DRAFT}`): void {
  writeFlushed(draft, content)
  renameSync(draft, file)
  flushFolder(dirname(file))
}

/**
 * As {@link writeDurably}, from pieces.
 * @param draft as there
 * @throws the system's error, or that of the pieces; the file is then unchanged
 */
export async function streamDurably(
  file: string,
  pieces: AsyncIterable<Uint8Array>,
  draft = `${file}${DRAFT}`,
): Promise<void> {
  const written = await open(draft, 'w', OWN_FILE)
  try {
    for await (const piece of pieces) await written.writeFile(piece)
    await written.sync()
    renameSync(draft, file)
  } catch (thrown) {
    rmSync(draft, { force: true })
    throw thrown
  } finally {
    await written.close()
  }
  flushFolder(dirname(file))
}

/**
 * As {@link writeDurably}; on a disk without room for another file it overwrites the existing file. Only then a power
 * cut may leave a part of the new content with a part of the old one, so the content should show that it is whole.
 * @throws the system's error, also for a file that does not exist on a full disk
 */
export function writeDurablyOrOver(file: string, content: string, draft: string): void {
  try {
    writeDurably(file, content, draft)
  } catch (error) {
    if (!isNoSpaceError(error)) throw error
    writeOver(file, content)
  }
}

/** @throws the system's error */
function writeOver(file: string, content: string): void {
  const handle = openSync(file, 'r+')
  try {
    const bytes = Buffer.from(content)
    writeSync(handle, bytes, 0, bytes.byteLength, 0)
    ftruncateSync(handle, bytes.byteLength)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** As {@link writeDurably}, unless the file has this content. */
export function keepDurably(file: string, content: string): void {
  if (existsSync(file) && readFileSync(file, 'utf8') === content) return
  writeDurably(file, content)
}

/**
 * Creates a file for its owner alone.
 * @returns false, without effect, for a file that exists, also when another process created it at the same moment
 * @throws the system's error
 */
export function createDurably(file: string, content: string | Uint8Array): boolean {
  if (existsSync(file)) return false
  const draft = `${file}.${process.pid}`
  writeFlushed(draft, content)
  try {
    linkSync(draft, file)
    return true
  } catch (thrown) {
    const { code = '' } = thrown as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    if (!CANNOT.has(code)) throw thrown
    // A file system without links.
    renameSync(draft, file)
    return true
  } finally {
    rmSync(draft, { force: true })
    flushFolder(dirname(file))
  }
}

/** Creates an empty file for its owner alone, unless it exists. @throws the system's error */
export function touchDurably(file: string): void {
  if (existsSync(file)) return
  closeSync(openSync(file, 'a', OWN_FILE))
  flushFolder(dirname(file))
}

/** Gives the file of another program its name, and replaces an existing one. @throws the system's error */
export function settleDurably(draft: string, file: string): void {
  const handle = openSync(draft, 'r+')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  moveDurably(draft, file)
}

/** Moves a file or folder within its file system, and replaces an existing file. @throws the system's error */
export function moveDurably(from: string, to: string): void {
  renameSync(from, to)
  flushFolder(dirname(to))
  if (dirname(from) !== dirname(to)) flushFolder(dirname(from))
}

/** Removes a file, or a folder with its content; without effect when it does not exist. @throws the system's error */
export function removeDurably(path: string): void {
  rmSync(path, { recursive: true, force: true })
  if (existsSync(dirname(path))) flushFolder(dirname(path))
}

function writeFlushed(file: string, content: string | Uint8Array): void {
  // The file of a process that died may be open to others, or be another name of the file itself.
  rmSync(file, { force: true })
  const handle = openSync(file, 'wx', OWN_FILE)
  try {
    writeFileSync(handle, content)
    fsyncSync(handle)
  } catch (thrown) {
    rmSync(file, { force: true })
    throw thrown
  } finally {
    closeSync(handle)
  }
}

/** Puts the names in a folder on stable storage. @throws the system's error */
export function flushFolder(folder: string): void {
  try {
    const handle = openSync(folder, 'r')
    try {
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
  } catch (thrown) {
    if (!CANNOT.has((thrown as NodeJS.ErrnoException).code ?? '')) throw thrown
  }
}
