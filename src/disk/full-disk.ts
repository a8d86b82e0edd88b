/** Room on disks. */
import { statfsSync } from 'node:fs'

/** Free bytes below which a disk counts as full: a file system reserves some blocks for itself. */
const NO_ROOM_BYTES = 65_536

/** True when the disk of a folder has no room for this user. False when that cannot be read. */
export function isDiskFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < NO_ROOM_BYTES
  } catch {
    return false
  }
}

/** True for an error of a write that a disk, or the quota of this user on it, had no room for. */
export function isNoSpaceError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}
