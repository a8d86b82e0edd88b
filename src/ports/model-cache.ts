import type { OwnerId, WorkerId } from '../core/ids.ts'
import type { DownloadProgress } from '../core/models/download-progress.ts'

/** Who wants to read a model. */
export interface ModelReader {
  readonly owner: OwnerId
  /** The account's token for the hub; null for none. */
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

/** A model that is there, whole and checked. */
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
  /** Whether only accounts may use it whose token the hub has accepted for it. */
  readonly isRestricted: boolean
}

/** Follows a {@link ModelCache.fetch}. */
export interface ModelWatch {
  /** Its reader may have the model, whose revision means this commit. The download begins when it resolves. */
  resolved?(commit: string): Promise<void>
  /** More of it has come. */
  progress?(progress: DownloadProgress): void
}

/** A download that goes on. */
export interface ModelDownload extends DownloadProgress {
  readonly name: string
  readonly revision: string
}

/** What is in the cache, and what is on its way into it. */
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
   * Sees that a model is there, and downloads it if it is not. Calls for the same model share one download, and what a download that was
   * killed has left is used again. What was wanted is not removed for the next minutes.
   * @throws ModelError when it cannot be had, also when this reader may not have it
   */
  fetch(wish: ModelWish, watch?: ModelWatch): Promise<ModelSnapshot>
  /** The model, as {@link fetch} gives it, where that takes no call to the hub; else null. */
  ready(wish: ModelWish): ModelSnapshot | null
  /**
   * Keeps models for a worker until {@link letGo}. Survives a restart of the server.
   * @returns false, and nothing is kept, when one of them is not there
   */
  hold(worker: WorkerId, models: readonly ModelSnapshot[]): Promise<boolean>
  /** The worker has ended. */
  letGo(worker: WorkerId): Promise<void>
  /**
   * Lets go of the models of workers that have ended, and removes what downloads have left that nobody has gone on with for days.
   * @param alive reads which workers have not ended
   */
  tidy(alive: () => Promise<ReadonlySet<WorkerId>>): Promise<void>
  /** Everything in the cache, the model that was used last first. */
  content(): Promise<ModelCacheContent>
  /**
   * Removes a model, and ends a download of it.
   * @param commit the only revision to remove; null for all
   * @returns what became of it; `in_use` when a worker has it, and then nothing is removed
   */
  remove(name: string, commit: string | null): Promise<'removed' | 'absent' | 'in_use'>
}
