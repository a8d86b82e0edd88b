/**
 * Places workers on the machine. Pure: the same inventory, workers and demands give the same decision.
 *
 * Workers are placed one at a time. Each turn goes to the account with the fewest workers, and to its endpoint with
 * the least: first those below workersMin, then by the part of the wanted workers that they have, then by their wait.
 *
 * An endpoint that cannot be placed may get room: frozen workers of other endpoints end, those frozen longest first
 * and those of PRIORITY_FLASHBOOT last; else an idle worker of another endpoint that has stayed its minimum time is
 * asked to end. If that is not enough, an endpoint without any worker reserves the free part of what it needs, so
 * that smaller demands do not always overtake it, and after a longer wait the endpoint with the most workers gives up
 * one after its job.
 *
 * A sleeping worker has given its GPUs back to its account (ADR 54), a suspended one to everybody (ADR 109). Its wake
 * is placed in the same turns as a start, before the starts of its endpoint, on these GPUs only. An idle worker that
 * can sleep makes room by sleeping: for its account, or for everybody if it is suspended. If the GPUs of a sleeping
 * worker do not become free soon and a new worker has room on others, the sleeping one ends.
 *
 * Programs that are not workers count as measured: a card that they use gets no worker. A worker with a share of a
 * card gets a part of its memory beside others (ADR 110). Such workers start one after another on each card.
 *
 * A worker whose platform places it (ADR 58) gets its turn, and counts for the limits of its account and of all
 * workers. Nothing else holds it back: neither this machine, nor workers that wait for a place on the platform.
 */
import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'
import { isHopeless, type Placement } from '../workers/placement.ts'
import { afterEnds } from './card-claims.ts'
import { findPlacementFailure, type PlacementFailure } from './placement-failure.ts'
import { findFit, helps, lostGpu, type PlacementFit, quotaReached, type Search, wantedGpus } from './placement-fit.ts'
import type {
  Eviction,
  Occupant,
  Placed,
  PlacementDecision,
  PlacementInput,
  Tenant,
  Unplaced,
  Unwoken,
  WantedWake,
  Woken,
} from './placement-input.ts'

/**
 * Number of dwells that an endpoint without a worker waits before a busy worker of another one makes room after its
 * job.
 */
export const TURN_DWELLS = 10

/** Time after which a worker with a share no longer keeps others from a start on its card. */
export const START_MS = 60_000

/** Decides the placement of all wanted workers. */
export function placeWorkers(input: PlacementInput): PlacementDecision {
  return new PlacementDecider(input).decide()
}

interface Standing {
  readonly tenant: Tenant
  /** Number of workers that it has or gets now, without leaving ones. */
  have: number
  /** Number of its workers that may be taken from it. */
  spare: number
  /** Number of further workers that it wants. */
  wanted: number
  /** Its sleeping workers that it wants again. */
  wakes: readonly WantedWake[]
}

/** A way to make room for an endpoint that cannot be placed now. */
interface Way {
  readonly room: PlacementFit
  readonly victims: readonly Victim[]
  /** True if the victims may be busy. */
  readonly afterJob: boolean
  /** True if the room comes from a worker that goes to sleep. */
  readonly sleeps: boolean
}

/** A worker that makes room. */
interface Victim {
  readonly worker: Occupant
  /** True if it sleeps, which frees its GPUs, and does not end. */
  readonly sleeps: boolean
}

class PlacementDecider {
  readonly #input: PlacementInput
  readonly #standings = new Map<EndpointId, Standing>()
  #occupants: readonly Occupant[]
  /** Reservations of waiting endpoints, and places given in this decision. */
  readonly #taken: Occupant[] = []
  /** See {@link #all}. */
  #everyone: { readonly occupants: readonly Occupant[]; taken: number; readonly all: Occupant[] } | null = null
  readonly #placed: Placed[] = []
  readonly #woken: Woken[] = []
  readonly #unwoken: Unwoken[] = []
  readonly #evictions: Eviction[] = []
  readonly #unplaced: Unplaced[] = []
  /** Number of workers that accounts have or get now, without leaving ones. */
  readonly #ofOwner = new Map<OwnerId, number>()
  #wakeAtMs: number | null = null

