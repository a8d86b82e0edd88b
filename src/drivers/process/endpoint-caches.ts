/**
 * A folder for each endpoint in which its workers keep what they can make or download again: compiled kernels,
 * packages, models that they download themselves. Workers of one endpoint share it, since they run the same code;
 * workers of another one never see it, because what lies in such a cache is run by whoever finds it.
 */
import { mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import { filesBelow, MAX_FILES } from '../cage/disk-use.ts'
import { type OfferedHub, offerHub } from './offered-hub.ts'

const GB = 1_000_000_000
/** Caches on their way out, and models on their way in; no id of an endpoint begins so. */
const APART = '.'

/** The cache of one worker. */
export interface OpenCache {
  /** The folder, which the worker may change. */
  readonly path: string
  /** Folders with models outside of it, which it reads. */
  readonly readable: readonly string[]
}

/** The caches of the endpoints of this machine. */
export class EndpointCaches {
  readonly #options
  readonly #holders = new Map<WorkerId, EndpointId>()
  /** The last change of each endpoint's cache, which the next one waits for. */
  readonly #turns = new Map<EndpointId, Promise<unknown>>()

  constructor(options: {
    /** The folder of all caches. */
    readonly folder: string
    /** Limit of one cache in GB; 0 for none. */
    readonly limitGb: number
    /** The cache of Hugging Face of the person who runs the server, whose models all workers read. */
    readonly hub: string
  }) {
    this.#options = options
  }

  /** Limit of a cache in GB; 0 for none. */
  get limitGb(): number {
    return this.#options.limitGb
  }

  /** Prepares the cache for a worker that is about to start. It stays until {@link release}. */
  async open(worker: WorkerId, endpoint: EndpointId): Promise<OpenCache> {
    const path = this.#cachePath(endpoint)
    const isFirst = !this.#isHeld(endpoint)
    this.#holders.set(worker, endpoint)
    const hub = await this.#inTurn(endpoint, async (): Promise<OfferedHub> => {
      await mkdir(path, { recursive: true, mode: 0o700 })
      const { folder, hub } = this.#options
      // While a worker runs it may put links in the way.
      return offerHub({ hub, cache: path, apart: join(folder, `${APART}${worker}`), isQuiet: isFirst })
    })
    return { path, readable: hub.readable }
  }

  /** A worker that an earlier server started has the cache of an endpoint. */
  hold(worker: WorkerId, endpoint: EndpointId): void {
    this.#holders.set(worker, endpoint)
  }

  /** The folder of the cache that a worker has; null for one without. */
  findCache(worker: WorkerId): string | null {
    const endpoint = this.#holders.get(worker)
    return endpoint === undefined ? null : this.#cachePath(endpoint)
  }

  /** The worker has ended. A cache above its limit goes with the last worker that has it. */
  release(worker: WorkerId): void {
    const endpoint = this.#holders.get(worker)
    this.#holders.delete(worker)
    // The next worker does not wait for the measurement.
    if (endpoint !== undefined && !this.#isHeld(endpoint)) void this.#bound(endpoint).catch(() => {})
  }

  /** Removes the caches of endpoints that no longer exist. */
  async tidy(exists: (endpoint: EndpointId) => Promise<boolean>): Promise<void> {
    const names = await readdir(this.#options.folder).catch(() => [])
    for (const name of names) {
      const isLeftover = name.startsWith(APART)
      if (isLeftover && !this.#holders.has(name.slice(APART.length) as WorkerId)) await this.#destroy(name)
      if (!isLeftover && !(await exists(name as EndpointId))) await this.#clear(name as EndpointId)
    }
  }

  async #bound(endpoint: EndpointId): Promise<void> {
    const most = this.#options.limitGb * GB
    if (most === 0) return
    const { bytes, files } = await filesBelow([this.#cachePath(endpoint)], most)
    if (bytes > most || files > MAX_FILES) await this.#clear(endpoint)
  }

  /** Does nothing while a worker has it. */
  async #clear(endpoint: EndpointId): Promise<void> {
    const removedName = `${APART}${endpoint}`
    const isCleared = await this.#inTurn(endpoint, async () => {
      if (this.#isHeld(endpoint)) return false
      await this.#destroy(removedName)
      return rename(this.#cachePath(endpoint), join(this.#options.folder, removedName)).then(
        () => true,
        () => false,
      )
    })
    if (isCleared) await this.#destroy(removedName)
  }

  async #destroy(name: string): Promise<void> {
    await rm(join(this.#options.folder, name), { recursive: true, force: true, maxRetries: 5 })
  }

  #isHeld(endpoint: EndpointId): boolean {
    return [...this.#holders.values()].includes(endpoint)
  }

  #cachePath(endpoint: EndpointId): string {
    if (!/^[\w-]+$/.test(endpoint)) throw new AppError('internal', `'${endpoint}' is not an id of an endpoint`)
    return join(this.#options.folder, endpoint)
  }

  #inTurn<Value>(endpoint: EndpointId, act: () => Promise<Value>): Promise<Value> {
    const next = (this.#turns.get(endpoint) ?? Promise.resolve()).then(act, act)
    this.#turns.set(endpoint, next)
    const forget = () => {
      if (this.#turns.get(endpoint) === next) this.#turns.delete(endpoint)
    }
    next.then(forget, forget)
    return next
  }
}

/** The variables by which programs find a cache that they look for elsewhere. */
export function cachePlaces(cache: string): Record<string, string> {
  return {
    XDG_CACHE_HOME: cache,
    HF_HOME: join(cache, 'huggingface'),
    CUDA_CACHE_PATH: join(cache, 'nv'),
    TRITON_CACHE_DIR: join(cache, 'triton'),
    TORCHINDUCTOR_CACHE_DIR: join(cache, 'torchinductor'),
  }
}

/** Programs that read no variable find it in the home of a worker. */
export async function linkCache(home: string, cache: string): Promise<void> {
  const path = join(home, '.cache')
  // A start that was broken off may have made it.
  await rm(path, { force: true })
  await symlink(cache, path)
}
