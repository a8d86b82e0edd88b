/** A data directory of bounded size, which the soak fills and empties. It needs the right to mount. */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const SIZE_MB = 1_024
const PIECES = [1 << 20, 1 << 12, 1 << 6, 1] as const

/** A folder, on its own disk if this process may mount one. */
export class BoundedDisk {
  readonly folder: string
  /** Reason for which the folder is not bounded; null if it is. */
  readonly unbounded: string | null

  /** Makes the folder, and mounts a disk there. */
  constructor(folder: string) {
    mkdirSync(folder, { mode: 0o700 })
    const options = `size=${SIZE_MB}m,mode=0700`
    const { status, stderr, error } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'runyard-soak', folder])
    this.folder = folder
    this.unbounded = status === 0 ? null : (error?.message ?? String(stderr).trim())
  }

  /** Megabytes in use. */
  get usedMb(): number {
    const { blocks, bfree, bsize } = statfsSync(this.folder)
    return Math.round(((blocks - bfree) * bsize) / (1 << 20))
  }

  /** Fills it to the last byte. */
  fill(): void {
    const file = openSync(this.#filler, 'w')
    for (const size of PIECES) writeUntilFull(file, Buffer.alloc(size))
    closeSync(file)
  }

  /** Frees the space that {@link fill} took. */
  empty(): void {
    rmSync(this.#filler, { force: true })
  }

  /** Copies its content, which {@link unmount} removes. */
  copyTo(folder: string): void {
    spawnSync('cp', ['--archive', this.folder, folder])
  }

  /** Removes the disk with its content. */
  unmount(): void {
    if (this.unbounded === null) spawnSync('umount', ['--lazy', this.folder])
  }

  get #filler(): string {
    return join(this.folder, 'torture-filler')
  }
}

function writeUntilFull(file: number, piece: Buffer): void {
  try {
    for (;;) writeSync(file, piece)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
