import type { OwnerId, WorkerId } from '../core/ids.ts'
import type { DownloadProgress } from '../core/models/download-progress.ts'

/** Account that reads a model. */
export interface ModelReader {
  readonly owner: OwnerId
  /** The account's token for the hub; null without one. */
  readonly token: string | null
}

/** A model that is wanted. */
export interface ModelWish {
  /** `owner/name`. */
  readonly name: string
  /** A branch, a tag or a commit. */
  readonly revision: string
  /** The commit that the revision means; null to ask the hub. */
  readonly commit: string | null
  readonly reader: ModelReader
}

/** A model in the cache, complete and checked. */
export interface ModelSnapshot {
  /** `owner/name`. */
  readonly name: string
  readonly commit: string
}

/** One revision of a model in the cache. */
export interface CachedModel extends ModelSnapshot {
  /** Branches and tags that mean this commit here. */
  readonly refs: readonly string[]
  readonly bytes: number
  readonly usedAtMs: number
  /** Workers that have it. */
  readonly workers: number
  /** True if only those accounts may use it whose token the hub accepted for it. */
  readonly isRestricted: boolean
}

/** Follows a {@link ModelCache.fetch}. */
export interface ModelWatch {
  /** Its reader may have the model, whose revision means this commit. The download begins when it resolves. */
  resolved?(commit: string): Promise<void>
  /** Another part was downloaded. */
  progress?(progress: DownloadProgress): void
}

/** A running download. */
export interface ModelDownload extends DownloadProgress {
  readonly name: string
  readonly revision: string
}

/** Content of the cache, with the running downloads. */
export interface ModelCacheContent {
  readonly models: readonly CachedModel[]
  readonly downloads: readonly ModelDownload[]
  readonly usedBytes: number
  readonly limitBytes: number
}

/** Models on the disk of this machine, in the layout of the cache of Hugging Face. */
export interface ModelCache {
  /** The folder that holds `models--owner--name` folders, absolute. */
  readonly hubFolder: string
  /**
   * Downloads a model unless the cache has it. Calls for the same model share one download, and a download continues
   * with the parts that a killed one left. The model is not removed for the next minutes.
   * @throws ModelError when the download fails, or when this reader may not have the model
   */
  fetch(wish: ModelWish, watch?: ModelWatch): Promise<ModelSnapshot>
  /** The model, as from {@link fetch}, if that takes no call to the hub; otherwise null. */
  ready(wish: ModelWish): ModelSnapshot | null
  /**
   * Keeps models for a worker until {@link letGo}. Survives a restart of the server.
   * @returns false if the cache lacks one of them; then it keeps none of them for this worker
   */
  hold(worker: WorkerId, models: readonly ModelSnapshot[]): Promise<boolean>
  /** Releases the models of a worker that ended. */
  letGo(worker: WorkerId): Promise<void>
  /**
   * Releases the models of workers that ended, and removes parts of downloads that nobody continued for days.
   * @param alive reads the ids of all workers that did not end
   */
  tidy(alive: () => Promise<ReadonlySet<WorkerId>>): Promise<void>
  /** Everything in the cache, the model that was used last first. */
  content(): Promise<ModelCacheContent>
  /**
   * Removes a model, and ends a download of it.
   * @param commit the only revision to remove; null for all
   * @returns the outcome; with `in_use`, a worker has the model and nothing was removed
   */
  remove(name: string, commit: string | null): Promise<'removed' | 'absent' | 'in_use'>
}
