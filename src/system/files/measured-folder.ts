import { lstat, opendir } from 'node:fs/promises'
import { ignoring } from './file-facts.ts'
import { inFolder, pathIn } from './safe-folder.ts'

/** Limits of steps, which are entries and the folders on the way to each folder, and of folders that wait. */
const MAX_STEPS = 5_000_000
const MAX_FOLDERS = 100_000

/** The bytes of all files below a folder, as far as the limits allow. Links count nothing, and are not followed. */
export async function measureFolder(root: string, maxSteps = MAX_STEPS): Promise<number> {
  const waiting: string[][] = [[]]
  let bytes = 0
  let steps = 0
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const place = path
    steps += place.length
    if (steps > maxSteps) return bytes
    const counted = inFolder(root, place, async folder => {
      for await (const entry of await opendir(pathIn(folder))) {
        steps += 1
        if (steps > maxSteps) return
        if (entry.isDirectory()) {
          if (waiting.length < MAX_FOLDERS) waiting.push([...place, entry.name])
        } else if (entry.isFile()) {
          // A file that was removed in between counts nothing.
          bytes += (await lstat(pathIn(folder, entry.name)).catch(() => null))?.size ?? 0
        }
      }
    })
    // A folder of a worker may be closed to the server.
    await (place.length === 0 ? counted : counted.catch(ignoring('EACCES')))
  }
  return bytes
}
