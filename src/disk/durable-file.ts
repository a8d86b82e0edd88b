/**
 * Files that survive a power cut (docs/adr/0026). A file system may forget what was not flushed, and the name of a file is kept in
 * its folder, which is flushed apart. When a function here returns, the change is on stable storage; before, the old state or the new one is.
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
import { hasFoundNoSpace } from './full-disk.ts'

/** For its owner alone. */
const OWN_FILE = 0o600
const OWN_FOLDER = 0o700
/** How the names of files end that are not whole yet. */
export const DRAFT = '.new'

/** What a file system answers that cannot flush a folder or has no links: some of networks and of other systems. */
const CANNOT = new Set(['EINVAL', 'ENOSYS', 'ENOTSUP', 'EISDIR', 'EPERM', 'EACCES'])

/** Makes a folder for its owner alone, with those above it that are missing. One that is there stays as it is. @throws the system's error */
export function ensureFolder(folder: string): void {
  const missing: string[] = []
  for (let path = resolve(folder); !existsSync(path); path = dirname(path)) missing.unshift(path)
  // One by one: where a file system makes no folders, such as /proc, the recursive mkdir of Node does not end.
  for (const path of missing) {
    makeFolder(path)
    flushFolder(dirname(path))
  }
  // Fails where a file has this name.
  if (missing.length === 0) makeFolder(resolve(folder))
}

/** Makes a folder, unless another process made it meanwhile. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: OWN_FOLDER })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error
  }
}

/**
 * Writes a file for its owner alone, in place of the one that may be there: at each moment one of them is there, whole.
 * @param draft the file that it is before, in the same folder; differs where several processes may write at once
 * @throws the system's error; the file is then as it was
 */
export function writeDurably(file: string, content: string | Uint8Array, draft = `${file}${DRAFT}`): void {
  writeFlushed(draft, content)
  renameSync(draft, file)
  flushFolder(dirname(file))
}

/**
 * As {@link writeDurably}, of pieces as they come.
 * @param draft as there
 * @throws the system's error, or what the pieces threw; the file is then as it was
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
 * As {@link writeDurably}, and on a disk that has no room for another file in place of the content of the one that is there, whose room it takes. Only
 * then a power cut may leave a part of the new content with a part of the old one, so the content is to show that it is whole.
 * @throws the system's error, also when there is no such file on a full disk
 */
export function writeDurablyOrOver(file: string, content: string, draft: string): void {
  try {
    writeDurably(file, content, draft)
  } catch (error) {
    if (!hasFoundNoSpace(error)) throw error
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

/** As {@link writeDurably}, where the file has another content. */
export function keepDurably(file: string, content: string): void {
  if (existsSync(file) && readFileSync(file, 'utf8') === content) return
  writeDurably(file, content)
}

/**
 * Makes a file for its owner alone that is not there yet.
 * @returns false, and nothing happens, when it is there, from before or from another process at the same moment
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

/** Makes an empty file for its owner alone, unless it is there. @throws the system's error */
export function touchDurably(file: string): void {
  if (existsSync(file)) return
  closeSync(openSync(file, 'a', OWN_FILE))
  flushFolder(dirname(file))
}

/** Gives a file that another program has written its name, in place of the one that may be there. @throws the system's error */
export function settleDurably(draft: string, file: string): void {
  const handle = openSync(draft, 'r+')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  moveDurably(draft, file)
}

/** Moves a file or folder within its file system, in place of the file that may be there. @throws the system's error */
export function moveDurably(from: string, to: string): void {
  renameSync(from, to)
  flushFolder(dirname(to))
  if (dirname(from) !== dirname(to)) flushFolder(dirname(from))
}

/** Removes a file, or a folder with all that is in it; nothing happens when it is not there. @throws the system's error */
export function removeDurably(path: string): void {
  rmSync(path, { recursive: true, force: true })
  if (existsSync(dirname(path))) flushFolder(dirname(path))
}

function writeFlushed(file: string, content: string | Uint8Array): void {
  // What a process that died has left may be open to others, or be another name of the file itself.
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
