/** The end of temporary folders. */
import { chmodSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const REMOVAL = { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }

/**
 * Removes a folder and what is in it, also where it has folders that their owner may not open or change, such as
 * layers of images and models.
 */
export function removeFolder(folder: string): void {
  try {
    rmSync(folder, REMOVAL)
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    openFolders(folder)
    rmSync(folder, REMOVAL)
  }
}

function openFolders(folder: string): void {
  // Folders of other users, and files that others remove at the same time, are left to rmSync, which reports the rest.
  try {
    if (!lstatSync(folder).isDirectory()) return
    chmodSync(folder, 0o700)
    for (const name of readdirSync(folder)) openFolders(join(folder, name))
  } catch {}
}