  constructor(input: PlacementInput) {
    this.#input = input
    this.#occupants = [...input.occupants].sort((a, b) => order(a.workerId, b.workerId))
    for (const tenant of input.tenants) {
      const stays = input.occupants.filter(({ endpointId, phase }) => endpointId === tenant.id && counts(phase))
      const spare = Math.max(0, stays.length - tenant.workersMin)
      this.#standings.set(tenant.id, {
        tenant,
        have: stays.length,
        spare,
        wanted: tenant.wanted,
        wakes: tenant.wakes,
      })
    }
    for (const { owner, phase } of input.occupants) if (counts(phase)) this.#count(owner, 1)
  }

  decide(): PlacementDecision {
    const waiting = new Set([...this.#standings.values()].filter(one => wishes(one) > 0))
    while (waiting.size > 0) {
      const next = [...waiting].reduce((best, other) => (this.#compare(other, best) < 0 ? other : best))
      const [wake] = next.wakes
      if (!this.#place(next)) {
        if (wake === undefined) {
          this.#makeRoom(next)
          next.wanted = 0
        } else {
          this.#makeRoomAgain(next, wake)
          // Its other sleeping workers wait for the same reason; new ones may have room on other cards.
          next.wakes = []
        }
      }
      if (wishes(next) === 0) waiting.delete(next)
    }
    return {
      placed: this.#placed,
      woken: this.#woken,
      unwoken: this.#unwoken,
      evictions: this.#evictions,
      unplaced: this.#unplaced,
      wakeAtMs: this.#wakeAtMs,
    }
  }

  #place(standing: Standing): boolean {
    const { nowMs } = this.#input
    const room = findFit({ ...this.#createSearch(standing), startsAfterMs: nowMs - START_MS }, this.#all())
    if (room === null) return false
    const { tenant } = standing
    const { placement, clamped } = room
    const [wake, ...wakes] = standing.wakes
    if (wake === undefined) {
      this.#placed.push({ endpointId: tenant.id, placement, clamped })
      this.#take(tenant, placement, 'starting')
      standing.wanted -= 1
    } else {
      this.#woken.push(woken(tenant, wake))
      this.#takeAgain(wake, 'starting')
      standing.wakes = wakes
    }
    standing.have += 1
    this.#count(tenant.owner, 1)
    return true
  }

  /** Refuses an endpoint, and makes room for it if possible. */
  #makeRoom(standing: Standing): void {
    const { tenant } = standing
    if (tenant.isSpare || this.#waitsForStart(standing)) return
    const refusal = findPlacementFailure(this.#createSearch(standing), this.#all(), tenant)
    const way = isHopeless(refusal) ? null : (this.#soonWay(standing) ?? this.#turnWay(standing))
    this.#refuse(standing, refusal, way)
    if (way !== null) {
      for (const victim of way.victims) this.#evict(victim, tenant.id, way.afterJob)
      this.#take(tenant, way.room.placement, 'kept')
    } else if (!isHopeless(refusal)) this.#keepFree(standing)
  }

  /** Keeps a share for an endpoint, if only the start of a neighbor on the card is in its way. */
  #waitsForStart(standing: Standing): boolean {
    const { tenant } = standing
    const { compute } = tenant
    if (compute.kind !== 'gpu' || compute.memoryGb === undefined) return false
    const room = findFit(this.#createSearch(standing), this.#all())
    const [gpu] = room?.placement.gpus ?? []
    if (room === null || gpu === undefined) return false
    const reason = `another worker starts on GPU ${gpu.index}; the next one follows when that is ready, or after ${START_MS / 1_000} s`
    this.#refuse(standing, { resource: 'gpu', reason }, null)
    this.#take(tenant, room.placement, 'kept')
    this.#wake(this.#input.nowMs + START_MS)
    return true
  }

  /** Makes room for a sleeping worker whose GPUs are not free, or ends it if a new one has room on others. */
  #makeRoomAgain(standing: Standing, wake: WantedWake): void {
    const { tenant } = standing
    const { reason } = findPlacementFailure(this.#createSearch(standing), this.#all(), tenant)
    const isLost = lostGpu(this.#input, wake.placement) !== null
    const soon = isLost ? null : this.#soonWay(standing)
    const sleeper = this.#occupants.find(({ workerId }) => workerId === wake.workerId)
    if (soon === null && sleeper !== undefined && (isLost || this.#hasRoomInstead(standing, sleeper))) {
      this.#unwoken.push({ ...woken(tenant, wake), reason: `${reason}; it ends, and a new worker starts` })
      this.#evict({ worker: sleeper, sleeps: false }, tenant.id, false)
      return
    }
    const way = soon ?? this.#turnWay(standing)
    this.#unwoken.push({ ...woken(tenant, wake), reason: `${reason}${hopeText(way)}` })
    for (const victim of way?.victims ?? []) this.#evict(victim, tenant.id, way!.afterJob)
    // Without a way, others may use the cards in the meantime: they belong to its own account.
    if (way !== null) this.#takeAgain(wake, 'kept')
  }

  /** True if a new worker has room now, once this sleeping one has ended. */
  #hasRoomInstead(standing: Standing, sleeper: Occupant): boolean {
    const fresh = this.#createSearch({ ...standing, wakes: [] }, 1)
    const others = this.#all().filter(worker => worker !== sleeper)
    return findFit(fresh, others) !== null
  }

  /** A way to room within seconds. */
  #soonWay(standing: Standing): Way | null {
    return this.#leavingWay(standing) ?? this.#frozenWay(standing) ?? this.#idleWay(standing)
  }

  #refuse({ tenant, wanted }: Standing, { resource, reason }: PlacementFailure, way: Way | null): void {
    this.#unplaced.push({ endpointId: tenant.id, count: wanted, resource, reason: `${reason}${hopeText(way)}` })
  }

  /** Room that ending workers will free, and workers that fall asleep. */
  #leavingWay(standing: Standing): Way | null {
    const { owner } = standing.tenant
    const isComing = this.#occupants.some(worker => worker.phase === 'leaving' || isFallingFor(worker, owner))
    return isComing ? this.#without(standing, [], false) : null
  }

  /** Room of frozen workers of other endpoints: no minimum time protects them. */
  #frozenWay(standing: Standing): Way | null {
    const frozen = this.#occupants
      .filter(worker => worker.phase === 'frozen' && !isFallingFor(worker, standing.tenant.owner))
      .sort(
        (a, b) =>
          Number(a.frozen?.hasPriority) - Number(b.frozen?.hasPriority) ||
          (a.frozen?.sinceMs ?? 0) - (b.frozen?.sinceMs ?? 0) ||
          order(a.workerId, b.workerId),
      )
    return frozen.length === 0 ? null : this.#victims(standing, frozen, false)
  }

  /** Room of idle workers of other endpoints that have stayed their minimum time. */
  #idleWay(standing: Standing): Way | null {
    const { nowMs } = this.#input
    const idle = this.#occupants
      .filter(worker => worker.phase === 'idle' && this.#standings.get(worker.endpointId)?.tenant.hasWork !== true)
      .sort((a, b) => (a.idleSinceMs ?? 0) - (b.idleSinceMs ?? 0) || order(a.workerId, b.workerId))
    const ripe = idle.filter(worker => this.#ripeAtMs(worker) <= nowMs)
    const way = this.#victims(standing, ripe, false)
    if (way !== null) return way
    for (const worker of idle) if (this.#ripeAtMs(worker) > nowMs) this.#wake(this.#ripeAtMs(worker))
    return null
  }

  /** Room of a busy worker of the endpoint with the most workers, after its job. */
  #turnWay(standing: Standing): Way | null {
    const { nowMs, rules } = this.#input
    if (standing.have > 0) return null
    const dueMs = standing.tenant.sinceMs + TURN_DWELLS * rules.dwellMs
    if (dueMs > nowMs) {
      this.#wake(dueMs)
      return null
    }
    const have = (worker: Occupant) => this.#standings.get(worker.endpointId)?.have ?? 0
    const ready = this.#occupants
      .filter(worker => (worker.phase === 'busy' || worker.phase === 'idle') && this.#ripeAtMs(worker) <= nowMs)
      .sort((a, b) => have(b) - have(a) || (a.readyAtMs ?? 0) - (b.readyAtMs ?? 0) || order(a.workerId, b.workerId))
    return this.#victims(standing, ready, true)
  }

  /** Time at which a worker has stayed its minimum time. */
  #ripeAtMs({ readyAtMs }: Occupant): number {
    return readyAtMs === null ? Number.POSITIVE_INFINITY : readyAtMs + this.#input.rules.dwellMs
  }

  /** The fewest of these workers, in their order, whose end makes room. */
  #victims(standing: Standing, candidates: readonly Occupant[], afterJob: boolean): Way | null {
    const search = this.#createSearch(standing)
    const spare = new Map<EndpointId, number>()
    const share = new Map<OwnerId, number>()
    const chosen: Victim[] = []
    // An account at its limit can only replace its own workers.
    const reached = quotaReached(search, this.#all())
    const within = reached !== null
    const sleepHelps = wantedGpus(search) > 0 && search.slots >= 1 && reached !== 'account_workers' && !afterJob
    for (const worker of candidates) {
      const { endpointId, owner } = worker
      const left = spare.get(endpointId) ?? this.#standings.get(endpointId)?.spare ?? 0
      const has = share.get(owner) ?? this.#ofOwner.get(owner) ?? 0
      const yields = worker.phase === 'frozen' || left > 0 || this.#isOverShare(owner, has, standing)
      const isOwn = endpointId === standing.tenant.id
      if (isOwn || !yields || chosen.length >= MAX_VICTIMS) continue
      if (within ? !isOfSameKind(worker, standing.tenant) : !helps(search, worker)) continue
      if (counts(worker.phase)) {
        spare.set(endpointId, left - 1)
        share.set(owner, has - 1)
      }
      chosen.push({ worker, sleeps: sleepHelps && canSleepFor(worker, standing.tenant.owner) })
      if (this.#without(standing, chosen, afterJob) !== null) break
    }
    if (this.#without(standing, chosen, afterJob) === null) return null
    // The first victims may not have been needed.
    let needed: readonly Victim[] = chosen
    for (const victim of chosen) {
      const fewer = needed.filter(other => other !== victim)
      if (this.#without(standing, fewer, afterJob) !== null) needed = fewer
    }
    return this.#without(standing, needed, afterJob)
  }

  /**
   * True if room exists after the end or sleep of the victims, of all leaving workers, and of those that fall asleep.
   */
  #without(standing: Standing, victims: readonly Victim[], afterJob: boolean): Way | null {
    const gone = new Set(this.#leaving())
    const asleep = new Set(this.#occupants.filter(({ sleep }) => sleep === 'falling'))
    for (const { worker, sleeps } of victims) (sleeps ? asleep : gone).add(worker)
    const stay = this.#all()
      .filter(worker => !gone.has(worker))
      .map((worker): Occupant => (asleep.has(worker) ? { ...worker, sleep: 'asleep' } : worker))
    const cards = afterEnds(this.#input.cards ?? new Map(), [...gone, ...asleep])
    const room = findFit({ ...this.#createSearch(standing, gone.size), cards }, stay)
    if (room === null) return null
    return { room, victims, afterJob, sleeps: gone.size === 0 && asleep.size > 0 }
  }

  /**
   * Reserves the free part of the needs of an endpoint without a worker, after a wait, if others can free the rest.
   */
  #keepFree(standing: Standing): void {
    const { nowMs, rules } = this.#input
    if (standing.have > 0) return
    const dueMs = standing.tenant.sinceMs + rules.dwellMs
    if (dueMs > nowMs) {
      this.#wake(dueMs)
      return
    }
    const search = this.#createSearch(standing)
    const all = this.#all()
    const spare = new Map<EndpointId, number>()
    const stay = all.filter(worker => {
      const owner = this.#standings.get(worker.endpointId)
      const left = spare.get(worker.endpointId) ?? (owner === undefined ? 0 : owner.have - owner.tenant.workersMin)
      if (worker.phase === 'leaving') return false
      if (worker.phase === 'kept' || left <= 0 || !helps(search, worker)) return true
      spare.set(worker.endpointId, left - 1)
      return false
    })
    const freed = this.#createSearch(standing, all.length - stay.length)
    const room = findFit({ ...freed, avoided: all }, stay)
    if (room !== null) this.#take(standing.tenant, room.placement, 'kept')
  }

  #evict({ worker: victim, sleeps }: Victim, by: EndpointId, afterJob: boolean): void {
    const { workerId, endpointId } = victim
    this.#evictions.push({ workerId, endpointId, for: by, sleeps, afterJob })
    const after: Occupant = sleeps
      ? { ...victim, phase: 'frozen', frozen: { sinceMs: this.#input.nowMs, hasPriority: false }, sleep: 'falling' }
      : { ...victim, phase: 'leaving' }
    this.#occupants = this.#occupants.map(worker => (worker === victim ? after : worker))
    const standing = this.#standings.get(endpointId)
    if (standing === undefined || !counts(victim.phase)) return
    standing.have -= 1
    standing.spare -= 1
    this.#count(standing.tenant.owner, -1)
  }

  #take({ id, owner, name }: Tenant, placement: Placement, phase: 'starting' | 'kept'): void {
    this.#taken.push({
      workerId: '' as WorkerId,
      endpointId: id,
      owner,
      endpointName: name,
      placement,
      phase,
      readyAtMs: null,
      startingSinceMs: phase === 'starting' ? this.#input.nowMs : null,
      idleSinceMs: null,
      frozen: null,
      sleep: null,
      suspends: false,
    })
  }

  /** Gives a sleeping worker its GPUs again, or keeps them for it. */
  #takeAgain({ workerId }: WantedWake, phase: 'starting' | 'kept'): void {
    const startingSinceMs = phase === 'starting' ? this.#input.nowMs : null
    this.#occupants = this.#occupants.map(worker =>
      worker.workerId === workerId ? { ...worker, phase, startingSinceMs, frozen: null, sleep: null } : worker,
    )
  }

  /** The needs of an endpoint. @param freed number of workers that count as ended */
  #createSearch({ tenant, wakes: [wake] }: Standing, freed = 0): Search {
    const { capacity, parts, cards, rules } = this.#input
    const common = { tenant, parts, cards, rules, bound: capacity.bound, quota: this.#input.quotas?.get(tenant.owner) }
    if (wake !== undefined) return { ...common, slots: Number.POSITIVE_INFINITY, again: wake }
    return { ...common, slots: (capacity.freeWorkers ?? Number.POSITIVE_INFINITY) + freed - this.#taken.length }
  }

  /**
   * True if another account has so many more workers that its workersMin makes room too, for waiting work and not for
   * another workersMin.
   */
  #isOverShare(owner: OwnerId, has: number, { tenant, have }: Standing): boolean {
    const forWork = tenant.hasWork || have >= tenant.workersMin
    return forWork && owner !== tenant.owner && has > (this.#ofOwner.get(tenant.owner) ?? 0) + 1
  }

  /** The order of turns: wants for work, the account with fewer workers first, then as {@link compare}. */
  #compare(a: Standing, b: Standing): number {
    if (a.tenant.isSpare !== b.tenant.isSpare) return a.tenant.isSpare ? 1 : -1
    const [x, y] = [a.tenant.owner, b.tenant.owner]
    const byAccount = x === y ? 0 : (this.#ofOwner.get(x) ?? 0) - (this.#ofOwner.get(y) ?? 0)
    return byAccount === 0 ? compare(a, b) : byAccount
  }

  #count(owner: OwnerId, more: number): void {
    this.#ofOwner.set(owner, (this.#ofOwner.get(owner) ?? 0) + more)
  }

  #leaving(): readonly Occupant[] {
    return this.#occupants.filter(({ phase }) => phase === 'leaving')
  }

  /** Rebuilt only after a change: a platform may get thousands of workers in one decision. */
  #all(): readonly Occupant[] {
    const cache = this.#everyone
    if (cache?.occupants === this.#occupants) {
      for (let index = cache.taken; index < this.#taken.length; index += 1) cache.all.push(this.#taken[index]!)
      cache.taken = this.#taken.length
      return cache.all
    }
    const all = [...this.#occupants, ...this.#taken]
    this.#everyone = { occupants: this.#occupants, taken: this.#taken.length, all }
    return all
  }

  #wake(atMs: number): void {
    this.#wakeAtMs = Math.min(this.#wakeAtMs ?? Number.POSITIVE_INFINITY, atMs)
  }
}

/** True if a worker counts as one of its endpoint and account: a frozen one only keeps its place. */
function counts(phase: Occupant['phase']): boolean {
  return phase !== 'leaving' && phase !== 'frozen'
}

/** True if its end helps an account at its limit, without an end on this machine for a worker that runs elsewhere. */
function isOfSameKind({ owner, placement }: Occupant, tenant: Tenant): boolean {
  return owner === tenant.owner && (tenant.placedBy === 'machine' || placement?.asked !== undefined)
}

/** Number of workers that it wants and does not have: sleeping ones and further ones. */
function wishes({ wanted, wakes }: Standing): number {
  return wanted + wakes.length
}

function woken({ id }: Tenant, { workerId }: WantedWake): Woken {
  return { endpointId: id, workerId }
}

/** True if the GPUs of a worker become free for this account, because it falls asleep. */
function isFallingFor({ sleep, suspends, owner }: Occupant, asker: OwnerId): boolean {
  return sleep === 'falling' && (suspends || owner === asker)
}

/** True if a worker can give its GPUs to this account by its sleep. */
function canSleepFor({ sleep, suspends, owner }: Occupant, asker: OwnerId): boolean {
  return sleep === 'able' && (suspends || owner === asker)
}

function hopeText(way: Way | null): string {
  if (way === null) return ''
  if (way.afterJob) return HOPES.afterJob
  return way.sleeps ? HOPES.sleep : HOPES.soon
}

/** Limit of workers that make room for one. */
const MAX_VICTIMS = 64

const HOPES = {
  soon: '; it gets the room of a worker that is ending',
  sleep: '; it gets the card of a worker that goes to sleep',
  afterJob: '; it gets the room of a worker that ends after its job',
}

/** The order of turns of endpoints of one account. */
function compare(a: Standing, b: Standing): number {
  const isBelow = ({ have, tenant }: Standing) => (have < tenant.workersMin ? 0 : 1)
  const share = (standing: Standing) => standing.have / (standing.have + wishes(standing))
  return (
    isBelow(a) - isBelow(b) ||
    share(a) - share(b) ||
    a.tenant.sinceMs - b.tenant.sinceMs ||
    order(a.tenant.id, b.tenant.id)
  )
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
