import type { Caller } from '../../core/accounts/permission.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { notFound } from '../../core/errors.ts'
import type { EndpointId, JobId, OwnerId, WorkerId } from '../../core/ids.ts'
import { ATTEMPT_TIMES_KEPT_MS, type AttemptTimes, timesFromBlock } from '../../core/jobs/attempt-times.ts'
import type { Job } from '../../core/jobs/job.ts'
import { type ExplainContext, explainEndpoint } from '../../core/observing/explain.ts'
import { explainJob, MAX_REQUESTS_AHEAD } from '../../core/observing/explain-job.ts'
import { explainedSnapshot, withRollout, withRolloutNote } from '../../core/observing/explain-rollout.ts'
import { type Explanation, type Note, plainNote } from '../../core/observing/explanation.ts'
import { type ActionFacts, isInTrouble } from '../../core/observing/fix-actions.ts'
import { withDamage, withFullStore } from '../../core/observing/store-trouble.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import { withoutGpus } from '../../core/placement/placement-fit.ts'
import { PLACEMENT_RULES, type PlacementRules } from '../../core/placement/placement-input.ts'
import { type PlannedRelease, plannedRelease } from '../../core/scaling/rollout.ts'
import type { EndpointSnapshot } from '../../core/scaling/scale.ts'
import type { StartFailure } from '../../core/workers/start-failure.ts'
import type { PortConflict } from '../../core/workers/worker-exit.ts'
import type { Ports } from '../../ports/ports.ts'
import type { LoadBalancer } from '../balancing/load-balancer.ts'
import type { CardReader } from '../hardware/card-reader.ts'
import { mapConcurrently } from '../map-concurrently.ts'
import type { EndpointModels } from '../models/endpoint-models.ts'
import { onePage } from '../paging.ts'
import type { Fleet } from '../workers/fleet.ts'
import type { RunningWorkers } from '../workers/running-workers.ts'
import type { WorkerSuspender } from '../workers/worker-suspender.ts'
import { CardNotes } from './card-notes.ts'
import type { TimeKeeper } from './server-time.ts'
import { readUrgentNames } from './urgent-names.ts'

/** Maximum number of endpoints on a page of explanations: each takes several reads of the store. */
const MAX_EXPLAINED = 100
/** Maximum number of workers of an endpoint whose ports are checked. */
const MAX_OBSERVED = 20
/** Limit of endpoints that are explained at the same time. */
const CONCURRENCY = 10

/** The part of a caller that decides what an explanation names. */
export type Viewer = Pick<Caller, 'operator'>

/** A reader without the rights of the operator. */
const ANYBODY: Viewer = { operator: false }

/** An endpoint with the reason why its jobs wait. */
export interface EndpointExplanation {
  readonly endpoint: Endpoint
  readonly snapshot: EndpointSnapshot
  readonly explanation: Explanation
}

/** Explains why something waits, from the store, the driver and the output of workers. */
export class Explainer {
  readonly #ports
  readonly #parts
  readonly #placing
  readonly #cardNotes

  /** @param placing rules of placement; those that are left out have their defaults */
  constructor(
    ports: Ports,
    parts: {
      readonly fleet: Fleet
      readonly suspender: WorkerSuspender
      readonly running: RunningWorkers
      readonly models: EndpointModels
      readonly balancing: LoadBalancer
      readonly cards: CardReader
      /** Null in a server whose time is that of the machine's clock. */
      readonly timeKeeper: TimeKeeper | null
    },
    placing: Partial<PlacementRules> = {},
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#placing = placing
    this.#cardNotes = new CardNotes(ports, parts.cards)
  }

  /** @throws AppError `not_found` */
  async endpoint(id: EndpointId, viewer: Viewer = ANYBODY): Promise<EndpointExplanation> {
    const snapshot = await this.#readSnapshot(id)
    return { endpoint: snapshot.endpoint, snapshot, explanation: await this.of(snapshot, viewer) }
  }

