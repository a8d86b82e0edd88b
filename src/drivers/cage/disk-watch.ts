/** Ends workers in cages that fill the disk: an ordinary file system has no limit for each of them. */
import { statfsSync } from 'node:fs'
import type { WorkerId } from '../../core/ids.ts'
import type { ExitCause } from '../../core/workers/worker-exit.ts'
import type { Clock } from '../../ports/clock.ts'
import { filesBelow, MAX_FILES, namelessFiles } from './disk-use.ts'

const EVERY_MS = 5_000
/** Loss of free bytes after which the use of each worker is measured. */
const NOTEWORTHY_BYTES = 64 * 1024 * 1024
/** Limit of checks in a row without a measurement: other programs may free as much as a worker takes. */
const MAX_SKIPPED = 24
const GB = 1_000_000_000
/** Limit of the default, in GB. */
const MAX_DEFAULT_GB = 100
const NOTHING = { bytes: 0, files: 0 }

/** A worker whose disk is watched. */
export interface WatchedDisk {
  readonly worker: WorkerId
  /** The process that holds its cage together. */
  readonly pid: number
  /** Its own folders. */
  readonly folders: readonly string[]
  /** The cache that it shares with other workers of its endpoint; null without one. */
  readonly cache: string | null
}

/** The default limit of a worker, in GB. */
export function usualDiskGb(freeBytes: number): number {
  return Math.min(MAX_DEFAULT_GB, Math.max(1, Math.floor(freeBytes / 2 / GB)))
}

/**
 * The default limit of the cache of an endpoint, in GB. Models that its workers download lie in it, so it may be
 * large.
 */
export function usualCacheGb(folder: string): number {
  return Math.max(1, Math.floor(readFreeBytes(folder) / 2 / GB))
}

/** Checks the disk until it is closed. */
export class CageDisks {
  readonly #options
  readonly #limitGb: number
  #freeBytes = Number.POSITIVE_INFINITY
  #skipped = 0
  #cancel: () => void = () => {}
  #closed = false

  constructor(options: {
    readonly clock: Clock
    /** The folder of the folders of workers. */
    readonly folder: string
    /** Limit of each worker, in GB; null for half of the free space, at most 100, and 0 for no limit. */
    readonly limitGb: number | null
    /** The limit of each cache, in GB; 0 for no limit. */
    readonly cacheLimitGb: number
    readonly workers: () => readonly WatchedDisk[]
    /** Ends a worker. @param fault why */
    readonly end: (worker: WorkerId, fault: ExitCause) => void
  }) {
    this.#options = options
    this.#limitGb = options.limitGb ?? usualDiskGb(readFreeBytes(options.folder))
    if (this.#limitGb > 0 || options.cacheLimitGb > 0) this.#soon()
  }

  /** Stops the checks. */
  close(): void {
    this.#closed = true
    this.#cancel()
  }

  #soon(): void {
    if (this.#closed) return
    this.#cancel = this.#options.clock.after(EVERY_MS, () => {
      void this.#check()
        .catch(() => {})
        .finally(() => this.#soon())
    })
  }

  async #check(): Promise<void> {
    const { folder, workers } = this.#options
    const watched = workers()
    if (watched.length === 0) return
    const freeBytes = readFreeBytes(folder)
    const isQuiet = freeBytes > this.#freeBytes - NOTEWORTHY_BYTES && this.#skipped < MAX_SKIPPED
    this.#skipped = isQuiet ? this.#skipped + 1 : 0
    // Slow writers add up, so the free bytes of the last measurement are compared.
    if (isQuiet) return
    this.#freeBytes = freeBytes
    if (this.#limitGb > 0) await this.#checkWorkers(watched)
    if (this.#options.cacheLimitGb > 0) await this.#checkCaches(watched)
  }

  async #checkWorkers(watched: readonly WatchedDisk[]): Promise<void> {
    const { folder, end } = this.#options
    const most = this.#limitGb * GB
    for (const { worker, pid, folders } of watched) {
      const named = await filesBelow(folders, most)
      const nameless = named.bytes > most ? NOTHING : await namelessFiles(pid, folder)
      if (this.#closed) return
      if (Math.max(named.files, nameless.files) > MAX_FILES) end(worker, { kind: 'too_many_files', limit: MAX_FILES })
      else if (named.bytes + nameless.bytes > most) {
        end(worker, { kind: 'disk_full', limitGb: this.#limitGb, of: 'cage' })
      }
    }
  }

  /** The worker that filled a cache is unknown, so all that have it end; it is removed with the last of them. */
  async #checkCaches(watched: readonly WatchedDisk[]): Promise<void> {
    const { cacheLimitGb, end } = this.#options
    for (const cache of new Set(watched.flatMap(worker => worker.cache ?? []))) {
      const { bytes, files } = await filesBelow([cache], cacheLimitGb * GB)
      if (this.#closed) return
      if (bytes <= cacheLimitGb * GB && files <= MAX_FILES) continue
      const fault: ExitCause =
        files > MAX_FILES
          ? { kind: 'too_many_files', limit: MAX_FILES }
          : { kind: 'disk_full', limitGb: cacheLimitGb, of: 'cache' }
      for (const { worker } of watched.filter(other => other.cache === cache)) end(worker, fault)
    }
  }
}

function readFreeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
