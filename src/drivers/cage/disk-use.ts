/** Use of a disk by the files of a worker. */
import { lstat, opendir, readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Limit of files and folders of one worker; each takes some of the disk by itself, and a disk has a limited number.
 */
export const MAX_FILES = 1_000_000
const BLOCK = 512
/** The most processes of the server's namespace, one below the other, that hold a cage. */
const MAX_HOLDERS = 4

/** Space and number of files. */
export interface DiskUse {
  readonly bytes: number
  readonly files: number
}

/**
 * All files below some folders. Stops at {@link MAX_FILES}, and soon after `enoughBytes`. Missing folders
 * count as empty.
 */
export async function filesBelow(folders: readonly string[], enoughBytes: number): Promise<DiskUse> {
  const waiting = [...folders]
  let bytes = 0
  let files = 0
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const entries = await opendir(folder).catch(() => null)
    if (entries === null) continue
    for await (const entry of entries) {
      const path = join(folder, entry.name)
      const stats = await lstat(path).catch(() => null)
      bytes += (stats?.blocks ?? 0) * BLOCK
      files += 1
      if (entry.isDirectory()) waiting.push(path)
      if (bytes > enoughBytes || files > MAX_FILES) return { bytes, files }
    }
  }
  return { bytes, files }
}

/**
 * Files without a name that the processes of a cage hold open; no folder shows them. `files` counts all that they hold
 * open.
 * @param leader the process that holds the cage together
 * @param folder lies on the disk that counts
 */
export async function namelessFiles(leader: number, folder: string): Promise<DiskUse> {
  const use = { bytes: 0, files: 0 }
  const cage = await findNamespaceBelow(leader)
  if (cage === null) return use
  const { dev } = await stat(folder)
  const counted = new Set<number>()
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || (await readNamespace(pid)) !== cage) continue
    for (const name of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const file = await stat(`/proc/${pid}/fd/${name}`).catch(() => null)
      use.files += 1
      if (use.files > MAX_FILES) return use
      if (file === null || !file.isFile() || file.nlink > 0 || file.dev !== dev || counted.has(file.ino)) continue
      counted.add(file.ino)
      use.bytes += file.blocks * BLOCK
    }
  }
  return use
}

/** That of the processes in a cage, which what holds its network may be above. */
async function findNamespaceBelow(leader: number): Promise<string | null> {
  const ownNamespace = await readNamespace('self')
  let pid = String(leader)
  for (let depth = 0; depth < MAX_HOLDERS; depth += 1) {
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
    pid = children.trim().split(' ')[0] ?? ''
    const namespace = await readNamespace(pid)
    if (namespace === '') return null
    if (namespace !== ownNamespace) return namespace
  }
  return null
}

/** A process may end while it is read. */
function readNamespace(pid: string): Promise<string> {
  return readlink(`/proc/${pid}/ns/pid`).catch(() => '')
}
