/** Base of the cases of the store contract: a store with one endpoint, and short ways to put rows into it. */
import assert from 'node:assert/strict'
import type { ApiKey } from '../../src/core/accounts/permission.ts'
import { type Endpoint, withDefaults } from '../../src/core/endpoints/endpoint.ts'
import { TEMPLATE_DEFAULTS, type Template } from '../../src/core/endpoints/template.ts'
import type { Volume } from '../../src/core/endpoints/volume.ts'
import type {
  EndpointId,
  JobId,
  KeyId,
  OwnerId,
  RegistryId,
  SecretId,
  TemplateId,
  VolumeId,
  WorkerId,
} from '../../src/core/ids.ts'
import type { ClaimedJob, Job, JobOutcome } from '../../src/core/jobs/job.ts'
import type { Registry } from '../../src/core/secrets/registry.ts'
import type { Secret } from '../../src/core/secrets/secret.ts'
import { newWorker } from '../../src/core/workers/new-worker.ts'
import type { Worker, WorkerLoad } from '../../src/core/workers/worker.ts'
import type { WorkerExit } from '../../src/core/workers/worker-exit.ts'
import type { JobMove, Store } from '../../src/ports/store/store.ts'

/** Cases by the sentence that each holds the store to. */
export type Cases = Readonly<Record<string, (world: World) => Promise<void>>>

/** Time at which every case begins. */
export const T0 = 1_700_000_000_000
/** Whose everything is. */
export const OWNER = 'owner-1' as OwnerId
/** Somebody else. */
export const STRANGER = 'owner-2' as OwnerId
/** The endpoint that every world has. */
export const E1 = 'e1' as EndpointId
/** A second name for an endpoint. */
export const E2 = 'e2' as EndpointId
/** The template of {@link E1}. */
export const TPL = 't1' as TemplateId
/** Names for workers. */
export const W1 = 'w1' as WorkerId
/** See {@link W1}. */
export const W2 = 'w2' as WorkerId

/** A job's id. */
export const jobId = (text: string) => text as JobId

/** A result that succeeded. */
export const DONE: JobOutcome = { status: 'COMPLETED', output: '{"answer":42}', error: null, warning: null }
/** A result that did not. */
export const BROKEN: JobOutcome = { status: 'FAILED', output: null, error: 'ValueError: no', warning: 'odd' }
/** Suspects in the load of a queue without suspects. */
export const NO_SUSPECTS = { suspectsQueued: 0, suspectsInProgress: 0 }
/** An end of a worker. */
export const EXIT: WorkerExit = { code: 1, signal: null, cause: { kind: 'ended' }, lastLines: ['one', 'two'] }

/** A template as a caller saves it. */
export function makeTemplate(id: string, changes: Partial<Template> = {}): Template {
  return {
    ...TEMPLATE_DEFAULTS,
    id: id as TemplateId,
    owner: OWNER,
    name: `template ${id}`,
    image: 'dir:worker',
    args: 'node index.js',
    diskGb: 5,
    volumeGb: 0,
    volumeMountPath: '/volume',
    env: { GREETING: 'héllo "you"' },
    ports: ['80/http'],
    portLabels: [{ port: '80', name: 'page' }],
    readme: '# Read me',
    isServerless: true,
    startJupyter: false,
    allowedCudaVersions: ['12.8'],
    listed: true,
    createdAtMs: T0,
    ...changes,
  }
}

/** An endpoint as a caller saves it. */
export function makeEndpoint(id: string, changes: Partial<Endpoint> = {}): Endpoint {
  return {
    id: id as EndpointId,
    owner: OWNER,
    templateId: TPL,
    version: 1,
    createdAtMs: T0,
    ...withDefaults({ name: `endpoint ${id}`, compute: { kind: 'cpu', configs: [{ flavor: 'cpu3c', vcpuCount: 2 }] } }),
    scaler: { type: 'QUEUE_DELAY', queueDelayS: 4.5 },
    locations: ['DE'],
    env: { A: '1' },
    modelReferences: ['a/b:c'],
    corsOrigins: ['https://app.example'],
    compliance: ['GDPR'],
    ...changes,
  }
}

/** A worker that was just decided on. */
export function makeWorker(id: string, changes: Partial<Worker> = {}): Worker {
  return {
    ...newWorker({
      id: id as WorkerId,
      driver: 'mock',
      baseUrl: 'http://10.0.0.1:8000',
      serves: null,
      endpoint: { id: E1, owner: OWNER, version: 1 },
      placement: null,
      queued: null,
      nowMs: T0,
    }),
    placedAtMs: null,
    ...changes,
  }
}

/** A job that was just submitted. */
export function makeJob(id: string, changes: Partial<Job> = {}): Job {
  return {
    id: jobId(id),
    owner: OWNER,
    endpointId: E1,
    kind: 'run',
    status: 'IN_QUEUE',
    input: '{"n": 12345678901234567890}',
    policy: null,
    webhook: null,
    s3Config: null,
    executionTimeoutMs: 10_000,
    lowPriority: false,
    position: T0,
    ttlMs: 86_400_000,
    retentionMs: 1_800_000,
    queuedAtMs: T0,
    startedAtMs: null,
    finishedAtMs: null,
    expiresAtMs: T0 + 86_400_000,
    attempt: 0,
    lostAttempts: 0,
    workerId: null,
    output: null,
    error: null,
    progress: null,
    warning: null,
    batchId: null,
    traceparent: null,
    ...changes,
  }
}

