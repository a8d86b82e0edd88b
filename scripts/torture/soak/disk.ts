/** A data directory of bounded size, which the soak fills and empties. It needs the right to mount. */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const SIZE_MB = 1_024
const PIECES = [1 << 20, 1 << 12, 1 << 6, 1] as const

/** A folder, on a disk of its own where this process may mount one. */
export class BoundedDisk {
  readonly folder: string
  /** Why the folder is not bounded; null where it is. */
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

  /** Frees what {@link fill} took. */
  empty(): void {
    rmSync(this.#filler, { force: true })
  }

  /** Copies what is on it, so that it can be looked at after {@link unmount}. */
  copyTo(folder: string): void {
    spawnSync('cp', ['--archive', this.folder, folder])
  }

  /** Takes the disk away, with all that is on it. */
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
