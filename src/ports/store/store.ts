import type { EndpointDomain } from '../../core/endpoints/domain.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { StartedTasks } from '../../core/endpoints/nested-task.ts'
import type { EndpointWithTemplate } from '../../core/endpoints/saved-env.ts'
import type { Template } from '../../core/endpoints/template.ts'
import type { DeliveryId, EndpointId, JobId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { Job } from '../../core/jobs/job.ts'
import type { JobNote } from '../../core/jobs/job-record.ts'
import type { DeliveryState, SentAgain, WebhookDelivery, WebhookTry } from '../../core/jobs/webhook.ts'
import type { PagePosition, Slice } from '../../core/pages.ts'
import type { EndpointLoad, EndpointSnapshot } from '../../core/scaling/scale.ts'
import type { PlatformReport } from '../../core/workers/platform-report.ts'
import type { StopReason, Worker, WorkerLoad, WorkerState } from '../../core/workers/worker.ts'
import type { WorkerExit } from '../../core/workers/worker-exit.ts'
import type { WorkerProblem } from '../../core/workers/worker-problem.ts'
import type { WorkerSuspension } from '../../core/workers/worker-suspension.ts'
import type { AlertStore } from './alert-store.ts'
import type { AppBuildStore, AppStore } from './app-store.ts'
import type { AttemptTimesStore } from './attempt-times-store.ts'
import type { AuditStore } from './audit-store.ts'
import type { BatchStore } from './batch-store.ts'
import type { Claim, ClaimRequest } from './claims.ts'
import type { ClockStore } from './clock-store.ts'
import type { BegunJob, JobOutcomeStore } from './job-outcome-store.ts'
import type { JobRecordStore } from './job-record-store.ts'
import type { KeyStore } from './key-store.ts'
import type { LargeTextStore } from './large-text-store.ts'
import type {
  AccountStore,
  ModelAliasStore,
  RegistryStore,
  ReleaseOptions,
  ReleaseStore,
  SealStore,
  SecretStore,
  ServedModelStore,
  TemplateStore,
  VolumeStore,
} from './management-store.ts'
import type { MetricStore } from './metric-store.ts'
import type { QueuedWorkerStore } from './queued-worker-store.ts'
import type { QuotaStore } from './quota-store.ts'
import type { RemovalStore } from './removal-store.ts'
import type { SessionStore } from './session-store.ts'
import type { ServedTime, UsageStore } from './usage-store.ts'

export type {
  BegunJob,
  Expired,
  Finish,
  FinishRequest,
  JobMove,
  JobOutcomeStore,
  PurgedPart,
  QueuePart,
  RemovedJobs,
} from './job-outcome-store.ts'

/**
 * Durable state. Every method is one transaction; a method that changes something resolves only after it is on stable
 * storage. When the store cannot do it, the method throws AppError `unavailable`, and the change has happened wholly
 * or not at all. A change that is no longer allowed returns null, false or an empty list, and never throws.
 */
export interface Store {
  /**
   * True where changes are made in the order of their calls, and those that come together in one transaction: a claim
   * sees the jobs whose insert was called before it.
   */
  readonly keepsOrder: boolean
  readonly jobs: JobStore
  readonly jobOutcomes: JobOutcomeStore
  readonly jobRecords: JobRecordStore
  readonly batches: BatchStore
  readonly streams: StreamStore
  readonly largeTexts: LargeTextStore
  readonly stops: StopStore
  readonly webhooks: WebhookStore
  readonly endpoints: EndpointStore
  readonly modelAliases: ModelAliasStore
  readonly servedModels: ServedModelStore
  readonly templates: TemplateStore
  readonly registries: RegistryStore
  readonly volumes: VolumeStore
  readonly alerts: AlertStore
  readonly apps: AppStore
  readonly appBuilds: AppBuildStore
  readonly releases: ReleaseStore
  readonly secrets: SecretStore
  readonly workers: WorkerStore
  readonly queuedWorkers: QueuedWorkerStore
  readonly keys: KeyStore
  readonly sessions: SessionStore
  readonly accounts: AccountStore
  readonly seals: SealStore
  readonly usage: UsageStore
  readonly metrics: MetricStore
  readonly attemptTimes: AttemptTimesStore
  readonly upkeep: UpkeepStore
  readonly removals: RemovalStore
  readonly quotas: QuotaStore
  readonly audit: AuditStore
  readonly clock: ClockStore
  /** Closes the store after open calls have finished. */
  close(): Promise<void>
}

/** A job that a worker holds. */
export interface RunningJob {
  readonly id: JobId
  readonly workerId: WorkerId
  /** Null when its worker has not begun it. */
  readonly startedAtMs: number | null
}

/** Jobs in the queue. */
export interface JobStore {
  /**
   * Adds a new job in IN_QUEUE. False when its endpoint does not exist.
   * @param mayBeUndone true where nobody outside gets to see the job before it is final, or {@link keep} was called: a
   * failure of the machine may undo the insert until then, the end of the server does not. False unless given
   */
  insert(job: Job, mayBeUndone?: boolean): Promise<boolean>
  /** Puts a job on stable storage whose insert may be undone. */
  keep(jobId: JobId): Promise<void>
  /**
   * Adds a new job for an idempotency key of its endpoint. Returns its id, or the id of the first job of this key
   * while the key has not expired; null when the endpoint does not exist.
   */
  insertOnce(job: Job, key: string, keyExpiresAtMs: number): Promise<JobId | null>
  /** The job, unless it does not exist or is past its expiry at `nowMs`. */
  find(endpointId: EndpointId, jobId: JobId, nowMs: number): Promise<Job | null>
  /** The job at any endpoint of the owner. */
  locate(owner: OwnerId, jobId: JobId, nowMs: number): Promise<Job | null>
  /**
   * Gives the first jobs of the queue to a worker, in the fair turns of batches, and makes it READY. A worker that is
   * draining, stopping, ended, or of an older version than its endpoint gets none. Chunks of an earlier attempt are
   * removed. A suspect (see core/jobs/job.ts) goes only to a worker that holds nothing, before other jobs, and alone
   * until it is done.
   */
  claim(request: ClaimRequest): Promise<Claim>
  /**
   * Begins the next job of a worker, in the order of the queue. Null when the worker runs one, has yet to go through
   * one that was canceled, or holds no job that is not begun.
   * @param shown the job of which a call shows that the worker runs or ran it: those before it are over
   */
  begin(workerId: WorkerId, shown: JobId, nowMs: number): Promise<BegunJob | null>
  /** The jobs that a worker holds, those claimed first at the front. */
  heldBy(workerId: WorkerId): Promise<JobId[]>
  /** The jobs that an endpoint's workers hold, at most `limit` of them. */
  running(endpointId: EndpointId, limit: number): Promise<RunningJob[]>
  /** Sets when the job expires. Null when it does not exist. */
  setExpiry(endpointId: EndpointId, jobId: JobId, expiresAtMs: number, nowMs: number): Promise<Job | null>
  /** Keeps a progress update of the running attempt. False when the worker does not hold the job. */
  setProgress(jobId: JobId, workerId: WorkerId, output: string): Promise<boolean>
  /** Keeps why something about the job was ignored; at most 20 for a job. */
  addDiagnostic(jobId: JobId, atMs: number, workerId: WorkerId, text: string): Promise<void>
  /** The notes on a job, oldest first, at most 20. */
  diagnostics(jobId: JobId): Promise<JobNote[]>
}

/**
 * Chunks of one run of a job, in order. A run is known by its attempt and its worker: one that does not count has the
 * number of the next.
 */
export interface StreamPart {
  readonly attempt: number
  readonly workerId: WorkerId | null
  /** Number of the last chunk that a client has read, 0 before the first. */
  readonly streamedSeq: number
  readonly chunks: readonly { readonly seq: number; readonly chunk: string }[]
}

/** Chunks of running jobs. They are numbered from 1 within an attempt; the next attempt removes them. */
export interface StreamStore {
  /**
   * Appends chunks of the running attempt, unless all chunks together would pass `maxBytes`. False when they were not
   * kept.
   * @param copies number of times in a row that they are at the end if an earlier call, whose outcome was unknown,
   *   appended them; 0 without such a call
   */
  append(
    jobId: JobId,
    workerId: WorkerId,
    chunks: readonly string[],
    maxBytes: number,
    copies: number,
  ): Promise<boolean>
  /** Chunks after `afterSeq`: as many as have `maxBytes` together, at least one when there is one. */
  read(jobId: JobId, afterSeq: number, maxBytes: number): Promise<StreamPart | null>
  /** Notes that a client has got all chunks of a run up to `seq`. */
  streamed(jobId: JobId, run: Pick<StreamPart, 'attempt' | 'workerId'>, seq: number): Promise<void>
}

/** A job that ended without its worker, which may still work on it. */
export interface PendingStop {
  readonly workerId: WorkerId
  readonly jobId: JobId
  readonly sinceMs: number
}

/**
 * Jobs that workers have yet to let go of. Rows appear in the same transaction that cancels, times out or expires a
 * running job (or removes its endpoint), and count as held in a worker's load until the worker lets go.
 */
export interface StopStore {
  /** The jobs that the worker should stop. */
  pending(workerId: WorkerId): Promise<JobId[]>
  /** The worker works on this job, or on any job, no longer. */
  letGo(workerId: WorkerId, jobId: JobId | 'all'): Promise<void>
  /** All pending stops, oldest first, at most 1,000. */
  list(): Promise<PendingStop[]>
}

/** A delivery whose next try is due. */
export interface DueWebhook {
  readonly id: DeliveryId
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  /**
   * The number of its receiver, as core/jobs/webhook.ts makes it; `UNKNOWN_RECEIVER` while its URL is sealed and
   * was not opened.
   */
  readonly receiver: number
  readonly dueAtMs: number
}

/** All that a try needs. */
export interface OpenWebhook extends DueWebhook {
  readonly jobId: JobId
  readonly url: string
  /** The status payload of the job as it was at its end. */
  readonly payload: string
  /**
   * The input of the job where it is still kept and no larger than `WEBHOOK.inputBytes`; else null, as for a batch.
   */
  readonly input: string | null
  /** The context of the trace of the job; null where it has none. */
  readonly traceparent: string | null
  /** Number of tries so far. */
  readonly tries: number
}

/** Request for the due deliveries of an account, those due longest first. */
export interface DueWebhooksRequest {
  readonly owner: OwnerId
  /** Only those to this receiver. */
  readonly receiver?: number
  readonly nowMs: number
  readonly limit: number
}

/** Some of the accounts that have deliveries. */
export interface WaitingAccounts {
  /** Those with a delivery that is due. */
  readonly accounts: readonly OwnerId[]
  /** The account behind which the next read begins; null at the end. */
  readonly readUntil: OwnerId | null
}

/** Request for the receivers of an account. */
export interface ReceiversRequest {
  readonly owner: OwnerId
  readonly nowMs: number
  /** The receiver behind which to begin. */
  readonly after: number
  /** Limit of receivers that are read. */
  readonly maxRead: number
}

/** Some of the receivers of an account. */
export interface WaitingReceivers {
  /** Those with a delivery that is due. */
  readonly receivers: readonly number[]
  /** The receiver behind which the next read begins; null at the end. */
  readonly readUntil: number | null
}

/** The URL of a delivery, as the store has it. */
export type DeliveryUrl = Pick<OpenWebhook, 'id' | 'jobId' | 'url'>

/** The receiver that a delivery has got. */
export type DeliveryReceiver = Pick<DueWebhook, 'id' | 'receiver'>

/** A delivery that ended before its last try. */
export type GivenUpWebhook = Pick<OpenWebhook, 'endpointId' | 'jobId' | 'tries'>

/** Request for a list of deliveries. */
export interface DeliveryListRequest {
  /** Those of an endpoint, or of all endpoints of an account. */
  readonly of: { readonly endpointId: EndpointId } | { readonly owner: OwnerId }
  /** Null for all. */
  readonly state: DeliveryState | null
  readonly slice: Slice
  /** Limit of deliveries that are read. */
  readonly maxRead: number
}

/** A part of a list of deliveries. */
export interface DeliveryListPart {
  readonly deliveries: WebhookDelivery[]
  /** The last place that was read; null when everything was. */
  readonly readUntil: PagePosition | null
}

/** Key that signs an endpoint's deliveries; sealed by the vault. */
export interface WebhookKey {
  readonly sealed: string
  readonly createdAtMs: number
}

/**
 * Deliveries of webhooks and the keys that sign them. The same transaction that makes a job final adds a delivery
 * where the job names a receiver, with the status payload of that moment. Deliveries and keys outlive the job and its
 * endpoint.
 */
export interface WebhookStore {
  /**
   * Accounts that have a delivery which is due, among at most `limit` accounts with deliveries whose ids come behind
   * `after`.
   */
  accountsDue(nowMs: number, after: string, limit: number): Promise<WaitingAccounts>
  /** Receivers of an account that have a delivery which is due. */
  receiversDue(request: ReceiversRequest): Promise<WaitingReceivers>
  /** Deliveries that are due. */
  due(request: DueWebhooksRequest): Promise<DueWebhook[]>
  /** URLs of due deliveries without a receiver, at most `limit`. */
  unnamed(owner: OwnerId, nowMs: number, limit: number): Promise<DeliveryUrl[]>
  /** Says to which receivers deliveries go. */
  setReceivers(receivers: readonly DeliveryReceiver[]): Promise<void>
  /** The time at which the next delivery is due, of those that are not due at `nowMs`; null without one. */
  nextDue(nowMs: number): Promise<number | null>
  /** Null when it is over or gone. */
  open(id: DeliveryId): Promise<OpenWebhook | null>
  /**
   * Records an attempt and the next state of the delivery, as core/webhook decides. True, too, if this very attempt
   * was kept before; false when another one was, or when the delivery is over or gone.
   */
  recordTry(id: DeliveryId, entry: WebhookTry): Promise<boolean>
  /** The deliveries of a job that are kept, oldest first. */
  list(endpointId: EndpointId, jobId: JobId): Promise<WebhookDelivery[]>
  /** The deliveries of an endpoint or an account, newest first. */
  page(request: DeliveryListRequest): Promise<DeliveryListPart>
  /**
   * Makes the newest delivery of a job due now: one that waits, or one whose last try failed and whose message is
   * kept. It gets one more try then. Null when there is no delivery.
   */
  sendAgain(endpointId: EndpointId, jobId: JobId, nowMs: number): Promise<SentAgain | null>
  /** FAILED for deliveries whose try was due by `beforeMs` and was not made, at most `limit`. */
  giveUp(beforeMs: number, nowMs: number, limit: number): Promise<GivenUpWebhook[]>
  /**
   * Removes deliveries that were over by `beforeMs`, at most `limit`, and keys that neither an endpoint nor a
   * delivery needs.
   * @returns number of removed deliveries
   */
  removeOver(beforeMs: number, limit: number): Promise<number>
  key(endpointId: EndpointId): Promise<WebhookKey | null>
  /** Adds a key unless there is one; returns the one that there is now. */
  ensureKey(endpointId: EndpointId, owner: OwnerId, key: WebhookKey): Promise<WebhookKey>
  /** Puts a key in place of the one that there was, if any. */
  replaceKey(endpointId: EndpointId, owner: OwnerId, key: WebhookKey): Promise<void>
}

/** Result of the deletion of an endpoint. */
export interface DeletedEndpoint {
  /** Those that have not ended. */
  readonly workers: readonly Worker[]
}

/** An endpoint in a list of many, with its facts. */
export interface ListedEndpoint {
  /** Of `exits` it has only the worker that ended last. */
  readonly snapshot: EndpointSnapshot
  /** The image that its workers run; null when its template is gone. */
  readonly image: string | null
}

/** Limit of endpoints of one name that a read by name returns. */
export const MAX_OF_NAME = 10

/** Rows of a list of endpoints: endpoints of clients, tasks, or both. */
export type ListedKind = 'endpoints' | 'tasks' | 'all'

/** Endpoints and their facts. */
export interface EndpointStore {
  /**
   * Adds an endpoint.
   * @param own a new template that is this endpoint's alone
   * @throws AppError `conflict` when its id or its domain is not free
   */
  insert(endpoint: Endpoint, own?: Template): Promise<void>
  /**
   * Replaces an endpoint that is still `before`; false if another call was faster. An unlisted template that
   * no endpoint has is removed. A new version gets its release.
   * @param own the endpoint's template: a new one, or the changed one that it has
   * @param release rarer properties of the release of a new version
   * @throws AppError `conflict` when its new domain is not free
   */
  replace(
    endpoint: Endpoint,
    previous: Endpoint,
    nowMs: number,
    own?: Template,
    release?: ReleaseOptions,
  ): Promise<boolean>
  find(id: EndpointId): Promise<Endpoint | null>
  /** Those of an owner, oldest first; the first 10,000 unless a slice is given; without a kind no tasks. */
  list(owner: OwnerId, slice?: Slice, kind?: ListedKind): Promise<Endpoint[]>
  /** As {@link list} without tasks, the names alone: for the cost of a small part of a row. */
  names(owner: OwnerId, slice?: Slice): Promise<EndpointName[]>
  /** Those of an owner that have this name, oldest first, at most {@link MAX_OF_NAME}; no tasks. */
  named(owner: OwnerId, name: string): Promise<Endpoint[]>
  /** Those of an owner whose names begin so, by name, with their templates, at most `limit`; no tasks. */
  beginning(owner: OwnerId, name: string, limit: number): Promise<EndpointWithTemplate[]>
  /** As {@link list}, with the facts of each: one consistent picture, for the cost of few statements. */
  listed(owner: OwnerId, slice: Slice, kind?: ListedKind): Promise<ListedEndpoint[]>
  /** Tasks of all owners whose worker ended before an instant, at most `limit`. */
  endedTasks(beforeMs: number, limit: number): Promise<EndpointId[]>
  /** Tasks whose first starter is this endpoint or task. */
  startedTasks(root: EndpointId): Promise<StartedTasks>
  /** Tasks of all owners that a worker started whose endpoint or task was removed, at most `limit`. */
  orphanedTasks(limit: number): Promise<EndpointId[]>
  /**
   * Number of its jobs that wait for a worker, number of workers that may take them, and the state of one that asks.
   * @param coming number of further jobs that are being inserted and count as jobs that wait
   */
  demand(id: EndpointId, workerId: WorkerId, coming?: number): Promise<QueueDemand>
  /** One consistent picture; null when the endpoint is gone. */
  snapshot(id: EndpointId): Promise<EndpointSnapshot | null>
  /** The numbers of endpoints of all owners, in the order of their ids, at most `limit`, after the given one. */
  loads(after: EndpointId | null, limit: number): Promise<EndpointLoad[]>
  /** The ids of all endpoints of all owners. */
  ids(): Promise<EndpointId[]>
  /**
   * The ids of those that keep workers, or have jobs that wait or run, or workers that have not ended or wait for a
   * place; some others may be among them.
   */
  active(): Promise<EndpointId[]>
  /** The endpoint that has a domain; null without one. */
  ofDomain(domain: string): Promise<EndpointDomain | null>
  /** The domains of the endpoints of all accounts. */
  domains(): Promise<EndpointDomain[]>
  /** True where an endpoint can have this id: no other has it, and nothing is left of a deleted one that had it. */
  isFree(id: EndpointId): Promise<boolean>
  /**
   * Removes it with a template of its own, and returns its workers, which must stop. Null if it was deleted. However
   * many jobs it has, this is quick: from now on none of them is found, handed out or changed, and {@link
   * RemovalStore} cancels and removes them.
   */
  remove(id: EndpointId, nowMs: number): Promise<DeletedEndpoint | null>
}

/** A change of a worker's state. */
export interface WorkerMove {
  readonly worker: Worker
  readonly from: WorkerState
}

/** A worker whose pause is over. */
export interface EndedPause {
  readonly worker: Worker
  readonly pausedMs: number
  /** Its jobs that go on. */
  readonly jobs: readonly JobId[]
}

/** Token that identifies the calls of a worker. */
export interface WorkerToken {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly tokenHash: string
  readonly ended: boolean
}

/** A worker that is not removed yet. */
export interface RecordedWorker {
  readonly id: WorkerId
  readonly owner: OwnerId
  /** Null while it has not ended. */
  readonly exitedAtMs: number | null
}

/** The name of an endpoint. */
export interface EndpointName {
  readonly id: EndpointId
  readonly name: string
}

/** Jobs of an endpoint that wait for a worker, and workers that may take them. */
export interface QueueDemand {
  readonly queued: number
  /** 0 where no job waits: then they need not be counted. */
  readonly takers: number
  /** The state of the worker that asks; null when it is gone. */
  readonly takerState: WorkerState | null
}

/** Workers and their states. */
export interface WorkerStore {
  /**
   * Adds a STARTING worker, unless its endpoint is gone or has `workersMax` that have not ended or wait for a place.
   * The one that waited under the same id waits no longer, and one of the endpoint that ended under it makes place
   * for the new one.
   */
  insert(worker: Worker, tokenHash: string): Promise<boolean>
  find(id: WorkerId): Promise<Worker | null>
  findByToken(tokenHash: string): Promise<Worker | null>
  /** Tokens of those that have not ended, by their ids, from behind `after` on, at most `limit`. */
  liveTokens(after: string, limit: number): Promise<WorkerToken[]>
  /** Tokens of those with these ids, ended ones too. */
  tokensOf(ids: readonly WorkerId[]): Promise<WorkerToken[]>
  /** All that have not ended. */
  alive(): Promise<Worker[]>
  /** As {@link alive}, each with the jobs that it holds or must stop. */
  loads(): Promise<WorkerLoad[]>
  /** All that are not removed yet, ended ones too, by their ids, from behind `after` on, at most `limit`. */
  known(after: string, limit: number): Promise<RecordedWorker[]>
  /** Those that ended at an instant or after it, in no order. */
  endedSince(sinceMs: number): Promise<RecordedWorker[]>
  /** Those of an endpoint, ended ones too, newest first, at most 1,000. */
  list(endpointId: EndpointId): Promise<Worker[]>
  /** Notes that its process runs, and how to find it again. */
  started(id: WorkerId, handle: string | null, nowMs: number): Promise<void>
  /**
   * Stores a report of the platform of a worker. Its time counts for the reported hardware from its first place on;
   * before that for no hardware. False if it ended.
   */
  reported(id: WorkerId, report: PlatformReport, nowMs: number): Promise<boolean>
  /** Records when the download of its image began or ended, once for each. */
  pulling(id: WorkerId, what: 'started' | 'ended', nowMs: number): Promise<void>
  /** Notes a request for jobs: makes a STARTING worker READY, and notes its concurrency and its SDK. */
  seen(id: WorkerId, capacity: number, sdk: string | null, nowMs: number): Promise<WorkerMove | null>
  /**
   * Adds the times of workers that serve requests since the last call, so that they are counted: of workers
   * that have not ended.
   */
  served(times: readonly ServedTime[], nowMs: number): Promise<void>
  /**
   * DRAINING or STOPPING, with the first reason kept; null if the worker is in this state or a later one. A paused
   * worker with jobs drains once its pause ends: null, with the reason kept.
   */
  retire(id: WorkerId, to: 'DRAINING' | 'STOPPING', reason: StopReason, nowMs: number): Promise<WorkerMove | null>
  /**
   * DRAINING for a READY or FROZEN worker that holds no job and has to stop none, with the reason `evicted`; else
   * null.
   */
  evict(id: WorkerId, nowMs: number): Promise<WorkerMove | null>
  /**
   * FROZEN for a READY worker that holds no job, has to stop none and has no problem; else null. From then on it can
   * claim nothing.
   */
  freeze(id: WorkerId, nowMs: number): Promise<WorkerMove | null>
  /**
   * READY for a FROZEN worker, idle since now; null for any other.
   * @param endpointVersion null also where its endpoint has another version or was removed: a plan for an older one
   * is no reason to thaw it. Null thaws it in any case
   * @param hasGpus true if its GPUs are its own again; otherwise null for a sleeping one, whose GPUs others
   * may have
   */
  thaw(id: WorkerId, nowMs: number, endpointVersion: number | null, hasGpus?: boolean): Promise<WorkerMove | null>
  /**
   * Notes that a FROZEN worker has given its GPUs back, until it is thawed.
   * @param frozenAtMs false, without effect, where it was thawed or ended since then
   */
  asleep(id: WorkerId, frozenAtMs: number, nowMs: number): Promise<boolean>
  /**
   * Notes that a suspension of a FROZEN worker begins, or has more processes than noted. From then on it is not thawed
   * before it is {@link suspended} or its {@link suspensionOver}.
   * @param frozenAtMs false, without effect, where it was thawed or ended since then
   */
  suspending(id: WorkerId, frozenAtMs: number, suspension: WorkerSuspension): Promise<boolean>
  /**
   * Notes that a FROZEN worker is suspended and sleeps, so that its card is free for everybody, until it is thawed.
   * From then on it claims nothing until its {@link suspensionOver}.
   * @param frozenAtMs false, without effect, where it was ended since then
   */
  suspended(id: WorkerId, frozenAtMs: number, nowMs: number): Promise<boolean>
  /** Notes that the processes of a worker run again. False, without effect, for one that is suspended, or was not. */
  suspensionOver(id: WorkerId, nowMs: number): Promise<boolean>
  /** FROZEN and asleep for a worker that was thawed and could not be resumed; null for any other. */
  sleepsOn(id: WorkerId, reason: string, nowMs: number): Promise<WorkerMove | null>
  /**
   * FROZEN and paused for a READY worker that has jobs, has to stop none, and has no problem; else null. The clocks of
   * its jobs stop.
   * @param by the endpoint of higher priority that gets its room
   */
  pause(id: WorkerId, by: EndpointId, nowMs: number): Promise<WorkerMove | null>
  /**
   * Ends the pause of a worker that runs again: the clocks of its jobs go on, each of which gets a note, and one that
   * was asked to drain in the meantime is DRAINING. Null for a worker that is not READY, or not paused.
   * @param pausableAtMs instant before which it is not paused again; null for none
   */
  endPause(id: WorkerId, nowMs: number, pausableAtMs: number | null): Promise<EndedPause | null>
  /** Workers that hold jobs of low priority and no others. */
  withLowPriorityOnly(): Promise<WorkerId[]>
  /** Stores the reason why a wanted worker still sleeps. Cleared at its thaw. */
  waitsToWake(id: WorkerId, reason: string): Promise<void>
  /**
   * Gives a worker with one GPU another share of its memory, in MiB. Its time counts as that of the share from now on.
   * @returns false, without effect, for a worker that ended or has another number of GPUs
   */
  setShare(id: WorkerId, shareMb: number, nowMs: number): Promise<boolean>
  /** Stores the problem of a worker. False if it had a problem before, or ended. */
  noteProblem(id: WorkerId, problem: WorkerProblem, nowMs: number): Promise<boolean>
  /**
   * EXITED. Null when it was already. Its jobs are requeued by {@link JobOutcomeStore.requeueLost}. One that was
   * asked to end as a failed start was never READY, unless it has finished jobs; nor was its release, where that was
   * known from it alone.
   * @param seen false when it ended unobserved: then its time since the last count is not counted
   */
  exited(id: WorkerId, exit: WorkerExit, nowMs: number, seen?: boolean): Promise<WorkerMove | null>
  /** The ids of those that ended last, the last one first. */
  lastExited(limit: number): Promise<WorkerId[]>
  /** Removes ended workers older than `beforeMs`, at most `limit`. */
  removeExited(beforeMs: number, limit: number): Promise<WorkerId[]>
}

/** Care of the database itself, in bounded work. */
export interface UpkeepStore {
  /** Removes counts of REST windows that began before `beforeMs`, at most `limit`. @returns their number */
  removeOldWindows(beforeMs: number, limit: number): Promise<number>
  /** Gives some of the free space back to the disk when there is much. True when there is more to give. */
  compact(): Promise<boolean>
}
