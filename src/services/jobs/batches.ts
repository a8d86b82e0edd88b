import { NO_JOB_USAGE } from '../../core/billing/usage.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, notFound } from '../../core/errors.ts'
import { type BatchId, type EndpointId, JOB_ID_END, type JobId, timeOrderedUuid } from '../../core/ids.ts'
import { BATCH, type Batch, type BatchRequest } from '../../core/jobs/batch.ts'
import type { NewBatch } from '../../core/jobs/batch-reading.ts'
import type { Submission } from '../../core/jobs/submission.ts'
import { jobPlace } from '../../core/secrets/seals.ts'
import type { Ports } from '../../ports/ports.ts'
import type { BatchAnswer, BatchDraftRequest, BatchPage, OnceKey } from '../../ports/store/batch-store.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { IDEMPOTENCY_MS, type Jobs } from './jobs.ts'

/** Number of requests that become jobs, or of waiting jobs that are cancelled, in one transaction. */
const PART = 250
/** Maximum number of rows of expired batches that one call of {@link Batches.sweep} removes. */
const SWEEP = 500
/** Maximum number of batches that one call of {@link Batches.sweep} goes on with. */
const SETTLE = 20
/** Maximum bytes of results in one page. */
const PAGE_BYTES = 20_971_520

/** Start and maximum length of a page of a list. */
export interface PageBounds {
  readonly offset: number
  readonly limit: number
}

/**
 * Batches: requests that are collected in a draft and then become jobs of the same queue, which take turns with
 * others.
 */
export class Batches {
  readonly #ports
  readonly #jobs
  readonly #quotas

  constructor(ports: Ports, jobs: Jobs, quotas: Quotas) {
    this.#ports = ports
    this.#jobs = jobs
    this.#quotas = quotas
  }

  /**
   * A new draft. It is on stable storage when this returns.
   * @param key the client's Idempotency-Key: the same key within a day stands for the first batch
   * @throws AppError `not_found` when the endpoint is gone, `rate_limited` past the limits of the endpoint or the
   * account, `conflict` when the batch of the key is gone, `unavailable` when the store failed
   */
  async create(endpoint: Endpoint, { name, webhook, requests }: NewBatch, key: string | undefined): Promise<Batch> {
    const { store, clock, random } = this.#ports
    const nowMs = clock.now()
    const { id: endpointId, owner } = endpoint
    const once = batchOnceKey('', key, nowMs)
    await this.#admit(endpoint, requests, once)
    const draft = { id: `batch-${random.uuid()}` as BatchId, owner, endpointId, name, webhook }
    const drafts = requests.map(request => this.#draftRequest(endpoint, request))
    const answer = await store.batches.create(draft, drafts, nowMs, once)
    return batchFromAnswer(answer, notFound('endpoint', endpointId))
  }

  /**
   * Adds requests to a draft, all or none; they are on stable storage when this returns.
   * @throws AppError `not_found`, `conflict` when it is no longer a draft, or is full, `rate_limited` past a limit of
   *   the endpoint or the account
   */
  async add(
    endpoint: Endpoint,
    batchId: BatchId,
    requests: readonly Submission[],
    key: string | undefined,
  ): Promise<Batch> {
    const nowMs = this.#ports.clock.now()
    const once = batchOnceKey(batchId, key, nowMs)
    await this.#admit(endpoint, requests, once)
    const drafts = requests.map(request => this.#draftRequest(endpoint, request))
    const answer = await this.#ports.store.batches.add(endpoint.id, batchId, drafts, nowMs, once)
    return batchFromAnswer(answer, notFound('batch', batchId))
  }

  /**
   * @throws AppError `rate_limited` past a limit of the account, unless the call was made before: the requests that
   * it added may be those that fill the limit
   */
  async #admit({ id, owner }: Endpoint, requests: readonly Submission[], once: OnceKey | null): Promise<void> {
    try {
      await this.#quotas.admit(owner, requests)
    } catch (thrown) {
      const { store, clock } = this.#ports
      if (once === null || !(await store.batches.hasKey(id, once.key, clock.now()))) throw thrown
    }
  }

  /**
   * Removes a request from a draft.
   * @throws AppError `not_found`, or `conflict` when the batch is no longer a draft
   */
  async drop(endpointId: EndpointId, batchId: BatchId, requestId: JobId): Promise<Batch> {
    const { store, clock } = this.#ports
    const answer = await store.batches.drop(endpointId, batchId, requestId, clock.now())
    if (answer === 'absent') throw notFound('request', requestId)
    return batchFromAnswer(answer, notFound('batch', batchId))
  }

  /** @param name null removes the name @throws AppError `not_found` */
  async rename(endpointId: EndpointId, batchId: BatchId, name: string | null): Promise<Batch> {
    const batch = await this.#ports.store.batches.rename(endpointId, batchId, name, this.#ports.clock.now())
    if (batch === null) throw notFound('batch', batchId)
    return batch
  }

  /**
   * Makes the requests of a draft into jobs. The first transaction makes the batch FINALIZED, wholly or not at all;
   * its jobs are queued in parts. If a part fails, {@link sweep} goes on with it, so that is no failure of this call.
   * @throws AppError `not_found`, or `conflict` when it is no longer a draft or has no requests
   */
  async finalize(endpointId: EndpointId, batchId: BatchId): Promise<Batch> {
    const { store, clock } = this.#ports
    const batch = batchFromAnswer(
      await store.batches.finalize(endpointId, batchId, clock.now()),
      notFound('batch', batchId),
    )
    return this.#settled(batch)
  }

  /**
   * Cancels the waiting jobs of a batch; running ones go on. Cancelling twice is no error.
   * @throws AppError `not_found`, or `conflict` when all its requests have ended
   */
  async cancel(endpointId: EndpointId, batchId: BatchId): Promise<Batch> {
    const { store, clock, notifier } = this.#ports
    const batch = batchFromAnswer(
      await store.batches.cancel(endpointId, batchId, clock.now()),
      notFound('batch', batchId),
    )
    if (batch.webhook !== null && batch.finishedAtMs !== null) notifier.publish('webhooks')
    return this.#settled(batch)
  }

  /** @throws AppError `not_found` */
  async find(endpointId: EndpointId, batchId: BatchId): Promise<Batch> {
    const batch = await this.#ports.store.batches.find(endpointId, batchId, this.#ports.clock.now())
    if (batch === null) throw notFound('batch', batchId)
    return batch
  }

  /** Batches of an endpoint, newest first. */
  list(endpointId: EndpointId, { offset, limit }: PageBounds): Promise<BatchPage<Batch>> {
    return this.#ports.store.batches.list(endpointId, this.#ports.clock.now(), offset, limit)
  }

  /**
   * Requests with their results, in the order in which they were added; fewer than asked for where results are large.
   * @throws AppError `not_found`
   */
  async requests(
    endpointId: EndpointId,
    batchId: BatchId,
    { offset, limit }: PageBounds,
  ): Promise<BatchPage<BatchRequest>> {
    await this.find(endpointId, batchId)
    return this.#ports.store.batches.requests(batchId, offset, limit, PAGE_BYTES)
  }

  /**
   * Goes on with batches that were finalized or cancelled in part, and removes expired ones. True when there may be
   * more.
   */
  async sweep(): Promise<boolean> {
    const { store, clock } = this.#ports
    const unsettled = await store.batches.unsettled(SETTLE)
    let moved = 0
    for (const batch of unsettled) moved += await this.#settlePart(batch)
    const { jobs, more } = await store.batches.removeExpired(clock.now(), SWEEP)
    // Their usage was counted when they ended.
    this.#jobs.removed(jobs.map(job => ({ job: { ...job, webhook: null }, usage: NO_JOB_USAGE })))
    return moved > 0 || more
  }

  async #settled(batch: Batch): Promise<Batch> {
    const { store, clock } = this.#ports
    try {
      for (let moved = 1; moved > 0; ) moved = await this.#settlePart(batch)
      return (await store.batches.find(batch.endpointId, batch.id, clock.now())) ?? batch
    } catch {
      return batch
    }
  }

