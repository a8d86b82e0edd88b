import { chmod, lstat, opendir, rm, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/** Limit of depth, so that the walk ends; deeper folders stay. */
const MAX_DEPTH = 1_000

/**
 * Removes a folder with its content, one entry at a time, so that a folder of any size needs no more memory than its
 * depth. Links are unlinked and never followed.
 * @throws the system's error; Error for a folder that is nested too deeply
 */
export async function removeTree(path: string, depth = 0): Promise<void> {
  if (!(await lstat(path)).isDirectory()) return unlink(path)
  if (depth > MAX_DEPTH) throw new Error(`${path} is nested too deeply`)
  // A folder that a program made unreadable for itself is removed, too.
  await chmod(path, 0o700)
  for await (const entry of await opendir(path)) {
    const inner = join(path, entry.name)
    if (entry.isDirectory()) await removeTree(inner, depth + 1)
    else await rm(inner, { force: true })
  }
  await rmdir(path)
}
