import type { WorkerId } from '../../src/core/ids.ts'
import type { DownloadProgress } from '../../src/core/models/download-progress.ts'
import { ModelError, type ModelProblem } from '../../src/core/models/model-problem.ts'
import { isCommit } from '../../src/core/models/model-reference.ts'
import type {
  ModelCache,
  ModelCacheContent,
  ModelSnapshot,
  ModelWatch,
  ModelWish,
} from '../../src/ports/model-cache.ts'

/** A download that a test ends. */
export interface StartedDownload {
  readonly wish: ModelWish
  progress(progress: DownloadProgress): void
  /** The model exists. */
  done(): void
  fail(problem: ModelProblem): void
}

/** Models without a disk or a hub: each branch means a commit, and a test decides when a download ends. */
export class MemoryModels implements ModelCache {
  readonly hubFolder = '/models/huggingface-cache/hub'
  /** The downloads that go on, in order. */
  readonly downloads: StartedDownload[] = []
  readonly there = new Set<string>()
  readonly held = new Map<WorkerId, readonly ModelSnapshot[]>()
  /** The commits of branches, as `owner/name:branch`. */
  readonly commits = new Map<string, string>()

  async fetch(wish: ModelWish, watch: ModelWatch = {}): Promise<ModelSnapshot> {
    const commit = this.#commitOf(wish)
    await watch.resolved?.(commit)
    if (!this.there.has(`${wish.name}@${commit}`)) await this.#download(wish, watch)
    this.there.add(`${wish.name}@${commit}`)
    return { name: wish.name, commit }
  }

  ready(wish: ModelWish): ModelSnapshot | null {
    const commit = wish.commit ?? (isCommit(wish.revision) ? wish.revision : null)
    return commit !== null && this.there.has(`${wish.name}@${commit}`) ? { name: wish.name, commit } : null
  }

  async hold(worker: WorkerId, models: readonly ModelSnapshot[]): Promise<boolean> {
    if (models.some(({ name, commit }) => !this.there.has(`${name}@${commit}`))) return false
    this.held.set(worker, models)
    return true
  }

  async letGo(worker: WorkerId): Promise<void> {
    this.held.delete(worker)
  }

  async tidy(alive: () => Promise<ReadonlySet<WorkerId>>): Promise<void> {
    const workers = [...this.held.keys()]
    const living = await alive()
    for (const worker of workers) if (!living.has(worker)) this.held.delete(worker)
  }

  async content(): Promise<ModelCacheContent> {
    const models = [...this.there].map(key => {
      const [name = '', commit = ''] = key.split('@')
      const workers = [...this.held.values()].filter(models => models.some(one => one.commit === commit)).length
      return { name, commit, refs: ['main'], bytes: 5_000, usedAtMs: 1_000, workers, isRestricted: false }
    })
    return { models, downloads: [], usedBytes: 5_000, limitBytes: 10_000 }
  }

  async remove(name: string, commit: string | null): Promise<'removed' | 'absent' | 'in_use'> {
    const meant = [...this.there].filter(key => key.startsWith(`${name}@${commit ?? ''}`))
    const isHeld = [...this.held.values()].some(models => models.some(one => one.name === name))
    if (meant.length === 0 || isHeld) return isHeld ? 'in_use' : 'absent'
    for (const key of meant) this.there.delete(key)
    return 'removed'
  }

  #commitOf({ name, revision, commit }: ModelWish): string {
    return commit ?? (isCommit(revision) ? revision : (this.commits.get(`${name}:${revision}`) ?? 'c'.repeat(40)))
  }

  #download(wish: ModelWish, watch: ModelWatch): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const end = () => this.downloads.splice(this.downloads.indexOf(started), 1)
    const started: StartedDownload = {
      wish,
      progress: progress => watch.progress?.(progress),
      done: () => {
        end()
        resolve()
      },
      fail: problem => {
        end()
        reject(new ModelError(problem))
      },
    }
    this.downloads.push(started)
    return promise
  }
}