/** A registry. */
export function makeRegistry(id: string, changes: Partial<Registry> = {}): Registry {
  return { id: id as RegistryId, owner: OWNER, name: `registry ${id}`, username: 'me', createdAtMs: T0, ...changes }
}

/** A network volume. */
export function makeVolume(id: string, changes: Partial<Volume> = {}): Volume {
  const place = { sizeGb: 20, dataCenter: 'EU-RO-1', type: 'STANDARD', createdAtMs: T0 } as const
  return { id: id as VolumeId, owner: OWNER, name: `volume ${id}`, ...place, ...changes }
}

/** A secret. */
export function makeSecret(id: string, changes: Partial<Secret> = {}): Secret {
  const times = { createdAtMs: T0, valueUpdatedAtMs: null }
  return { id: id as SecretId, owner: OWNER, name: `secret-${id}`, description: null, ...times, ...changes }
}

/** An API key. */
export function makeKey(id: string, changes: Partial<ApiKey> = {}): ApiKey {
  const scope = { type: 'restricted', management: 'read', jobs: { [E1]: 'write' } } as const
  const flags = { exempt: false, disabled: false, expiresAtMs: null, createdAtMs: T0, lastUsedAtMs: null }
  const kind = { kind: 'user', hint: 'rpa_1234', endpointId: null } as const
  return { id: id as KeyId, owner: OWNER, name: `key ${id}`, hash: `hash-${id}`, scope, ...flags, ...kind, ...changes }
}

/** A store with the endpoint {@link E1}, which has room for ten workers. */
export class World {
  readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /** Puts the endpoint there. */
  async begin(): Promise<void> {
    assert.equal(await this.store.templates.insert(makeTemplate(TPL)), true)
    await this.store.endpoints.insert(makeEndpoint(E1, { workersMax: 10 }))
  }

  /** A worker that asked for jobs once, at {@link T0}. */
  async worker(id: string = W1, changes: Partial<Worker> = {}): Promise<WorkerId> {
    const worker = makeWorker(id, changes)
    assert.equal(await this.store.workers.insert(worker, `token-${id}`), true)
    await this.store.workers.seen(worker.id, 1, null, T0)
    return worker.id
  }

  /** Jobs in the line, one behind the other. */
  async jobs(...ids: string[]): Promise<void> {
    for (const [index, id] of ids.entries()) {
      assert.equal(await this.store.jobs.insert(makeJob(id, { position: T0 + index })), true)
    }
  }

  /** One job in the line. */
  async job(id: string, changes: Partial<Job> = {}): Promise<JobId> {
    assert.equal(await this.store.jobs.insert(makeJob(id, changes)), true)
    return jobId(id)
  }

  /** Jobs that a worker of {@link E1} claims. */
  async claim(workerId: WorkerId = W1, limit = 1, nowMs = T0): Promise<ClaimedJob[]> {
    return (await this.store.jobs.claim({ endpointId: E1, workerId, limit, nowMs })).jobs
  }

  /** A worker that holds exactly these jobs, new ones, since {@link T0}. */
  async holder(id: string, ...ids: string[]): Promise<WorkerId> {
    const workerId = await this.worker(id)
    await this.jobs(...ids)
    const claimed = await this.claim(workerId, ids.length)
    assert.deepEqual(
      claimed.map(job => job.id),
      ids,
    )
    return workerId
  }

  /** A result for a job. */
  finish(id: string, workerId: WorkerId = W1, outcome: JobOutcome = DONE, nowMs = T0 + 500) {
    return this.store.jobOutcomes.finish({ jobId: jobId(id), workerId, outcome, nowMs })
  }

  /** One step of a purge of all that waits at {@link E1}. */
  async purge(nowMs = T0, limit = 9): Promise<readonly JobMove[]> {
    const { jobOutcomes } = this.store
    return (await jobOutcomes.purge(E1, nowMs, limit, await jobOutcomes.waiting(E1))).moves
  }

  /** Removes all that is left of a deleted endpoint, and returns what that has cancelled. */
  async removeAll(id: EndpointId = E1, nowMs = T0): Promise<JobMove[]> {
    const cancelled: JobMove[] = []
    for (let more = true; more; ) {
      const part = await this.store.removals.removePart(id, nowMs, 9)
      cancelled.push(...part.canceled)
      more = part.more
    }
    return cancelled
  }

  /** The job as it is in the store. */
  async read(id: string, nowMs = T0): Promise<Job> {
    const job = await this.store.jobs.locate(OWNER, jobId(id), nowMs)
    assert.ok(job !== null, `${id} is not there`)
    return job
  }

  /** The worker as it is in the store. */
  async readWorker(id: WorkerId = W1): Promise<Worker> {
    const worker = await this.store.workers.find(id)
    assert.ok(worker !== null, `${id} is not there`)
    return worker
  }

  /** The worker as the autoscaler sees it. */
  async load(id: WorkerId = W1): Promise<WorkerLoad> {
    const worker = (await this.snapshot()).workers.find(candidate => candidate.id === id)
    assert.ok(worker !== undefined, `${id} is not in the snapshot`)
    return worker
  }

  /** The endpoint as the autoscaler sees it. */
  async snapshot(id: EndpointId = E1) {
    const snapshot = await this.store.endpoints.snapshot(id)
    assert.ok(snapshot !== null, `${id} is not there`)
    return snapshot
  }
}

/** Replaces a template on top of what it is at that moment. */
export async function replaceTemplate(templates: Store['templates'], template: Template, nowMs: number) {
  const before = await templates.find(template.owner, template.id)
  return templates.replace(template, before ?? template, nowMs)
}