  /** As {@link endpoint}, from a snapshot that the caller has. */
  async of(snapshot: EndpointSnapshot, viewer: Viewer = ANYBODY): Promise<Explanation> {
    const { release, context, newest, startFailure } = await this.#readContext(snapshot)
    const explanation = withRollout(explainEndpoint(release.snapshot, context), snapshot, startFailure, newest)
    const kept = await this.#parts.suspender.keptMemory(snapshot)
    const suspendNotes = kept === null ? [] : [plainNote(kept)]
    const cardNotes = [...(await this.#cardNotes.ofShares(snapshot)), ...(await this.#programNotes(snapshot, viewer))]
    const starterNotes = await this.#starterNotes(snapshot.endpoint)
    const notes = [...explanation.notes, ...starterNotes, ...suspendNotes, ...cardNotes, ...this.#clockNotes()]
    return this.#overStore({ ...explanation, notes })
  }

  /** @throws AppError `not_found` */
  async job(
    endpointId: EndpointId,
    jobId: JobId,
    viewer: Viewer = ANYBODY,
  ): Promise<{ job: Job; explanation: Explanation }> {
    const snapshot = await this.#readSnapshot(endpointId)
    const { release, context, startFailure } = await this.#readContext(snapshot)
    const job = await this.#ports.store.jobs.find(endpointId, jobId, context.nowMs)
    if (job === null) throw notFound('job', jobId)
    const batch = job.batchId === null ? null : await this.#ports.store.batches.before(jobId, MAX_REQUESTS_AHEAD)
    const ofJob = explainJob(job, release.snapshot, context, batch)
    const explanation = this.#overStore(withRolloutNote(ofJob, snapshot, startFailure))
    const diagnostics = (await this.#ports.store.jobs.diagnostics(jobId)).map(({ workerId, text }) =>
      plainNote(`worker ${workerId}: ${text}`),
    )
    const programs = await this.#programNotes(snapshot, viewer)
    const notes = [...explanation.notes, ...programs, ...diagnostics, ...this.#clockNotes()]
    return { job, explanation: { ...explanation, notes } }
  }

  /**
   * The endpoints of an owner, each with its explanation, at most {@link MAX_EXPLAINED} on a page. Endpoints that are
   * deleted in the meantime are left out.
   * @throws AppError `invalid` for a cursor that no page had, or a limit out of bounds
   */
  async page(owner: OwnerId, request: PageRequest, viewer: Viewer = ANYBODY): Promise<Page<EndpointExplanation>> {
    const { store } = this.#ports
    const page = await onePage(request, slice => store.endpoints.list(owner, slice, 'all'), MAX_EXPLAINED)
    const snapshots = await mapConcurrently(page.items, CONCURRENCY, ({ id }) => this.#parts.balancing.snapshot(id))
    const existing = snapshots.filter(snapshot => snapshot !== null)
    const items = await mapConcurrently(existing, CONCURRENCY, async snapshot => ({
      endpoint: snapshot.endpoint,
      snapshot,
      explanation: await this.of(snapshot, viewer),
    }))
    return { items, nextCursor: page.nextCursor }
  }

  /** A task that a function started says whose. */
  async #starterNotes({ starters }: Endpoint): Promise<Note[]> {
    const id = starters.at(-1)
    const starter = id === undefined ? null : await this.#ports.store.endpoints.find(id)
    if (starter === null) return []
    return [
      plainNote(`started by a function of ${starter.runsOnce ? 'task' : 'endpoint'} ${starter.name} (${starter.id})`),
    ]
  }

  /** Programs of the machine are named to its operator. */
  async #programNotes(snapshot: EndpointSnapshot, { operator }: Viewer): Promise<Note[]> {
    return operator ? this.#cardNotes.ofPrograms(snapshot) : []
  }

  #clockNotes(): Note[] {
    const text = this.#parts.timeKeeper?.note() ?? null
    return text === null ? [] : [plainNote(text)]
  }

  #overStore(explanation: Explanation): Explanation {
    const { storeDamage, storeRoom } = this.#ports
    return withFullStore(withDamage(explanation, storeDamage?.met() ?? null), storeRoom?.full() ?? null)
  }

  async #readSnapshot(id: EndpointId): Promise<EndpointSnapshot> {
    const snapshot = await this.#parts.balancing.snapshot(id)
    if (snapshot === null) throw notFound('endpoint', id)
    return snapshot
  }

