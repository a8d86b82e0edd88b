/** Room on disks. */
import { statfsSync } from 'node:fs'

/** Rest of a disk that is full for all purposes: a file system keeps some blocks for itself. */
const NO_ROOM_BYTES = 65_536

/** True when the disk of a folder has no room for this user. False where that cannot be read. */
export function isDiskFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < NO_ROOM_BYTES
  } catch {
    return false
  }
}

/** True when the system has refused a write because a disk, or the quota of this user on it, has no room. */
export function hasFoundNoSpace(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}
