/** Ends workers in cages that fill the disk: an ordinary file system bounds nobody. */
import { statfsSync } from 'node:fs'
import type { WorkerId } from '../../core/ids.ts'
import type { ExitCause } from '../../core/workers/worker-exit.ts'
import type { Clock } from '../../ports/clock.ts'
import { filesBelow, MOST_FILES, namelessFiles } from './disk-use.ts'

const EVERY_MS = 5_000
/** How much of the disk is gone before it is looked where it went. */
const NOTEWORTHY_BYTES = 64 * 1024 * 1024
/** Others may free as much as a worker takes, so it is looked from time to time in any case. */
const MOST_SKIPPED = 24
const GB = 1_000_000_000
const MOST_GB = 100
const NOTHING = { bytes: 0, files: 0 }

/** A worker whose disk is watched. */
export interface WatchedDisk {
  readonly worker: WorkerId
  /** The process that holds its cage together. */
  readonly pid: number
  /** All that is its own. */
  readonly folders: readonly string[]
}

/** What {@link CageDisks} needs. */
export interface CageDisksOptions {
  readonly clock: Clock
  /** Where the folders of workers are. */
  readonly folder: string
  /** How much each may write, in GB; null for half of what is free, at most 100, and 0 for no limit. */
  readonly mostGb: number | null
  readonly workers: () => readonly WatchedDisk[]
  /** Ends one. @param fault what it did */
  readonly end: (worker: WorkerId, fault: ExitCause) => void
}

/** How much a worker may write where nobody said so, in GB. */
export function usualDiskGb(freeBytes: number): number {
  return Math.min(MOST_GB, Math.max(1, Math.floor(freeBytes / 2 / GB)))
}

/** Looks at the disk for as long as it is not closed. */
export class CageDisks {
  readonly #options: CageDisksOptions
  readonly #mostGb: number
  #freeBytes = Number.POSITIVE_INFINITY
  #skipped = 0
  #cancel: () => void = () => {}
  #closed = false

  constructor(options: CageDisksOptions) {
    this.#options = options
    this.#mostGb = options.mostGb ?? usualDiskGb(freeOf(options.folder))
    if (this.#mostGb > 0) this.#soon()
  }

  /** Stops looking. */
  close(): void {
    this.#closed = true
    this.#cancel()
  }

  #soon(): void {
    if (this.#closed) return
    this.#cancel = this.#options.clock.after(EVERY_MS, () => {
      void this.#look()
        .catch(() => {})
        .finally(() => this.#soon())
    })
  }

  async #look(): Promise<void> {
    const { folder, workers, end } = this.#options
    const watched = workers()
    if (watched.length === 0) return
    const free = freeOf(folder)
    const isQuiet = free > this.#freeBytes - NOTEWORTHY_BYTES && this.#skipped < MOST_SKIPPED
    this.#skipped = isQuiet ? this.#skipped + 1 : 0
    // Slow writers add up: what is compared with is what was free when it was looked last.
    if (isQuiet) return
    this.#freeBytes = free
    for (const { worker, pid, folders } of watched) {
      const most = this.#mostGb * GB
      const named = await filesBelow(folders, most)
      const nameless = named.bytes > most ? NOTHING : await namelessFiles(pid, folder)
      if (this.#closed) return
      if (Math.max(named.files, nameless.files) > MOST_FILES) end(worker, { kind: 'too_many_files', limit: MOST_FILES })
      else if (named.bytes + nameless.bytes > most) {
        end(worker, { kind: 'disk_full', limitGb: this.#mostGb, of: 'cage' })
      }
    }
  }
}

function freeOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
