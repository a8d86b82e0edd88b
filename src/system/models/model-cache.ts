/**
 * Models on the disk of this machine: downloaded once, kept while workers have them, removed when others need the
 * room.
 */
import { existsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { WorkerId } from '../../core/ids.ts'
import type { ModelFile } from '../../core/models/model-files.ts'
import { ModelError } from '../../core/models/model-problem.ts'
import { isCommit } from '../../core/models/model-reference.ts'
import { type CachedRevision, firstToRemove } from '../../core/models/model-removal.ts'
import type { Clock } from '../../ports/clock.ts'
import type {
  CachedModel,
  ModelCache,
  ModelCacheContent,
  ModelReader,
  ModelSnapshot,
  ModelWatch,
  ModelWish,
} from '../../ports/model-cache.ts'
import { diskProblem } from './blob-download.ts'
import { Hub, type HubQuestion } from './hub.ts'
import { HubConnection } from './hub-connection.ts'
import { ModelAccess } from './model-access.ts'
import { ModelFolders } from './model-folders.ts'
import { withRetries } from './retries.ts'
import { Limiter, RunningDownload } from './running-download.ts'

/** Files that are downloaded at the same time, over all models. */
const PARALLEL_FILES = 4
/** Time for which a requested model is kept for the worker that is about to get it. */
const RESERVED_MS = 10 * 60_000
/** Time after which the rest of an unfinished download is removed. */
const ABANDONED_MS = 3 * 24 * 60 * 60_000
/** Greatest default limit of the cache; otherwise half of the disk that could be free. */
const MAX_DEFAULT_BYTES = 200e9
/** Room that stays free on the disk of the cache. */
const SPARE_BYTES = 1e9
/** Interval within which further uses are not recorded. */
const NOTED_AGAIN_MS = 60_000

/** Options of {@link createModelCache}. */
export interface ModelCacheOptions {
  /** The folder of the cache, absolute; created at its first use. */
  readonly root: string
  /** Address of the hub. */
  readonly hub: string
  /** Limit of its size; null for half of the disk that could be free, at most 200 GB. */
  readonly limitBytes: number | null
  readonly clock: Clock
  /** Variables of the server, for HTTPS_PROXY and its like. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The wait before a second attempt; a second by default. */
  readonly backoffMs?: number
  /** Longest silence of a hub; 30 seconds unless given. */
  readonly stallMs?: number
}

/** A cache that can be closed. */
export interface DiskModelCache extends ModelCache {
  /** Ends all downloads. Their present bytes stay. */
  close(): void
}

/** A cache of models in a folder. No other server may use the same one. */
export function createModelCache(options: ModelCacheOptions): DiskModelCache {
  return new FolderCache(options)
}

class FolderCache implements DiskModelCache {
  readonly #options
  readonly #folders
  readonly #access
  readonly #connection
  readonly #hub
  readonly #limiter = new Limiter(PARALLEL_FILES)
  readonly #blobs = new Map<string, Promise<void>>()
  readonly #downloads = new Map<string, { readonly download: RunningDownload; readonly end: Promise<void> }>()
  readonly #reservedUntilMs = new Map<string, number>()
  readonly #held
  readonly #closing = new AbortController()
  /** One search for room at a time. */
  #room: Promise<unknown> = Promise.resolve()

  constructor(options: ModelCacheOptions) {
    const { root, hub, clock, env, stallMs = 30_000 } = options
    this.#options = options
    this.#folders = new ModelFolders(root)
    this.#access = new ModelAccess(this.#folders, () => clock.now())
    this.#connection = new HubConnection({ hub, stallMs, env })
    this.#hub = new Hub(this.#connection)
    this.#held = new Map([...this.#folders.workerNotes()].map(([id, note]) => [id as WorkerId, heldIn(note)]))
  }

  get hubFolder(): string {
    return this.#folders.hub
  }

  async fetch(wish: ModelWish, watch: ModelWatch = {}): Promise<ModelSnapshot> {
    try {
      const snapshot = this.ready(wish)
      if (snapshot === null) return this.#useSnapshot(wish, await this.#obtain(wish, watch))
      await watch.resolved?.(snapshot.commit)
      return snapshot
    } catch (thrown) {
      throw diskProblem(thrown, 0)
    }
  }

  ready(wish: ModelWish): ModelSnapshot | null {
    const commit = wantedCommit(wish)
    const isThere = commit !== null && this.#isWhole(wish.name, commit)
    return isThere && this.#access.mayRead(wish.name, wish.reader, 'fresh') ? this.#useSnapshot(wish, commit) : null
  }

  async hold(worker: WorkerId, models: readonly ModelSnapshot[]): Promise<boolean> {
    if (models.some(({ name, commit }) => !this.#isWhole(name, commit))) return false
    this.#folders.writeWorkerNote(worker, { models })
    this.#held.set(worker, models)
    for (const model of models) this.#use(model)
    return true
  }

  async letGo(worker: WorkerId): Promise<void> {
    if (!this.#held.has(worker)) return
    for (const model of this.#held.get(worker) ?? []) this.#use(model)
    this.#folders.writeWorkerNote(worker, null)
    this.#held.delete(worker)
  }

  async tidy(alive: () => Promise<ReadonlySet<WorkerId>>): Promise<void> {
    // Before the others are read: a worker that starts in the meantime is not among them.
    const holders = [...this.#held.keys()]
    const living = await alive()
    for (const worker of holders) if (!living.has(worker)) await this.letGo(worker)
    const nowMs = this.#options.clock.now()
    for (const [key, untilMs] of this.#reservedUntilMs) if (untilMs <= nowMs) this.#reservedUntilMs.delete(key)
    await this.#sweepAll(atMs => nowMs - atMs > ABANDONED_MS)
  }

  async content(): Promise<ModelCacheContent> {
    const usedBytes = this.#folders.usedBytes()
    const models = this.#revisions().map(({ model: name, commit, bytes, usedAtMs }): CachedModel => {
      const workers = this.#holders(name, commit)
      const refs = this.#folders.refsTo(name, commit)
      return { name, commit, refs, bytes, usedAtMs, workers, isRestricted: this.#access.isRestricted(name) }
    })
    const downloads = [...this.#downloads.values()].map(({ download: { wanted, progress } }) => {
      return { name: wanted.name, revision: wanted.revision, ...progress }
    })
    const { limitBytes } = await this.#limits(usedBytes)
    return { models: models.sort((a, b) => b.usedAtMs - a.usedAtMs), downloads, usedBytes, limitBytes }
  }

  async remove(name: string, commit: string | null): Promise<'removed' | 'absent' | 'in_use'> {
    const isSelected = (candidate: string) => commit === null || candidate === commit
    const commits = this.#folders.commits(name).filter(isSelected)
    if (commits.some(selected => this.#holders(name, selected) > 0)) return 'in_use'
    const downloads = [...this.#downloads.values()].filter(
      ({ download: { wanted } }) => wanted.name === name && isSelected(wanted.commit),
    )
    for (const { download } of downloads) download.stop()
    await Promise.allSettled(downloads.map(({ end }) => end))
    const isKnown = commits.length > 0 || downloads.length > 0
    if (!isKnown && !(commit === null && this.#folders.models().includes(name))) return 'absent'
    for (const selected of commits) await this.#remove(name, selected)
    await this.#folders.sweep(name, hash => !this.#isComing(name, hash))
    return 'removed'
  }

  close(): void {
    this.#closing.abort()
    for (const { download } of this.#downloads.values()) download.stop()
    this.#connection.close()
  }

  #useSnapshot(wish: ModelWish, commit: string): ModelSnapshot {
    const { name, revision } = wish
    // The commit of an older release's workers does not change the present meaning of a branch.
    const isMeant = wish.commit === null || !this.#isWhole(name, this.#folders.ref(name, revision) ?? '')
    if (isMeant) this.#folders.setRef(name, revision, commit)
    this.#use({ name, commit })
    return { name, commit }
  }

  /** Asks the hub, and downloads the missing files. @returns the commit, complete in the cache */
  async #obtain(wish: ModelWish, watch: ModelWatch): Promise<string> {
    const { name, revision, reader } = wish
    const knownCommit = wantedCommit(wish)
    try {
      const { commit, token, files } = await this.#ask(wish, knownCommit)
      await watch.resolved?.(commit)
      if (files !== null) await this.#download({ name, commit, revision, token, files }, watch)
      return commit
    } catch (thrown) {
      const problem = thrown instanceof ModelError ? thrown.problem.kind : 'other'
      if (REFUSALS.has(problem)) this.#access.refuse(name, reader)
      // Without a hub, the cached model is for accounts that had the right to read it before.
      const local = knownCommit ?? this.#folders.ref(name, revision)
      const isReadable = local !== null && this.#isWhole(name, local) && this.#access.mayRead(name, reader, 'any')
      if (isReadable && ABSENCES.has(problem)) return local
      throw thrown
    }
  }

  /**
   * Finds the commit of a wish and checks the right of its reader.
   * @returns the files to download; null if the cache has them
   */
  async #ask(
    wish: ModelWish,
    knownCommit: string | null,
  ): Promise<{ commit: string; token: string | null; files: ModelFile[] | null }> {
    const { name, reader } = wish
    const { token, commit } = await this.#resolve(wish, knownCommit)
    const question = { name, revision: commit, token, signal: this.#closing.signal }
    const isThere = this.#isWhole(name, commit)
    const files = isThere ? null : await this.#askWithRetries(() => this.#hub.files(question))
    const largest = isThere
      ? this.#folders.files(name, commit)[0]
      : files?.reduce<ModelFile | undefined>((a, b) => (a === undefined || b.bytes > a.bytes ? b : a), undefined)
    const used = largest === undefined ? token : await this.#neededToken(question, largest.path, reader)
    this.#access.allow(name, reader, used)
    return { commit, token: used, files }
  }

  /** Asks without the token first: the hub need not see it for a public model. */
  async #resolve(
    { name, revision, reader }: ModelWish,
    knownCommit: string | null,
  ): Promise<{ token: string | null; commit: string }> {
    const ask = (token: string | null) => {
      const question = { name, revision: knownCommit ?? revision, token, signal: this.#closing.signal }
      return this.#askWithRetries(() => this.#hub.model(question))
    }
    const open = await ask(null).catch(ignoreMissingToken)
    if (open !== null && !open.isRestricted) return { token: null, commit: knownCommit ?? open.commit }
    if (reader.token === null) throw new ModelError({ kind: 'token_missing' })
    const { commit } = await ask(reader.token)
    return { token: reader.token, commit: knownCommit ?? commit }
  }

  /** A description may be public when the files are not. @returns the needed token */
  async #neededToken(question: HubQuestion, path: string, reader: ModelReader): Promise<string | null> {
    const check = async (token: string | null) => {
      await this.#askWithRetries(() => this.#hub.checkAccess({ ...question, token }, path))
      return { token }
    }
    const result = await (question.token === null ? check(null).catch(ignoreMissingToken) : check(question.token))
    if (result !== null) return result.token
    if (reader.token === null) throw new ModelError({ kind: 'token_missing' })
    return (await check(reader.token)).token
  }

  #askWithRetries<T>(ask: () => Promise<T>): Promise<T> {
    const { clock, backoffMs = 1_000 } = this.#options
    return withRetries({ clock, backoffMs, signal: this.#closing.signal }, ask)
  }

  async #download(snapshot: RunningDownload['wanted'], watch: ModelWatch): Promise<void> {
    const key = snapshotKey(snapshot)
    const { download, end } = this.#downloads.get(key) ?? this.#begin(key, snapshot)
    const unwatch = download.watch(progress => watch.progress?.(progress))
    watch.progress?.(download.progress)
    await end.finally(unwatch)
  }

  #begin(key: string, snapshot: RunningDownload['wanted']): { download: RunningDownload; end: Promise<void> } {
    const { clock, backoffMs = 1_000 } = this.#options
    const parts = {
      folders: this.#folders,
      hub: this.#hub,
      limiter: this.#limiter,
      blobs: this.#blobs,
      clock,
      backoffMs,
    }
    const download = new RunningDownload(snapshot, parts)
    const end = this.#makeRoom(download)
      .then(() => download.run())
      .then(() => this.#access.used(snapshot.name, snapshot.commit))
      .finally(() => this.#downloads.delete(key))
    const entry = { download, end }
    this.#downloads.set(key, entry)
    return entry
  }

  /** Removes the least recently used models until a download fits. */
  #makeRoom(download: RunningDownload): Promise<void> {
    const turn = this.#room.then(async () => {
      let isSwept = false
      for (;;) {
        const neededBytes = download.missingBytes
        const usedBytes = this.#folders.usedBytes()
        const { limitBytes, freeBytes } = await this.#limits(usedBytes)
        const expected = [...this.#downloads.values()].filter(entry => entry.download.hasRoom)
        const reservedBytes = neededBytes + expected.reduce((sum, entry) => sum + entry.download.missingBytes, 0)
        const isWithin = usedBytes + reservedBytes <= limitBytes
        download.hasRoom = neededBytes === 0 || (isWithin && reservedBytes + SPARE_BYTES <= freeBytes)
        if (download.hasRoom) return
        const victim = firstToRemove(this.#revisions())
        if (victim !== null) await this.#remove(victim.model, victim.commit)
        else if (!isSwept) await this.#sweepAll(() => true)
        else if (isWithin) throw new ModelError({ kind: 'disk_full', neededBytes })
        else throw new ModelError({ kind: 'cache_full', neededBytes, limitBytes })
        isSwept = victim === null
      }
    })
    this.#room = turn.catch(() => {})
    return turn
  }

  #remove(model: string, commit: string): Promise<void> {
    return this.#folders.remove(model, commit, hash => !this.#isComing(model, hash))
  }

  /** Removes parts of abandoned downloads. @param isAbandoned decides by the time of the last write */
  async #sweepAll(isAbandoned: (writtenAtMs: number) => boolean): Promise<void> {
    for (const model of this.#folders.models()) {
      await this.#folders.sweep(model, (hash, atMs) => isAbandoned(atMs) && !this.#isComing(model, hash))
    }
  }

  async #limits(usedBytes: number): Promise<{ limitBytes: number; freeBytes: number }> {
    const { root, limitBytes } = this.#options
    // The folder does not exist before the first download.
    const { bavail, bsize } = await statfs(existsSync(this.hubFolder) ? this.hubFolder : nearestFolder(root))
    const freeBytes = bavail * bsize
    return { limitBytes: limitBytes ?? Math.min(MAX_DEFAULT_BYTES, Math.floor((freeBytes + usedBytes) / 2)), freeBytes }
  }

  #revisions(): CachedRevision[] {
    const nowMs = this.#options.clock.now()
    return this.#folders.models().flatMap(model =>
      this.#folders.commits(model).map(commit => {
        const isReserved = (this.#reservedUntilMs.get(snapshotKey({ name: model, commit })) ?? 0) > nowMs
        return {
          model,
          commit,
          bytes: this.#folders.snapshotBytes(model, commit),
          usedAtMs: this.#access.usedAtMs(model, commit),
          isInUse: isReserved || this.#holders(model, commit) > 0,
        }
      }),
    )
  }

  #use(snapshot: ModelSnapshot): void {
    const { name, commit } = snapshot
    const nowMs = this.#options.clock.now()
    this.#reservedUntilMs.set(snapshotKey(snapshot), nowMs + RESERVED_MS)
    if (Math.abs(nowMs - this.#access.usedAtMs(name, commit)) >= NOTED_AGAIN_MS) this.#access.used(name, commit)
  }

  #holders(name: string, commit: string): number {
    const holds = (models: readonly ModelSnapshot[]) =>
      models.some(model => model.name === name && model.commit === commit)
    return [...this.#held.values()].filter(holds).length
  }

  /** True if a snapshot is present and was created here: a worker without a cage could make one of some files. */
  #isWhole(name: string, commit: string): boolean {
    return this.#folders.has(name, commit) && this.#access.usedAtMs(name, commit) > 0
  }

  /** True if a download needs a blob. */
  #isComing(name: string, hash: string): boolean {
    return [...this.#downloads.values()].some(({ download }) => download.wanted.name === name && download.needs(hash))
  }
}

/** Problems after which the account's right to read a model is forgotten. */
const REFUSALS = new Set<string>(['token_missing', 'token_refused', 'access_refused', 'not_found'])
/** Problems that are no answer of the hub about the model. */
const ABSENCES = new Set<string>(['hub_unreachable', 'hub_failed', 'download_stalled', 'answer_unreadable'])

/** The commit that a wish names; null for a branch or tag. */
function wantedCommit({ commit, revision }: ModelWish): string | null {
  return commit ?? (isCommit(revision) ? revision : null)
}

function snapshotKey({ name, commit }: ModelSnapshot): string {
  return `${name}@${commit}`
}

function ignoreMissingToken(thrown: unknown): null {
  if (thrown instanceof ModelError && thrown.problem.kind === 'token_missing') return null
  throw thrown
}

/** Models of a worker in a note of the server itself. */
function heldIn(note: unknown): readonly ModelSnapshot[] {
  return (note as { models?: readonly ModelSnapshot[] } | null)?.models ?? []
}

function nearestFolder(path: string): string {
  let folder = path
  while (!existsSync(folder)) folder = join(folder, '..')
  return folder
}
