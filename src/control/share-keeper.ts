import { givenMemoryMb } from '../core/endpoints/ready-workers.ts'
import { savedEnv } from '../core/endpoints/saved-env.ts'
import { gpuKey } from '../core/hardware/inventory.ts'
import type { EndpointId, WorkerId } from '../core/ids.ts'
import { shareableMb, WHOLE_CARD } from '../core/placement/card-claims.ts'
import { isWork, type KnownMemory, learnedShareMb, withFailure, withUse } from '../core/placement/learned-memory.ts'
import { excessMb, findGreediest, type ShareUse } from '../core/placement/share-excess.ts'
import { type AssignedGpu, fractionOfGpus, shareOf } from '../core/workers/placement.ts'
import { crashed, takesJobs, type Worker } from '../core/workers/worker.ts'
import { lacksGpuMemory } from '../core/workers/worker-failure.ts'
import { hasLeftCard } from '../core/workers/worker-suspension.ts'
import type { Emit, EventName, Events } from '../events.ts'
import type { Ports } from '../ports/ports.ts'
import type { Quotas } from '../services/accounts/quotas.ts'
import type { CardReader, CardUse } from '../services/hardware/card-reader.ts'
import type { InOrder } from '../services/in-order.ts'
import type { Fleet } from '../services/workers/fleet.ts'

/** Interval of measurements while a worker has a share, or will get one. */
const STEP_MS = 5_000
/** Rise of a peak that is stored, in MiB. */
const RISE_MB = 64
/** Limit of ended workers and of workers with finished work in memory; past it the oldest are forgotten. */
const MAX_REMEMBERED = 10_000

/** A worker with one GPU or a share of one, which has memory there. */
interface Holder extends ShareUse {
  readonly worker: Worker
  readonly gpu: AssignedGpu
}

type Readers = { readonly [Name in EventName]?: (fields: Events[Name]) => void }

/**
 * Keeps shares of GPUs true: learns those of endpoints with `auto` from measurements and failures, reports workers
 * that use more than their share, and drains such a worker when a neighbor fails for want of memory (ADR 113).
 */
export class ShareKeeper {
  readonly #ports
  readonly #parts
  readonly #wake
  /** Workers that have finished a job or a request. */
  readonly #worked = new Set<WorkerId>()
  /** Workers that ended since the last step. */
  readonly #ended = new Set<WorkerId>()
  /** The use of workers with a share at the last step. */
  #uses: ReadonlyMap<WorkerId, Holder> = new Map()
  /** Workers that were reported for their use. */
  #reported: ReadonlySet<WorkerId> = new Set()
  /** The memory with which a program starts, by endpoint and version; undefined for a release without `auto`. */
  #releases: ReadonlyMap<string, { readonly givenMb: number | null } | undefined> = new Map()

  /**
   * @param parts `claiming` keeps the rise of a share apart from placements
   * @param wake asks for a step soon
   */
  constructor(
    ports: Ports,
    parts: {
      readonly fleet: Fleet
      readonly cards: CardReader
      readonly quotas: Quotas
      readonly claiming: InOrder<'cards'>
    },
    wake: () => void,
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#wake = wake
  }

