/** Ways to make room for an endpoint or a sleeping worker that cannot be placed now. See place.ts. */
import { gpuKey } from '../hardware/inventory.ts'
import type { EndpointId, OwnerId } from '../ids.ts'
import { afterEnds } from './card-claims.ts'
import { type EndReason, whyEnds } from './leaving.ts'
import { isPausable, pauseOrder, yieldsTo } from './pauses.ts'
import { findFit, helps, type PlacementFit, quotaReached, wantedGpus } from './placement-fit.ts'
import type { Occupant, Tenant } from './placement-input.ts'
import { counts, order, type PlacementLedger, pausedWorker, type Standing, type Victim } from './placement-ledger.ts'

/**
 * Number of dwells that an endpoint without a worker waits before a busy worker of another one makes room after its
 * job.
 */
export const TURN_DWELLS = 10

/** A way to make room for an endpoint that cannot be placed now. */
export interface Way {
  readonly room: PlacementFit
  readonly victims: readonly Victim[]
  /** True if the victims may be busy. */
  readonly afterJob: boolean
  /** True if the room comes from a worker that goes to sleep. */
  readonly sleeps: boolean
  /** True if it comes from a worker that is being paused. */
  readonly pauses: boolean
  /** Reason why a worker ends for it that could be suspended; null if none does. */
  readonly endsSince: EndReason | null
}

/** Finds workers whose end, sleep or pause makes room. It changes nothing. */
export class RoomWays {
  readonly #ledger: PlacementLedger

  constructor(ledger: PlacementLedger) {
    this.#ledger = ledger
  }

  /** A way to room within seconds. */
  soonWay(standing: Standing): Way | null {
    return this.#leavingWay(standing) ?? this.#frozenWay(standing) ?? this.#idleWay(standing)
  }

