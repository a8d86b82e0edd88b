/** The workers and the wants of one placement decision, as they are after each of its steps. See place.ts. */
import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'
import type { Placement } from '../workers/placement.ts'
import type { Copying, EndReason } from './leaving.ts'
import { promisedStarts } from './pauses.ts'
import type { Search } from './placement-fit.ts'
import type { Occupant, PlacementInput, Tenant, WantedWake } from './placement-input.ts'

/** An endpoint, with what it has and wants at this point of the decision. */
export interface Standing {
  readonly tenant: Tenant
  /** Number of workers that it has or gets now, without leaving ones. */
  have: number
  /** Number of its workers that may be taken from it. */
  spare: number
  /** Number of further workers that it wants. */
  wanted: number
  /** Its paused and sleeping workers that it wants again. */
  wakes: readonly WantedWake[]
  /** Number of starts for which workers of others are paused. */
  promised: number
}

/** A worker that makes room. */
export interface Victim {
  readonly worker: Occupant
  /** It ends; or it sleeps, which frees its GPUs; or it is paused in the middle of its job. */
  readonly how: 'ends' | 'sleeps' | 'is_paused'
  /** Reason why it ends, although it could be suspended; null for others. */
  readonly endsSince: EndReason | null
}

/** Keeps who has which part of the machine while a decision is made, reservations included. */
export class PlacementLedger {
  readonly input: PlacementInput
  readonly standings = new Map<EndpointId, Standing>()
  /** Workers that have not ended, by their ids. */
  occupants: readonly Occupant[]
  /** Reservations of waiting endpoints, and places given in this decision. */
  readonly #taken: Occupant[] = []
  /** See {@link all}. */
  #everyone: { readonly occupants: readonly Occupant[]; taken: number; readonly all: Occupant[] } | null = null
  /** Number of workers that accounts have or get now, without leaving ones. */
  readonly #ofOwner = new Map<OwnerId, number>()
  /** Time at which the decision may change without an event; null for never. */
  wakeAtMs: number | null = null

  constructor(input: PlacementInput) {
    this.input = input
    this.occupants = [...input.occupants].sort((a, b) => order(a.workerId, b.workerId))
    for (const tenant of input.tenants) {
      const stays = input.occupants.filter(({ endpointId, phase }) => endpointId === tenant.id && counts(phase))
      const spare = Math.max(0, stays.length - tenant.workersMin)
      this.standings.set(tenant.id, {
        tenant,
        have: stays.length,
        spare,
        wanted: tenant.wanted,
        wakes: tenant.wakes,
        promised: promisedStarts(tenant, input.occupants),
      })
    }
    for (const { owner, phase } of input.occupants) if (counts(phase)) this.count(owner, 1)
  }

  /** Notes that a worker makes room. @param by the endpoint that gets it */
  makesRoom({ worker: victim, how, endsSince }: Victim, by: EndpointId): void {
    const { nowMs } = this.input
    const after: Record<Victim['how'], Occupant> = {
      ends: { ...victim, phase: 'leaving', endsSince },
      sleeps: { ...victim, phase: 'frozen', frozen: { sinceMs: nowMs, hasPriority: false }, sleep: 'falling' },
      is_paused: { ...pausedWorker(victim), pause: { sinceMs: nowMs, for: by } },
    }
    this.occupants = this.occupants.map(worker => (worker === victim ? after[how] : worker))
    const standing = this.standings.get(victim.endpointId)
    if (standing === undefined || !counts(victim.phase)) return
    standing.have -= 1
    standing.spare -= 1
    this.count(standing.tenant.owner, -1)
  }