  readonly #readers: Readers = {
    'job.moved': ({ transition, to, workerId }) => {
      if (workerId !== null && transition === 'finish' && to === 'COMPLETED') remember(this.#worked, workerId)
    },
    'gateway.request_finished': ({ workerId, status, complete }) => {
      if (workerId !== null && isWork({ status, complete })) remember(this.#worked, workerId)
    },
    'worker.exited': ({ workerId, asked }) => {
      this.#worked.delete(workerId)
      if (asked) return
      remember(this.#ended, workerId)
      this.#wake()
    },
  }

  /** A reader of the event stream. */
  readonly emit: Emit = (name, fields) => this.#readers[name]?.(fields)

  /**
   * Measures the workers with shares.
   * @returns time of the next step without a wake
   */
  async step(nowMs: number): Promise<number> {
    const workers = await this.#ports.store.workers.alive()
    const holders = workers.filter(worker => worker.placement?.gpus.length === 1 && !hasLeftCard(worker))
    await this.#readReleases(holders)
    const watched = holders.filter(
      worker =>
        worker.placement!.gpus[0]!.shareMb !== undefined || this.#releases.get(releaseKey(worker)) !== undefined,
    )
    const cards = watched.length === 0 ? new Map<string, CardUse>() : await this.#parts.cards.rooms(workers)
    const uses = watched.flatMap(worker => holderOf(worker, cards))
    this.#report(uses)
    // Before a worker beyond its share gets a larger one.
    await this.#judgeEnds(uses)
    for (const worker of watched) await this.#learn(worker, cards)
    this.#uses = new Map(uses.map(use => [use.worker.id, use]))
    return nowMs + STEP_MS
  }

  /** The releases of these workers; only new ones are read, since a release does not change. */
  async #readReleases(workers: readonly Worker[]): Promise<void> {
    const releases = new Map<string, { readonly givenMb: number | null } | undefined>()
    for (const worker of workers) {
      const key = releaseKey(worker)
      if (releases.has(key)) continue
      releases.set(key, this.#releases.has(key) ? this.#releases.get(key) : await this.#readRelease(worker))
    }
    this.#releases = releases
  }

  async #readRelease({
    endpointId,
    version,
  }: Pick<Worker, 'endpointId' | 'version'>): Promise<{ readonly givenMb: number | null } | undefined> {
    const release = await this.#ports.store.releases.find(endpointId, version)
    const { endpoint, template } = release?.configuration ?? {}
    if (endpoint?.compute.kind !== 'gpu' || endpoint.compute.memoryGb !== 'auto' || template === undefined) return
    return { givenMb: givenMemoryMb(template.image, savedEnv(endpoint, template)) }
  }

  /** Learns from the use of a worker, and gives it the learned share if its GPU has room for that. */
  async #learn(worker: Worker, cards: ReadonlyMap<string, CardUse>): Promise<void> {
    const release = this.#releases.get(releaseKey(worker))
    const gpu = worker.placement!.gpus[0]!
    const card = cards.get(gpuKey(gpu))
    const usedMb = card?.ownMb.get(worker.id) ?? 0
    if (release === undefined || card === undefined || usedMb === 0) return
    const { releases, workers } = this.#ports.store
    const { id, endpointId, version } = worker
    const before = await releases.gpuMemory(endpointId, version)
    const use = { usedMb, hasWorked: this.#worked.has(id) }
    // A program that takes what it is given shows no need.
    const learned = release.givenMb === null ? withUse(before, use) : before
    if (learned !== null && isNews(before, learned)) await releases.setGpuMemory(endpointId, version, learned)
    const shareMb = learnedShareMb({ learned, givenMb: release.givenMb })
    if (shareMb === null || shareMb === gpu.shareMb || shareMb < (gpu.shareMb ?? 0)) return
    if (!takesJobs(worker)) return
    const { clock, emit, notifier } = this.#ports
    // Otherwise a new worker may get the same room.
    const isSet = await this.#parts.claiming.run('cards', true, async () => {
      const alive = (await workers.alive()).filter(other => other.id !== id)
      const hasRoom = shareMb <= shareableMb(gpu, othersMb(alive, gpu), card)
      return (
        hasRoom && !this.#exceedsLimit(worker, shareMb, alive) && (await workers.setShare(id, shareMb, clock.now()))
      )
    })
    if (!isSet) return
    emit('worker.share_learned', { endpointId, workerId: id, gpu: gpu.index, shareMb, usedMb })
    notifier.publish(`load:${endpointId}`)
  }

  /** True if a larger share takes the account of a worker beyond its limit of GPUs. */
  #exceedsLimit({ owner, placement }: Worker, shareMb: number, others: readonly Worker[]): boolean {
    const { gpus: limit } = this.#parts.quotas.effectiveLimits(owner)
    const gpu = placement!.gpus[0]!
    const part = shareOf(gpu, shareMb)
    if (limit === null || part <= shareOf(gpu, gpu.shareMb)) return false
    const own = others.filter(other => other.owner === owner && other.asleepAtMs === null)
    // Hundredths of shares are no exact sums.
    return own.reduce((sum, other) => sum + fractionOfGpus(other.placement), part) > limit + 0.001
  }

  /** Reports workers that begin to use more than their share. */
  #report(uses: readonly Holder[]): void {
    const beyond = uses.filter(use => excessMb(use) > 0)
    for (const { worker, gpu, shareMb, usedMb } of beyond) {
      const { id: workerId, endpointId } = worker
      if (!this.#reported.has(workerId))
        this.#ports.emit('worker.over_share', { endpointId, workerId, gpu: gpu.index, shareMb, usedMb })
    }
    this.#reported = new Set(beyond.map(({ worker }) => worker.id))
  }

  /** Finds workers that ended for want of memory of their GPU, and who is to blame. */
  async #judgeEnds(uses: readonly Holder[]): Promise<void> {
    for (const id of this.#ended) {
      const worker = await this.#ports.store.workers.find(id)
      if (worker !== null && crashed(worker) && lacksGpuMemory(worker)) await this.#blame(worker, uses)
      this.#ended.delete(id)
    }
  }

  /** Drains the neighbor that is most beyond its share; without one the share of the worker itself is too small. */
  async #blame(failed: Worker, uses: readonly Holder[]): Promise<void> {
    const [gpu] = failed.placement?.gpus ?? []
    if (gpu === undefined) return
    const own = this.#uses.get(failed.id)
    const neighbors = uses.filter(use => gpuKey(use.gpu) === gpuKey(gpu) && use.worker.id !== failed.id)
    const greediest = findGreediest([...neighbors, ...(own === undefined ? [] : [own])])
    if (greediest !== null && greediest !== own) {
      await this.#parts.fleet.drain(greediest.worker.id, 'over_share')
      return
    }
    if (gpu.shareMb === undefined || (own !== undefined && own.usedMb < gpu.shareMb * LEAST_USE)) return
    await this.#raise(failed, gpu.shareMb)
  }

  /** Makes the next share of a release with `auto` larger. */
  async #raise({ endpointId, version }: Worker, shareMb: number): Promise<void> {
    const { store, notifier } = this.#ports
    if ((await this.#readRelease({ endpointId, version })) === undefined) return
    const learned = withFailure(await store.releases.gpuMemory(endpointId, version), shareMb)
    await store.releases.setGpuMemory(endpointId, version, learned)
    notifier.publish(`load:${endpointId}`)
  }
}