  /** @returns `context` of the release whose workers are started, `newest` and `startFailure` of the newest one */
  async #readContext(snapshot: EndpointSnapshot): Promise<{
    release: PlannedRelease
    context: ExplainContext
    newest: ActionFacts
    startFailure: StartFailure | null
  }> {
    const { driver, clock, machine } = this.#ports
    const startFailure = await this.#parts.fleet.startFailure(snapshot.endpoint)
    const planned = plannedRelease(snapshot, startFailure)
    const release = { ...planned, snapshot: explainedSnapshot(planned) }
    const { endpoint } = release.snapshot
    const isPresent = release.template === null
    const ofRelease = isPresent ? startFailure : await this.#parts.fleet.startFailure(endpoint, release.template)
    const rules = { ...PLACEMENT_RULES, ...this.#placing }
    const isElsewhere = (await this.#parts.fleet.placedBy(endpoint, release.template)) === 'platform'
    const parts = endpoint.compute.kind === 'gpu' && !isElsewhere ? await machine.parts() : null
    const noGpus = parts !== null && withoutGpus({ parts, rules })
    const download = this.#parts.models.progress(endpoint.id)
    const pullPercent = (worker: WorkerId) => this.#parts.running.find(worker)?.pullPercent ?? null
    const nowMs = clock.now()
    const attempts = await this.#attempts(endpoint, nowMs)
    const portConflicts = await this.#portConflicts(release.snapshot)
    const newest = { parts, ...(await this.#history(snapshot, startFailure)) }
    const facts = isPresent ? newest : { ...newest, template: release.template ?? undefined }
    const urgentNames = await readUrgentNames(this.#ports.store, endpoint.owner, snapshot.workers)
    const now = { nowMs, pullPercent, download, noGpus, isElsewhere }
    const currentFacts = { ...now, attempts, portConflicts, urgentNames }
    const context = { capacity: await driver.capacity(), startFailure: ofRelease, ...facts, ...currentFacts }
    return { release, context, newest, startFailure }
  }

  /** The releases and the template of an endpoint, read if something is wrong with its workers. */
  async #history(snapshot: EndpointSnapshot, startFailure: StartFailure | null): Promise<ActionFacts> {
    if (startFailure === null && !isInTrouble(snapshot)) return {}
    const { store } = this.#ports
    const { id, owner, templateId } = snapshot.endpoint
    const [releases, template] = await Promise.all([store.releases.list(id), store.templates.find(owner, templateId)])
    return { releases, template: template ?? undefined }
  }

  async #portConflicts({ workers }: EndpointSnapshot): Promise<ReadonlyMap<WorkerId, PortConflict>> {
    const running = workers.filter(({ state }) => state === 'STARTING' || state === 'READY').slice(0, MAX_OBSERVED)
    const conflicts = await mapConcurrently(running, CONCURRENCY, async ({ id }) => {
      const observed = await this.#ports.driver.observe(id)
      return observed.state === 'running' && observed.suspicion !== undefined ? [[id, observed.suspicion] as const] : []
    })
    return new Map(conflicts.flat())
  }

  /** The newest stored attempts: those of two rows, since the newest row may have only a few. */
  async #attempts({ id, type }: Endpoint, nowMs: number): Promise<readonly AttemptTimes[]> {
    if (type !== 'QUEUE') return []
    const blocks = await this.#ports.store.attemptTimes.read(
      id,
      nowMs - ATTEMPT_TIMES_KEPT_MS,
      Number.MAX_SAFE_INTEGER,
      2,
    )
    return blocks.flatMap(timesFromBlock)
  }
}