  /** Gives a place to a new worker, or keeps it for one. */
  take({ id, owner, name }: Tenant, placement: Placement, phase: 'starting' | 'kept'): void {
    this.#taken.push({
      workerId: '' as WorkerId,
      endpointId: id,
      owner,
      endpointName: name,
      placement,
      phase,
      readyAtMs: null,
      startingSinceMs: phase === 'starting' ? this.input.nowMs : null,
      idleSinceMs: null,
      frozen: null,
      sleep: null,
      suspends: false,
      copyMb: null,
      startMs: null,
      endsSince: null,
      priority: 'normal',
      pausableAtMs: null,
      pause: null,
    })
  }

  /** Gives a sleeping worker its GPUs again, or keeps them for it. @param hasWay see {@link Occupant.hasWay} */
  takeAgain({ workerId }: WantedWake, phase: 'starting' | 'kept', hasWay = true): void {
    const startingSinceMs = phase === 'starting' ? this.input.nowMs : null
    const runs = { phase, startingSinceMs, frozen: null, sleep: null, pause: null, hasWay }
    this.occupants = this.occupants.map(worker => (worker.workerId === workerId ? { ...worker, ...runs } : worker))
  }

  /**
   * The copies that this machine can make besides those of workers that are about to be suspended; null if every
   * suspend pays.
   */
  copying(): Copying | null {
    const { copying } = this.input
    if (copying === undefined) return null
    const falling = this.occupants.filter(({ sleep }) => sleep === 'falling')
    return { ...copying, roomMb: falling.reduce((room, { copyMb }) => room - (copyMb ?? 0), copying.roomMb) }
  }

  /** Workers that are paused now. */
  paused(): readonly Occupant[] {
    return this.occupants.filter(({ phase }) => phase === 'paused')
  }

  /** The needs of an endpoint. @param freed number of workers that count as ended */
  createSearch({ tenant, wakes: [wake] }: Standing, freed = 0): Search {
    const { capacity, parts, cards, rules } = this.input
    const common = { tenant, parts, cards, rules, bound: capacity.bound, quota: this.input.quotas?.get(tenant.owner) }
    // A paused worker does not run, and takes its slot again when it does.
    const slots = (capacity.freeWorkers ?? Number.POSITIVE_INFINITY) + this.paused().length + freed - this.#taken.length
    if (wake === undefined) return { ...common, slots }
    return { ...common, slots: wake.pausedSinceMs === undefined ? Number.POSITIVE_INFINITY : slots, again: wake }
  }

  /** Counts workers of an account. @param more negative for fewer */
  count(owner: OwnerId, more: number): void {
    this.#ofOwner.set(owner, (this.#ofOwner.get(owner) ?? 0) + more)
  }

  /** Workers that were asked to end. */
  leaving(): readonly Occupant[] {
    return this.occupants.filter(({ phase }) => phase === 'leaving')
  }

  /**
   * All workers and reservations. Rebuilt only after a change: a platform may get thousands of workers in one
   * decision.
   */
  all(): readonly Occupant[] {
    const cache = this.#everyone
    if (cache?.occupants === this.occupants) {
      for (let index = cache.taken; index < this.#taken.length; index += 1) cache.all.push(this.#taken[index]!)
      cache.taken = this.#taken.length
      return cache.all
    }
    const all = [...this.occupants, ...this.#taken]
    this.#everyone = { occupants: this.occupants, taken: this.#taken.length, all }
    return all
  }

  /** The decision may change at this time without an event. */
  wake(atMs: number): void {
    this.wakeAtMs = Math.min(this.wakeAtMs ?? Number.POSITIVE_INFINITY, atMs)
  }

  /** Number of workers that an account has or gets now, without leaving ones. */
  countOf(owner: OwnerId): number {
    return this.#ofOwner.get(owner) ?? 0
  }
}

/** True if a worker counts as one of its endpoint and account: a frozen one only keeps its place. */
export function counts(phase: Occupant['phase']): boolean {
  return phase !== 'leaving' && phase !== 'frozen' && phase !== 'paused'
}

/** A worker that is being paused: its GPUs become free once they are empty, its vCPUs are. */
export function pausedWorker(worker: Occupant): Occupant {
  const hasGpus = (worker.placement?.gpus ?? []).length > 0
  return { ...worker, phase: 'paused', sleep: hasGpus ? 'falling' : null, suspends: hasGpus, pausableAtMs: null }
}

/** The order of ids. */
export function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
