import { type AttentionKind, failingShare, findAttention } from '../../core/alerts/concern.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import { type EndpointState, endpointState } from '../../core/observing/endpoint-state.ts'
import type { Explanation } from '../../core/observing/explanation.ts'
import type { RequestRate } from '../../core/observing/recent-results.ts'
import { countWorkers, type ShownWorker, shownWorkers, type WorkerCounts } from '../../core/observing/worker-status.ts'
import { type PageRequest, pageFromRows, readSlice } from '../../core/pages.ts'
import { findRolloutState, type RolloutState, rolloutProblem } from '../../core/scaling/rollout.ts'
import { type EndpointSnapshot, waitingCount } from '../../core/scaling/scale.ts'
import { isFrozen } from '../../core/workers/worker.ts'
import { findCrashCause } from '../../core/workers/worker-failure.ts'
import type { Ports } from '../../ports/ports.ts'
import type { LoadBalancer } from '../balancing/load-balancer.ts'
import { listedInParts } from '../listed-endpoints.ts'
import { mapConcurrently } from '../map-concurrently.ts'
import type { Explainer } from './explainer.ts'
import type { RecentResults } from './recent-results.ts'

/** The part of an explanation that fits into a row. */
export type StateReason = Pick<Explanation, 'cause' | 'summary' | 'sinceMs'>

/** One endpoint in the overview. */
export interface OverviewRow {
  readonly endpoint: Endpoint
  readonly image: string | null
  readonly state: EndpointState
  readonly counts: WorkerCounts
  /** The frozen ones among the idle ones. */
  readonly frozen: number
  readonly queue: EndpointSnapshot['queue']
  readonly rate: RequestRate
  /** Reason why something waits or is wrong; null without one, and for a row without an explanation. */
  readonly why: StateReason | null
  /** The kind of attention that it needs; null for none. */
  readonly attention: AttentionKind | null
  /** Share of its requests that fail, if somebody should look at that; else null. */
  readonly failingShare: number | null
  readonly rollout: RolloutState
  /** Percentage of the workers that run the newest release while it is a canary, else null. */
  readonly canary: number | null
}

/** A page of the overview. */
export interface OverviewPage {
  readonly rows: readonly OverviewRow[]
  /** Rows in which something waits or is wrong and `why` was left out. */
  readonly unexplained: number
  readonly nextCursor: string | null
}

/** Maximum number of rows with an explanation, which takes several reads of the store: the list is read often. */
const MAX_EXPLAINED_ROWS = 50
const CONCURRENCY = 10

/** An endpoint before its `why` is known. */
interface Row extends Omit<OverviewRow, 'state' | 'why' | 'rate' | 'attention' | 'failingShare'> {
  readonly snapshot: EndpointSnapshot
  readonly waiting: number
  readonly isExplained: boolean
  /** Problem of a worker where no worker is ready, which is shown although nothing waits for it. */
  readonly ill: StateReason | null
}

/** All endpoints of an owner, one row each: read in few statements, so that a page of 1,000 can be read often. */
export class Overview {
  readonly #store
  readonly #balancing
  readonly #explaining
  readonly #recent

  constructor({ store }: Ports, balancing: LoadBalancer, explaining: Explainer, recent: RecentResults) {
    this.#store = store
    this.#balancing = balancing
    this.#explaining = explaining
    this.#recent = recent
  }

  /**
   * A page of the endpoints, oldest first.
   * @throws AppError `invalid` for a cursor that no page had, or a limit out of bounds
   */
  async page(owner: OwnerId, request: PageRequest): Promise<OverviewPage> {
    const slice = readSlice(request)
    const listed = await listedInParts({ store: this.#store }, owner, slice)
    const places = listed.map(listedEndpoint => ({ ...listedEndpoint, ...listedEndpoint.snapshot.endpoint }))
    const { items, nextCursor } = pageFromRows(places, slice)
    const rows = items.map(({ snapshot, image }) => rowFromSnapshot(this.#balancing.counted(snapshot), image))
    const rates = await this.#recent.rates(rows.map(({ endpoint }) => endpoint.id))
    const explainedRows = rows.filter(({ isExplained }) => isExplained).sort(byUrgency)
    const explanations = await this.#explain(explainedRows.slice(0, MAX_EXPLAINED_ROWS))
    return {
      rows: rows.map(row => finished(row, rates.get(row.endpoint.id)!, explanations.get(row.endpoint.id) ?? null)),
      unexplained: Math.max(0, explainedRows.length - MAX_EXPLAINED_ROWS),
      nextCursor,
    }
  }

  async #explain(rows: readonly Row[]): Promise<Map<EndpointId, Explanation>> {
    const explanations = await mapConcurrently(rows, CONCURRENCY, async ({ endpoint }) => {
      // The overview has only the last exit of each; an explanation counts crashes.
      const snapshot = await this.#balancing.snapshot(endpoint.id)
      return snapshot === null ? [] : ([[endpoint.id, await this.#explaining.of(snapshot)]] as const)
    })
    return new Map(explanations.flat())
  }
}

function rowFromSnapshot(snapshot: EndpointSnapshot, image: string | null): Row {
  const { endpoint, queue, workers } = snapshot
  const shown = shownWorkers(snapshot)
  const counts = countWorkers(shown)
  const waiting = waitingCount(queue)
  const lacksSpare = endpoint.workersMin > 0 && endpoint.workersMax > 0 && counts.ready === 0
  const rollout = findRolloutState(snapshot, null)
  const isWrong = counts.unhealthy > 0 || counts.throttled > 0 || rolloutProblem(snapshot, null) !== null
  return {
    snapshot,
    endpoint,
    image,
    counts,
    frozen: workers.filter(isFrozen).length,
    queue,
    rollout,
    canary: rollout === 'CANARY' ? snapshot.rollout.canary : null,
    waiting,
    isExplained: waiting > 0 || lacksSpare || isWrong,
    ill: counts.ready > 0 ? null : findIllness(shown),
  }
}

function findIllness(shown: readonly ShownWorker[]): StateReason | null {
  const unhealthy = shown.find(({ status }) => status === 'UNHEALTHY')
  if (unhealthy?.worker == null) return null
  const { id, exit, exitedAtMs, problemAtMs } = unhealthy.worker
  const cause = exit === null ? 'unhealthy' : findCrashCause(unhealthy.worker)
  return { cause, summary: `worker ${id}: ${unhealthy.reason}`, sinceMs: exitedAtMs ?? problemAtMs }
}

function finished({ endpoint, ill, waiting, ...row }: Row, rate: RequestRate, found: StateReason | null): OverviewRow {
  const { image, counts, frozen, queue, rollout, canary } = row
  const isFine = found === null || found.cause === 'nothing_waits' || (found.cause === 'running' && waiting === 0)
  const why = isFine ? ill : found
  const state = endpointState({ endpoint, counts, rollout, waiting, cause: found?.cause ?? null })
  const attention = findAttention({ why, isRolloutStopped: rollout === 'STOPPED', rate })
  const share = failingShare(rate)
  return { endpoint, image, counts, frozen, queue, rollout, canary, rate, state, why, attention, failingShare: share }
}

/** Order of rows: those without a ready worker first, then those that wait longest. */
function byUrgency(a: Row, b: Row): number {
  const lacks = Number(a.counts.ready > 0) - Number(b.counts.ready > 0)
  const since = ({ queue }: Row) => queue.headQueuedAtMs ?? Number.POSITIVE_INFINITY
  return lacks || (since(a) === since(b) ? 0 : since(a) - since(b))
}
