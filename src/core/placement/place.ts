/**
 * Places workers on the machine. Pure: the same inventory, workers and demands give the same decision.
 *
 * Workers are placed one at a time, in turns; turn-order.ts says who has the next one.
 *
 * An endpoint that cannot be placed may get room: frozen workers of other endpoints end, those frozen longest first
 * and those of PRIORITY_FLASHBOOT last; else an idle worker of another endpoint that has stayed its minimum time is
 * asked to end. If that is not enough, an endpoint without any worker reserves the free part of what it needs, so
 * that smaller demands do not always overtake it, and after a longer wait the endpoint with the most workers gives up
 * one after its job.
 *
 * A sleeping worker has given its GPUs back to its account (ADR 54), a suspended one to everybody (ADR 109). Its wake
 * is placed in the same turns as a start, before the starts of its endpoint, on these GPUs only. An idle worker that
 * can sleep makes room by sleeping: for its account, or for everybody if it is suspended. It ends where a suspend
 * gains nothing, as leaving.ts says (ADR 119). If the GPUs of a sleeping worker do not become free soon and a new
 * worker has room on others, the sleeping one ends.
 *
 * Programs that are not workers count as measured: a card that they use gets no worker. A worker with a share of a
 * card gets a part of its memory beside others (ADR 110). Such workers start one after another on each card.
 *
 * Where all that is not enough, a busy worker of lower priority that allows it is paused in the middle of its job
 * (ADR 112), for waiting work of the same account. It gets its room again as a sleeping worker does, and after the
 * longest pause before everybody. While nobody can free its cards then, they are kept for it, and the GPUs that its
 * account may have at once are not: others have them if they can go on.
 *
 * A worker whose platform places it (ADR 58) gets its turn, and counts for the limits of its account and of all
 * workers. Nothing else holds it back: neither this machine, nor workers that wait for a place on the platform.
 */
import { gpuKey } from '../hardware/inventory.ts'
import type { EndpointId, OwnerId } from '../ids.ts'
import { isHopeless } from '../workers/placement.ts'
import { END_REASONS } from './leaving.ts'
import { overdueAtMs } from './pauses.ts'
import { findPlacementFailure, type PlacementFailure } from './placement-failure.ts'
import { findFit, helps, lostGpu } from './placement-fit.ts'
import type {
  Eviction,
  Occupant,
  Pause,
  Placed,
  PlacementDecision,
  PlacementInput,
  Stranded,
  Tenant,
  Unplaced,
  Unwoken,
  WantedWake,
  Woken,
} from './placement-input.ts'
import { PlacementLedger, type Standing, type Victim } from './placement-ledger.ts'
import { RoomWays, type Way } from './room-ways.ts'
import { nextTurn } from './turn-order.ts'

/** Time after which a worker with a share no longer keeps others from a start on its card. */
export const START_MS = 60_000

/** Decides the placement of all wanted workers. */
export function placeWorkers(input: PlacementInput): PlacementDecision {
  return new PlacementDecider(input).decide()
}

class PlacementDecider {
  readonly #ledger: PlacementLedger
  readonly #ways: RoomWays
  readonly #placed: Placed[] = []
  readonly #woken: Woken[] = []
  readonly #unwoken: Unwoken[] = []
  readonly #evictions: Eviction[] = []
  readonly #pauses: Pause[] = []
  readonly #stranded: Stranded[] = []
  readonly #unplaced: Unplaced[] = []

  constructor(input: PlacementInput) {
    this.#ledger = new PlacementLedger(input)
    this.#ways = new RoomWays(this.#ledger)
  }

