import { type CardReading, withOwners } from '../../core/hardware/gpu-memory.ts'
import { gpuKey } from '../../core/hardware/inventory.ts'
import type { WorkerId } from '../../core/ids.ts'
import { WHOLE_CARD } from '../../core/placement/card-claims.ts'
import type { CardRoom } from '../../core/placement/card-room.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { hasLeftCard } from '../../core/workers/worker-suspension.ts'
import type { Ports } from '../../ports/ports.ts'

/** Age up to which a reading counts as of now, unless cards were given or taken since then. */
const FRESH_MS = 2_000
/** Longest wait for a reading: starts of workers wait for it. */
const WAIT_MS = 3_000
/** Longest wait of people for a reading. */
const SHOWN_MS = 1_000
/** Age from which a reading says nothing about the present use. */
const OLD_MS = 30_000
/** Pause after a failure and after a reading that took too long: the tool may be broken for long. */
const PAUSE_MS = 30_000
/** Limit of programs that are listed for a card. */
const MAX_PROGRAMS = 8
const MIB = 2 ** 20

/** The memory of a card with its users, in MiB. */
export interface CardUse extends CardRoom {
  /** Memory of each worker whose processes the driver lists. */
  readonly ownMb: ReadonlyMap<WorkerId, number>
}

/** A reading of all cards. */
interface Reading {
  readonly atMs: number
  /** The workers that had cards, see {@link holdersOf}. */
  readonly holders: string
  readonly cards: ReadonlyMap<string, CardUse>
}

/**
 * Reads the memory of NVIDIA cards for placement: one reading for all cards and workers, at most every two seconds,
 * and again as soon as workers have got or left cards. Where the memory cannot be read, the claims of workers alone
 * decide.
 */
export class CardReader {
  readonly #ports
  /** The last readings, the newest last. */
  #readings: readonly Reading[] = []
  #reading: Promise<void> | null = null
  /** A reading for which people have waited as long as they do. */
  #late: Promise<void> | null = null
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  /** Workers of the processes that the driver listed last; null for a program that is not of a worker. */
  readonly #owners = new Map<number, WorkerId | null>()
  /** Workers with cards that may have other pids for the driver than for the server. */
  readonly #unseen = new Set<WorkerId>()
  /** True if the driver has listed a process of a worker by the pid that the server knows. */
  #hasMatched = false

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /**
   * The memory of the cards by `gpuKey`, at most two seconds old. Resolves within three seconds; empty without a
   * reading.
   * @param workers all workers that have not ended
   */
  async rooms(workers: readonly Worker[]): Promise<ReadonlyMap<string, CardUse>> {
    const { clock } = this.#ports
    const reading = this.#begin(workers)
    if (reading !== null) {
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const cancel = clock.after(WAIT_MS, () => {
        this.#pausedUntilMs = clock.monotonic() + PAUSE_MS
        resolve()
      })
      await Promise.race([reading, late])
      cancel()
    }
    return this.#merged()
  }

  /**
   * The last reading of the cards by `gpuKey`, for people. Starts the next one, and does not wait for it. Empty at
   * first.
   * @param workers all workers that have not ended
   */
  uses(workers: readonly Worker[]): ReadonlyMap<string, CardUse> {
    void this.#begin(workers)
    return this.#merged()
  }