/** Part of its share that a failed worker used at least if its share is to blame, and not a program of others. */
const LEAST_USE = 0.75

function isNews(before: KnownMemory['learned'], { peakMb, hasWorked }: NonNullable<KnownMemory['learned']>): boolean {
  return before === null || hasWorked !== before.hasWorked || peakMb >= before.peakMb + RISE_MB
}

/**
 * The claims of other workers to a GPU, in MiB, as they are now: some have learned or were placed since the
 * measurement.
 */
function othersMb(others: readonly Worker[], gpu: AssignedGpu): number {
  const having = others.filter(worker => !hasLeftCard(worker))
  const claims = having.flatMap(({ placement }) => placement?.gpus ?? []).filter(one => gpuKey(one) === gpuKey(gpu))
  return claims.reduce((sum, { shareMb = WHOLE_CARD }) => sum + shareMb, 0)
}

function holderOf(worker: Worker, cards: ReadonlyMap<string, CardUse>): Holder[] {
  const gpu = worker.placement!.gpus[0]!
  const card = cards.get(gpuKey(gpu))
  const usedMb = card?.ownMb.get(worker.id)
  if (gpu.shareMb === undefined || card === undefined || usedMb === undefined) return []
  return [{ worker, gpu, shareMb: gpu.shareMb, usedMb, totalMb: card.totalMb }]
}

function releaseKey({ endpointId, version }: { readonly endpointId: EndpointId; readonly version: number }): string {
  return `${endpointId} ${version}`
}

/**
 * Adds an id; above the limit the oldest leaves. An id that is present keeps its place, since a set that changes with
 * each request makes new tables all the time; one that left and is still in use comes back with its next request.
 */
function remember(ids: Set<WorkerId>, id: WorkerId): void {
  if (ids.has(id)) return
  ids.add(id)
  if (ids.size <= MAX_REMEMBERED) return
  const [oldest] = ids
  ids.delete(oldest!)
}