  /** Room that ending workers will free, and workers that fall asleep. */
  #leavingWay(standing: Standing): Way | null {
    const { owner } = standing.tenant
    const isComing = this.#ledger.occupants.some(worker => worker.phase === 'leaving' || isFallingFor(worker, owner))
    return isComing ? this.#without(standing, [], false) : null
  }

  /** Room of frozen workers, of its own only for a paused one: no minimum time protects them. */
  #frozenWay(standing: Standing): Way | null {
    const frozen = this.#ledger.occupants
      .filter(worker => worker.phase === 'frozen' && !isFallingFor(worker, standing.tenant.owner))
      .sort(
        (a, b) =>
          Number(a.frozen?.hasPriority) - Number(b.frozen?.hasPriority) ||
          (a.frozen?.sinceMs ?? 0) - (b.frozen?.sinceMs ?? 0) ||
          order(a.workerId, b.workerId),
      )
    return frozen.length === 0 ? null : this.#victims(standing, frozen, false)
  }

  /** Room of idle workers that have stayed their minimum time, of its own only for a paused one. */
  #idleWay(standing: Standing): Way | null {
    const { nowMs } = this.#ledger.input
    const idle = this.#ledger.occupants
      .filter(
        worker => worker.phase === 'idle' && this.#ledger.standings.get(worker.endpointId)?.tenant.hasWork !== true,
      )
      .sort((a, b) => (a.idleSinceMs ?? 0) - (b.idleSinceMs ?? 0) || order(a.workerId, b.workerId))
    const ripe = idle.filter(worker => this.#ripeAtMs(worker) <= nowMs || this.#isUrgentBeside(standing, worker))
    const way = this.#victims(standing, ripe, false)
    if (way !== null) return way
    for (const worker of idle) if (this.#ripeAtMs(worker) > nowMs) this.#ledger.wake(this.#ripeAtMs(worker))
    return null
  }

  /** Room of busy workers of lower priority, which are paused in the middle of their jobs. */
  pauseWay(standing: Standing): Way | null {
    const { nowMs } = this.#ledger.input
    const candidates = this.pausable(standing)
    for (const { pausableAtMs } of candidates) if (pausableAtMs! > nowMs) this.#ledger.wake(pausableAtMs!)
    const search = this.#ledger.createSearch(standing)
    const victims = candidates
      .filter(worker => worker.pausableAtMs! <= nowMs && helps(search, worker))
      .sort(pauseOrder)
      .slice(0, MAX_VICTIMS)
      .map((worker): Victim => ({ worker, how: 'is_paused', endsSince: null }))
    const enough = victims.findIndex((_, index) => this.#without(standing, victims.slice(0, index + 1), false) !== null)
    const way = enough < 0 ? null : this.#fewest(standing, victims.slice(0, enough + 1), false)
    return way === null || way.victims.length > this.pausesLeft() ? null : way
  }

  /** Workers that may be paused for the waiting work of an endpoint, now or later. */
  pausable(standing: Standing): readonly Occupant[] {
    const { pauseRules } = this.#ledger.input
    if (!hasUrgentWork(standing)) return []
    return this.#ledger.occupants.filter(worker => isPausable(worker, standing.tenant, pauseRules))
  }

  /** Number of workers that may still be paused. */
  pausesLeft(): number {
    return this.#ledger.input.pauseRules.maxPaused - this.#ledger.paused().length
  }

  /**
   * Room of any worker, after its job, for one that was paused for the longest time: first of the endpoint for which
   * it was paused, then of the lowest priority.
   */
  overdueWay(standing: Standing): Way | null {
    const own = this.#ledger.occupants.find(({ workerId }) => workerId === standing.wakes[0]?.workerId)
    const rank = (worker: Occupant) => Number(worker.endpointId !== own?.pause?.for)
    const awake = this.#ledger.occupants
      .filter(({ phase }) => phase === 'busy' || phase === 'idle')
      .sort((a, b) => rank(a) - rank(b) || pauseOrder(a, b))
    return this.#victims(standing, awake, true)
  }

  /** True if an endpoint has work that waits, and a worker has to make room for it without its minimum time. */
  #isUrgentBeside(standing: Standing, worker: Occupant): boolean {
    return hasUrgentWork(standing) && yieldsTo(worker, standing.tenant, this.#ledger.input.pauseRules)
  }

  /** Room of a busy worker of the endpoint with the most workers, after its job. */
  turnWay(standing: Standing): Way | null {
    const { nowMs, rules } = this.#ledger.input
    if (standing.have > 0) return null
    const dueMs = standing.tenant.sinceMs + TURN_DWELLS * rules.dwellMs
    if (dueMs > nowMs) {
      this.#ledger.wake(dueMs)
      return null
    }
    const have = (worker: Occupant) => this.#ledger.standings.get(worker.endpointId)?.have ?? 0
    const ready = this.#ledger.occupants
      .filter(worker => (worker.phase === 'busy' || worker.phase === 'idle') && this.#ripeAtMs(worker) <= nowMs)
      .sort((a, b) => have(b) - have(a) || (a.readyAtMs ?? 0) - (b.readyAtMs ?? 0) || order(a.workerId, b.workerId))
    return this.#victims(standing, ready, true)
  }

  /** Time at which a worker has stayed its minimum time. */
  #ripeAtMs({ readyAtMs }: Occupant): number {
    return readyAtMs === null ? Number.POSITIVE_INFINITY : readyAtMs + this.#ledger.input.rules.dwellMs
  }

  /** The fewest of these workers, in their order, whose end makes room. */
  #victims(standing: Standing, candidates: readonly Occupant[], afterJob: boolean): Way | null {
    const search = this.#ledger.createSearch(standing)
    const spare = new Map<EndpointId, number>()
    const share = new Map<OwnerId, number>()
    const chosen: Victim[] = []
    // An account at its limit can only replace its own workers.
    const reached = quotaReached(search, this.#ledger.all())
    const within = reached !== null
    // A paused worker goes on before the other ones of its endpoint, which make room for it as all others do.
    const goesOn = standing.wakes[0]?.pausedSinceMs !== undefined
    let copying = this.#ledger.copying()
    const sleepHelps = wantedGpus(search) > 0 && search.slots >= 1 && reached !== 'account_workers' && !afterJob
    for (const worker of candidates) {
      const { endpointId, owner } = worker
      const left = spare.get(endpointId) ?? this.#ledger.standings.get(endpointId)?.spare ?? 0
      const has = share.get(owner) ?? this.#ledger.countOf(owner)
      const spares = worker.phase === 'frozen' || left > 0 || this.#isOverShare(owner, has, standing)
      const yields = endpointId === standing.tenant.id ? goesOn : spares
      if (!yields || chosen.length >= MAX_VICTIMS) continue
      if (within ? !isOfSameKind(worker, standing.tenant) : !helps(search, worker)) continue
      if (counts(worker.phase)) {
        spare.set(endpointId, left - 1)
        share.set(owner, has - 1)
      }
      const maySleep = sleepHelps && canSleepFor(worker, standing.tenant.owner)
      const endsSince = maySleep && copying !== null ? whyEnds(worker, copying) : null
      const sleeps = maySleep && endsSince === null
      if (sleeps && copying !== null) copying = { ...copying, roomMb: copying.roomMb - (worker.copyMb ?? 0) }
      chosen.push({ worker, how: sleeps ? 'sleeps' : 'ends', endsSince })
      if (this.#without(standing, chosen, afterJob) !== null) break
    }
    return this.#fewest(standing, chosen, afterJob)
  }

  /** The way without those of the victims that are not needed; null if all of them are not enough. */
  #fewest(standing: Standing, chosen: readonly Victim[], afterJob: boolean): Way | null {
    if (this.#without(standing, chosen, afterJob) === null) return null
    let needed: readonly Victim[] = chosen
    for (const victim of chosen) {
      const fewer = needed.filter(other => other !== victim)
      if (this.#without(standing, fewer, afterJob) !== null) needed = fewer
    }
    return this.#without(standing, needed, afterJob)
  }

  /**
   * True if room exists after the end, sleep or pause of the victims, of all leaving workers, and of those that fall
   * asleep.
   */
  #without(standing: Standing, victims: readonly Victim[], afterJob: boolean): Way | null {
    const gone = new Set(this.#ledger.leaving())
    const asleep = new Set(this.#ledger.occupants.filter(({ sleep }) => sleep === 'falling'))
    const paused = new Set<Occupant>()
    const sets = { ends: gone, sleeps: asleep, is_paused: paused }
    for (const { worker, how } of victims) sets[how].add(worker)
    const stay = this.#ledger
      .all()
      .filter(worker => !gone.has(worker))
      .map((worker): Occupant => {
        if (paused.has(worker)) return { ...pausedWorker(worker), sleep: 'asleep' }
        return asleep.has(worker) ? { ...worker, sleep: 'asleep' } : worker
      })
    const cards = afterEnds(this.#ledger.input.cards ?? new Map(), [...gone, ...asleep, ...paused])
    const room = findFit({ ...this.#ledger.createSearch(standing, gone.size + paused.size), cards }, stay)
    if (room === null) return null
    const reasons = new Map(victims.map(({ worker, endsSince }) => [worker, endsSince]))
    const keys = new Set(room.placement.gpus.map(gpuKey))
    const [endsSince = null] = [...gone].flatMap(worker => {
      const isThere = worker.placement?.gpus.some(gpu => keys.has(gpuKey(gpu))) === true
      return isThere ? (reasons.get(worker) ?? worker.endsSince ?? []) : []
    })
    const sleeps = gone.size === 0 && asleep.size > 0
    const pauses = paused.size > 0 || (sleeps && [...asleep].every(({ phase }) => phase === 'paused'))
    return { room, victims, afterJob, sleeps, pauses, endsSince }
  }

  /**
   * True if another account has so many more workers that its workersMin makes room too, for waiting work and not for
   * another workersMin.
   */
  #isOverShare(owner: OwnerId, has: number, { tenant, have }: Standing): boolean {
    const forWork = tenant.hasWork || have >= tenant.workersMin
    return forWork && owner !== tenant.owner && has > this.#ledger.countOf(tenant.owner) + 1
  }
}

/** True if an endpoint has work that waits for a worker: jobs, requests, or the job of a paused worker. */
function hasUrgentWork({ tenant, wakes: [wake] }: Standing): boolean {
  return tenant.placedBy === 'machine' && !tenant.isSpare && (tenant.hasWork || wake?.pausedSinceMs !== undefined)
}

/** True if its end helps an account at its limit, without an end on this machine for a worker that runs elsewhere. */
function isOfSameKind({ owner, placement }: Occupant, tenant: Tenant): boolean {
  return owner === tenant.owner && (tenant.placedBy === 'machine' || placement?.asked !== undefined)
}

/** True if the GPUs of a worker become free for this account, because it falls asleep. */
function isFallingFor({ sleep, suspends, owner }: Occupant, asker: OwnerId): boolean {
  return sleep === 'falling' && (suspends || owner === asker)
}

/** True if a worker can give its GPUs to this account by its sleep. */
function canSleepFor({ sleep, suspends, owner }: Occupant, asker: OwnerId): boolean {
  return sleep === 'able' && (suspends || owner === asker)
}

/** Limit of workers that make room for one. */
const MAX_VICTIMS = 64
