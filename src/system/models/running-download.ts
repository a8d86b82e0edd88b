/** The download of one revision of a model, which all its callers share. */
import { existsSync, statSync } from 'node:fs'
import type { DownloadProgress } from '../../core/models/download-progress.ts'
import type { ModelFile } from '../../core/models/model-files.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ModelSnapshot } from '../../ports/model-cache.ts'
import { downloadBlob, INCOMPLETE } from './blob-download.ts'
import type { Hub } from './hub.ts'
import type { ModelFolders } from './model-folders.ts'
import { withRetries } from './retries.ts'

/** Runs a limited number of works at a time, the others in their order. */
export class Limiter {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(limit: number) {
    this.#free = limit
  }

  /** Runs one in its turn. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}

/** The model to download. */
export interface WantedModel extends ModelSnapshot {
  /** Revision that its first caller named: a branch, a tag or a commit. */
  readonly revision: string
  readonly files: readonly ModelFile[]
  /** The token; null for a public model. */
  readonly token: string | null
}

/** A download that goes on. */
export class RunningDownload {
  readonly wanted: WantedModel
  readonly #parts
  readonly #ending = new AbortController()
  readonly #listeners = new Set<(progress: DownloadProgress) => void>()
  /** Present bytes of each blob. */
  readonly #received = new Map<string, number>()
  readonly #blobs: ReadonlyMap<string, ModelFile>
  readonly #totalBytes: number
  #receivedBytes = 0
  /** True when the missing bytes have room. */
  hasRoom = false

  constructor(
    wanted: WantedModel,
    parts: {
      readonly folders: ModelFolders
      readonly hub: Hub
      readonly clock: Clock
      readonly limiter: Limiter
      /** The ends of the files that are being downloaded, by their blobs: two revisions of a model may share one. */
      readonly blobs: Map<string, Promise<void>>
      readonly backoffMs: number
    },
  ) {
    this.wanted = wanted
    this.#parts = parts
    this.#blobs = new Map(wanted.files.map(file => [file.hash, file]))
    this.#totalBytes = [...this.#blobs.values()].reduce((sum, { bytes }) => sum + bytes, 0)
    for (const [hash, { bytes }] of this.#blobs) this.#note(hash, this.#bytesOnDisk(hash, bytes))
  }

  /** Its progress. */
  get progress(): { receivedBytes: number; totalBytes: number } {
    return { receivedBytes: this.#receivedBytes, totalBytes: this.#totalBytes }
  }

  /** Number of missing bytes. */
  get missingBytes(): number {
    return this.#totalBytes - this.#receivedBytes
  }

  /** True if it needs this blob. */
  needs(hash: string): boolean {
    return this.#blobs.has(hash)
  }

  /** Calls a listener from time to time. @returns ends the calls */
  watch(listener: (progress: DownloadProgress) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Ends it. Its present bytes stay for the next download. */
  stop(): void {
    this.#ending.abort()
  }

  /** @throws ModelError with the first problem; all its parts have ended then */
  async run(): Promise<void> {
    const { folders, limiter } = this.#parts
    const { name, commit, files } = this.wanted
    const { signal } = this.#ending
    const failures: unknown[] = []
    const parts = [...this.#blobs.values()].map(file =>
      limiter
        .run(() => this.#inTurn(file, () => this.#fetch(file, signal)))
        .catch(thrown => {
          failures.push(thrown)
          this.#ending.abort()
        }),
    )
    await Promise.all(parts)
    if (failures.length > 0) throw failures[0]
    folders.publish(name, commit, files)
  }

  /** One download of a blob at a time; the next one continues its part. */
  #inTurn(file: ModelFile, fetch: () => Promise<void>): Promise<void> {
    const { blobs, folders } = this.#parts
    const path = folders.blobPath(this.wanted.name, file.hash)
    const turn = (blobs.get(path) ?? Promise.resolve()).then(fetch)
    const end = turn
      .catch(() => {})
      .then(() => {
        if (blobs.get(path) === end) blobs.delete(path)
      })
    blobs.set(path, end)
    return turn
  }

  #fetch(file: ModelFile, signal: AbortSignal): Promise<void> {
    const { folders, hub, clock, backoffMs } = this.#parts
    const { name, commit, token } = this.wanted
    const question = { name, revision: commit, token, signal }
    const download = {
      file,
      signal,
      open: (offset: number) => hub.open(question, file.path, offset),
      received: (bytes: number) => this.#note(file.hash, bytes),
    }
    const attempt = () => downloadBlob({ ...download, path: folders.blobPath(name, file.hash) })
    return withRetries({ clock, backoffMs, signal }, attempt, () => this.#received.get(file.hash) ?? 0)
  }

  #note(hash: string, bytes: number): void {
    this.#receivedBytes += bytes - (this.#received.get(hash) ?? 0)
    this.#received.set(hash, bytes)
    if (this.#listeners.size === 0) return
    const { progress } = this
    for (const listener of this.#listeners) listener(progress)
  }

  #bytesOnDisk(hash: string, bytes: number): number {
    const path = this.#parts.folders.blobPath(this.wanted.name, hash)
    if (existsSync(path)) return bytes
    return Math.min(bytes, statSync(`${path}${INCOMPLETE}`, { throwIfNoEntry: false })?.size ?? 0)
  }
}