  /** Number of requests that became jobs, or of jobs that were cancelled; 0 when no work is left. */
  async #settlePart({ id, endpointId }: Pick<Batch, 'id' | 'endpointId'>): Promise<number> {
    const { store, clock, notifier } = this.#ports
    const released = await store.batches.release(id, PART).catch(error => {
      // They may be stored all the same.
      notifier.publish(`queue:${endpointId}`)
      notifier.publish(`load:${endpointId}`)
      throw error
    })
    this.#jobs.accepted(released)
    if (released.length > 0) return released.length
    const dropped = await store.batches.cancelWaiting(id, clock.now(), PART)
    this.#jobs.moved('purge', dropped)
    return dropped.length
  }

  #draftRequest(endpoint: Endpoint, submission: Submission): BatchDraftRequest {
    const { clock, random, vault } = this.#ports
    const { input, policy, webhook, s3Config, lowPriority } = submission
    const id = `${timeOrderedUuid(random.uuid(), clock.now())}${JOB_ID_END}` as JobId
    return {
      id,
      input,
      policy,
      webhook,
      lowPriority,
      s3Config: s3Config === null ? null : vault.seal(s3Config, jobPlace(id)),
      executionTimeoutMs: submission.executionTimeoutMs ?? endpoint.executionTimeoutMs,
      ttlMs: submission.ttlMs ?? BATCH.requestTtlMs,
    }
  }
}

/** Tabs keep these apart from the keys of run and runsync, which have none. */
function batchOnceKey(batch: string, key: string | undefined, nowMs: number): OnceKey | null {
  return key === undefined ? null : { key: `batch\t${batch}\t${key}`, expiresAtMs: nowMs + IDEMPOTENCY_MS }
}

function batchFromAnswer(answer: BatchAnswer, goneError: AppError): Batch {
  if (answer === null) throw goneError
  if ('refused' in answer) throw new AppError(answer.refused.code, answer.refused.message)
  return answer.batch
}