  decide(): PlacementDecision {
    const waiting = new Set([...this.#ledger.standings.values()].filter(one => wishes(one) > 0))
    const facts = {
      isOverdue: (standing: Standing) => this.#isOverdue(standing),
      countOf: (owner: OwnerId) => this.#ledger.countOf(owner),
    }
    while (waiting.size > 0) {
      const next = nextTurn(waiting, facts)
      const [wake] = next.wakes
      if (!this.#place(next)) {
        if (wake === undefined) {
          this.#makeRoom(next)
          next.wanted = 0
        } else {
          this.#makeRoomAgain(next, wake)
          // Those on the same cards wait for the same reason; others, and new ones, may have room elsewhere.
          next.wakes = next.wakes.filter(other => cardsOf(other) !== cardsOf(wake))
        }
      }
      if (wishes(next) === 0) waiting.delete(next)
    }
    return {
      placed: this.#placed,
      woken: this.#woken,
      unwoken: this.#unwoken,
      evictions: this.#evictions,
      pauses: this.#pauses,
      stranded: this.#stranded,
      unplaced: this.#unplaced,
      wakeAtMs: this.#ledger.wakeAtMs,
    }
  }

  #place(standing: Standing): boolean {
    const { nowMs } = this.#ledger.input
    const room = findFit(
      { ...this.#ledger.createSearch(standing), startsAfterMs: nowMs - START_MS },
      this.#ledger.all(),
    )
    if (room === null) return false
    const { tenant } = standing
    const { placement, clamped } = room
    const [wake, ...wakes] = standing.wakes
    if (wake === undefined) {
      this.#placed.push({ endpointId: tenant.id, placement, clamped })
      this.#ledger.take(tenant, placement, 'starting')
      standing.wanted -= 1
    } else {
      this.#woken.push(woken(tenant, wake))
      this.#ledger.takeAgain(wake, 'starting')
      standing.wakes = wakes
    }
    standing.have += 1
    standing.promised -= 1
    this.#ledger.count(tenant.owner, 1)
    return true
  }

  /** Refuses an endpoint, and makes room for it if possible. */
  #makeRoom(standing: Standing): void {
    const { tenant } = standing
    if (tenant.isSpare || this.#waitsForStart(standing)) return
    const refusal = findPlacementFailure(this.#ledger.createSearch(standing), this.#ledger.all(), tenant)
    const way = isHopeless(refusal)
      ? null
      : (this.#ways.soonWay(standing) ?? this.#ways.pauseWay(standing) ?? this.#ways.turnWay(standing))
    this.#refuse(standing, refusal, way)
    if (way !== null) {
      for (const victim of way.victims) this.#evict(victim, tenant.id, way.afterJob)
      this.#ledger.take(tenant, way.room.placement, 'kept')
    } else if (!isHopeless(refusal)) this.#keepFree(standing)
  }

  /** Keeps a share for an endpoint, if only the start of a neighbor on the card is in its way. */
  #waitsForStart(standing: Standing): boolean {
    const { tenant } = standing
    const { compute } = tenant
    if (compute.kind !== 'gpu' || compute.memoryGb === undefined) return false
    const room = findFit(this.#ledger.createSearch(standing), this.#ledger.all())
    const [gpu] = room?.placement.gpus ?? []
    if (room === null || gpu === undefined) return false
    const reason = `another worker starts on GPU ${gpu.index}; the next one follows when that is ready, or after ${START_MS / 1_000} s`
    this.#refuse(standing, { resource: 'gpu', reason }, null)
    this.#ledger.take(tenant, room.placement, 'kept')
    this.#ledger.wake(this.#ledger.input.nowMs + START_MS)
    return true
  }

  /** Makes room for a sleeping worker whose GPUs are not free, or ends it if a new one has room on others. */
  #makeRoomAgain(standing: Standing, wake: WantedWake): void {
    const { tenant } = standing
    const { reason } = findPlacementFailure(this.#ledger.createSearch(standing), this.#ledger.all(), tenant)
    const isLost = lostGpu(this.#ledger.input, wake.placement) !== null
    if (wake.pausedSinceMs !== undefined) {
      // While the machine cannot be read its cards are not known to be gone.
      if (isLost && this.#ledger.input.parts.problem === null) this.#stranded.push({ ...woken(tenant, wake), reason })
      else this.#makeRoomForPaused(standing, wake, reason)
      return
    }
    const soon = isLost ? null : this.#ways.soonWay(standing)
    const sleeper = this.#ledger.occupants.find(({ workerId }) => workerId === wake.workerId)
    if (soon === null && sleeper !== undefined && (isLost || this.#hasRoomInstead(standing, sleeper))) {
      this.#unwoken.push({ ...woken(tenant, wake), reason: `${reason}; it ends, and a new worker starts` })
      this.#evict({ worker: sleeper, how: 'ends', endsSince: null }, tenant.id, false)
      return
    }
    const way = soon ?? this.#ways.pauseWay(standing) ?? this.#ways.turnWay(standing)
    this.#unwoken.push({ ...woken(tenant, wake), reason: `${reason}${hopeText(way)}` })
    for (const victim of way?.victims ?? []) this.#evict(victim, tenant.id, way!.afterJob)
    // Without a way, others may use the cards in the meantime: they belong to its own account.
    if (way !== null) this.#ledger.takeAgain(wake, 'kept')
  }

  /** Makes room for a paused worker, after its longest pause also by workers that end after their jobs. */
  #makeRoomForPaused(standing: Standing, wake: WantedWake, reason: string): void {
    const { tenant } = standing
    const isOverdue = this.#isOverdue(standing)
    const last = () => (isOverdue ? this.#ways.overdueWay(standing) : this.#ways.turnWay(standing))
    const way = this.#ways.soonWay(standing) ?? this.#ways.pauseWay(standing) ?? last()
    this.#unwoken.push({ ...woken(tenant, wake), reason: `${reason}${hopeText(way)}` })
    for (const victim of way?.victims ?? []) this.#evict(victim, tenant.id, way!.afterJob)
    if (way !== null || isOverdue) this.#ledger.takeAgain(wake, 'kept', way !== null)
    else this.#ledger.wake(overdueAtMs(wake, this.#ledger.input.pauseRules)!)
  }

  /** True if a new worker has room now, once this sleeping one has ended. */
  #hasRoomInstead(standing: Standing, sleeper: Occupant): boolean {
    const fresh = this.#ledger.createSearch({ ...standing, wakes: [] }, 1)
    const others = this.#ledger.all().filter(worker => worker !== sleeper)
    return findFit(fresh, others) !== null
  }

  #refuse(standing: Standing, { resource, reason }: PlacementFailure, way: Way | null): void {
    const { tenant, wanted } = standing
    const hasLimit = way === null && this.#ways.pausesLeft() <= 0 && this.#ways.pausable(standing).length > 0
    const hope = hasLimit ? LIMIT_OF_PAUSES : hopeText(way)
    this.#unplaced.push({ endpointId: tenant.id, count: wanted, resource, reason: `${reason}${hope}` })
  }

  /**
   * Reserves the free part of the needs of an endpoint without a worker, after a wait, if others can free the rest.
   */
  #keepFree(standing: Standing): void {
    const { nowMs, rules } = this.#ledger.input
    if (standing.have > 0) return
    const dueMs = standing.tenant.sinceMs + rules.dwellMs
    if (dueMs > nowMs) {
      this.#ledger.wake(dueMs)
      return
    }
    const search = this.#ledger.createSearch(standing)
    const all = this.#ledger.all()
    const spare = new Map<EndpointId, number>()
    const stay = all.filter(worker => {
      const owner = this.#ledger.standings.get(worker.endpointId)
      const left = spare.get(worker.endpointId) ?? (owner === undefined ? 0 : owner.have - owner.tenant.workersMin)
      if (worker.phase === 'leaving') return false
      if (worker.phase === 'kept' || left <= 0 || !helps(search, worker)) return true
      spare.set(worker.endpointId, left - 1)
      return false
    })
    const freed = this.#ledger.createSearch(standing, all.length - stay.length)
    const room = findFit({ ...freed, avoided: all }, stay)
    if (room !== null) this.#ledger.take(standing.tenant, room.placement, 'kept')
  }

  #isOverdue({ wakes: [wake] }: Standing): boolean {
    const atMs = overdueAtMs(wake, this.#ledger.input.pauseRules)
    return atMs !== null && atMs <= this.#ledger.input.nowMs
  }

  #evict(victim: Victim, by: EndpointId, afterJob: boolean): void {
    const { workerId, endpointId } = victim.worker
    if (victim.how === 'is_paused') this.#pauses.push({ workerId, endpointId, for: by })
    else {
      const { how, endsSince } = victim
      this.#evictions.push({ workerId, endpointId, for: by, sleeps: how === 'sleeps', endsSince, afterJob })
    }
    this.#ledger.makesRoom(victim, by)
  }
}

/** Number of workers that it wants and does not have: sleeping ones and further ones. */
function wishes({ wanted, wakes }: Standing): number {
  return wanted + wakes.length
}

/** The cards of a worker, as a key; empty for one without. */
function cardsOf({ placement }: WantedWake): string {
  return placement.gpus.map(gpuKey).join()
}

function woken({ id }: Tenant, { workerId }: WantedWake): Woken {
  return { endpointId: id, workerId }
}

function hopeText(way: Way | null): string {
  if (way === null) return ''
  if (way.afterJob) return HOPES.afterJob
  if (way.pauses) return HOPES.pause
  if (way.sleeps) return HOPES.sleep
  return way.endsSince === null ? HOPES.soon : `${HOPES.soon}, ${END_REASONS[way.endsSince]}`
}

const LIMIT_OF_PAUSES =
  '; it may have the room of a worker of lower priority, and no further one may be paused (--max-paused)'

const HOPES = {
  soon: '; it gets the room of a worker that is ending',
  sleep: '; it gets the card of a worker that goes to sleep',
  pause: '; it gets the room of a worker of lower priority that is being paused',
  afterJob: '; it gets the room of a worker that ends after its job',
}