  /**
   * The memory of the cards by `gpuKey`, for people: at most two seconds old, or after a wait of a second the last
   * reading. Empty where workers have got or left cards since that.
   * @param workers all workers that have not ended
   */
  async shown(workers: readonly Worker[]): Promise<ReadonlyMap<string, CardUse>> {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const cancel = this.#ports.clock.after(SHOWN_MS, () => {
      this.#late = this.#reading
      resolve()
    })
    const holders = holdersOf(workers)
    const isOfNow = () => this.#readings.at(-1)?.holders === holders
    // A reading under way may have begun with other workers.
    for (let tries = 0; tries < 2; tries += 1) {
      const reading = this.#begin(workers)
      if (reading === null || reading === this.#late) break
      await Promise.race([reading, over])
    }
    cancel()
    return isOfNow() ? this.#merged() : new Map()
  }

  /** The last reading of the cards by `gpuKey`, without another one. Empty if it is older than half a minute. */
  last(): ReadonlyMap<string, CardUse> {
    return this.#merged()
  }

  /** Begins a reading, unless the last one is of now. @returns the present reading; null without one */
  #begin(workers: readonly Worker[]): Promise<void> | null {
    const { clock, gpuMeter } = this.#ports
    if (gpuMeter === undefined) return null
    const holders = holdersOf(workers)
    const last = this.#readings.at(-1)
    const nowMs = clock.monotonic()
    const isFresh = last !== undefined && nowMs - last.atMs < FRESH_MS && last.holders === holders
    if (isFresh || nowMs < this.#pausedUntilMs) return null
    this.#reading ??= this.#read(workers, holders).finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #read(workers: readonly Worker[], holders: string): Promise<void> {
    const { clock, gpuMeter } = this.#ports
    const { cards: measured } = await gpuMeter!.measure(new Set())
    const atMs = clock.monotonic()
    if (measured.length === 0) {
      this.#pausedUntilMs = atMs + PAUSE_MS
      return
    }
    const holding = workers.filter(({ placement }) => (placement?.gpus ?? []).length > 0)
    await this.#findOwners(measured, holding)
    const cards = new Map(measured.map(card => [card.uuid, this.#readCard(card, holding)]))
    this.#readings = [...this.#readings.slice(-1), { atMs, holders, cards }]
  }

  /** Finds the workers of the listed processes. Only new processes are looked for. */
  async #findOwners(cards: readonly CardReading[], holding: readonly Worker[]): Promise<void> {
    const listed = new Set(cards.flatMap(({ processes }) => processes.map(({ pid }) => pid)))
    for (const pid of this.#owners.keys()) if (!listed.has(pid)) this.#owners.delete(pid)
    if ([...listed].every(pid => this.#owners.has(pid))) return
    for (const pid of listed) if (!this.#owners.has(pid)) this.#owners.set(pid, null)
    this.#unseen.clear()
    const unlisted: WorkerId[] = []
    for (const { id } of holding) {
      const family = await this.#ports.driver.processes(id).catch(() => null)
      const members = (await family?.members().catch(() => null)) ?? []
      const own = members.filter(({ pid }) => listed.has(pid))
      if (family === null) this.#unseen.add(id)
      else if (own.length === 0) unlisted.push(id)
      for (const { pid } of own) this.#owners.set(pid, id)
      this.#hasMatched ||= own.length > 0
    }
    // The driver knows their pids, so they have no memory on a card yet.
    if (!this.#hasMatched) for (const id of unlisted) this.#unseen.add(id)
  }

  #readCard(card: CardReading, holding: readonly Worker[]): CardUse {
    const claimMb = holding.reduce((sum, worker) => sum + this.#unseenClaim(worker, card.uuid), 0)
    const own = new Set([...this.#owners].filter(([, owner]) => owner !== null).map(([pid]) => pid))
    const { totalBytes, freeBytes, foreignBytes, processes } = withOwners(card, own)
    const foreignMb = Math.max(0, toMb(foreignBytes) - claimMb)
    const listed = foreignMb === 0 ? [] : processes.filter(({ pid }) => !own.has(pid))
    const programs = listed
      .map(({ pid, name, bytes }) => ({ pid, name, memoryMb: toMb(bytes ?? 0) }))
      .sort((a, b) => b.memoryMb - a.memoryMb || a.pid - b.pid)
      .slice(0, MAX_PROGRAMS)
    const ownMb = new Map<WorkerId, number>()
    for (const { pid, bytes } of processes) {
      const owner = this.#owners.get(pid) ?? null
      if (owner !== null) ownMb.set(owner, (ownMb.get(owner) ?? 0) + toMb(bytes ?? 0))
    }
    const [totalMb, freeMb] = [toMb(totalBytes), toMb(freeBytes)]
    // The list may have processes of workers.
    return { totalMb, freeMb, foreignMb, programs: claimMb > 0 ? [] : programs, ownMb }
  }

  /** The memory of a card that a worker may use whose processes the driver did not list, in MiB. */
  #unseenClaim(worker: Worker, key: string): number {
    const gpu = worker.placement?.gpus.find(candidate => gpuKey(candidate) === key)
    if (gpu === undefined || hasLeftCard(worker) || !this.#unseen.has(worker.id)) return 0
    return gpu.shareMb ?? WHOLE_CARD
  }

  /** The last reading, with the larger foreign use of the last two. */
  #merged(): ReadonlyMap<string, CardUse> {
    const nowMs = this.#ports.clock.monotonic()
    const recent = this.#readings.filter(({ atMs }) => nowMs - atMs < OLD_MS)
    const rooms = new Map<string, CardUse>()
    for (const [key, card] of recent.at(-1)?.cards ?? []) {
      const earlier = recent.at(-2)?.cards.get(key)
      const larger = earlier !== undefined && earlier.foreignMb > card.foreignMb ? earlier : card
      rooms.set(key, { ...card, foreignMb: larger.foreignMb, programs: larger.programs })
    }
    return rooms
  }
}

function toMb(bytes: number): number {
  return Math.round(bytes / MIB)
}

/** A text that changes when a worker gets or leaves a card. */
function holdersOf(workers: readonly Worker[]): string {
  const lines = workers.flatMap(worker =>
    (worker.placement?.gpus ?? []).map(gpu => `${gpuKey(gpu)} ${worker.id} ${hasLeftCard(worker)}`),
  )
  return lines.sort().join('\n')
}
