/** Complete and valid values of the core, with fields that a test can change. */

import { type Endpoint, withDefaults } from '../../src/core/endpoints/endpoint.ts'
import { ROLLED_OUT, type RolloutFacts } from '../../src/core/endpoints/rollout-facts.ts'
import type { BatchId, EndpointId, JobId, OwnerId, TemplateId, WorkerId } from '../../src/core/ids.ts'
import type { Batch } from '../../src/core/jobs/batch.ts'
import type { Job } from '../../src/core/jobs/job.ts'
import type { EndpointSnapshot, QueueLoad } from '../../src/core/scaling/scale.ts'
import { newWorker } from '../../src/core/workers/new-worker.ts'
import type { QueuedWorker } from '../../src/core/workers/placement.ts'
import type { Worker, WorkerLoad } from '../../src/core/workers/worker.ts'
import type { WorkerExit } from '../../src/core/workers/worker-exit.ts'

/** The current time in tests of the core. */
export const NOW = 1_800_000_000_000

/** A job that has just been accepted. */
export function aJob(fields: Partial<Job> = {}): Job {
  return {
    id: 'job-u1' as JobId,
    owner: 'owner' as OwnerId,
    endpointId: 'endpoint' as EndpointId,
    kind: 'run',
    status: 'IN_QUEUE',
    input: '{}',
    policy: null,
    webhook: null,
    s3Config: null,
    executionTimeoutMs: 600_000,
    lowPriority: false,
    position: 1,
    ttlMs: 86_400_000,
    retentionMs: 60_000,
    queuedAtMs: NOW,
    startedAtMs: null,
    finishedAtMs: null,
    expiresAtMs: NOW + 86_400_000,
    attempt: 0,
    lostAttempts: 0,
    workerId: null,
    output: null,
    error: null,
    progress: null,
    warning: null,
    batchId: null,
    traceparent: null,
    ...fields,
  }
}

/** A draft of a batch without requests. */
export function aBatch(fields: Partial<Batch> = {}): Batch {
  return {
    id: 'batch-1' as BatchId,
    owner: 'owner' as OwnerId,
    endpointId: 'endpoint' as EndpointId,
    status: 'DRAFT',
    name: null,
    webhook: null,
    total: 0,
    inProgress: 0,
    completed: 0,
    failed: 0,
    createdAtMs: NOW,
    finalizedAtMs: null,
    finishedAtMs: null,
    expiresAtMs: NOW + 1_000,
    ...fields,
  }
}

/** A queue endpoint on a CPU, from 0 to 3 workers. */
export function anEndpoint(fields: Partial<Endpoint> = {}): Endpoint {
  return {
    id: 'endpoint' as EndpointId,
    owner: 'owner' as OwnerId,
    templateId: 'template' as TemplateId,
    version: 1,
    createdAtMs: 0,
    ...withDefaults({ name: 'mine', compute: { kind: 'cpu', configs: [{ flavor: 'cpu3g', vcpuCount: 2 }] } }),
    ...fields,
  }
}

/** A ready worker that has been idle for a second. */
export function aWorker(fields: Partial<WorkerLoad> = {}): WorkerLoad {
  return {
    ...newWorker({
      id: 'w1' as WorkerId,
      driver: 'mock',
      baseUrl: 'http://localhost',
      serves: null,
      endpoint: { id: 'endpoint' as EndpointId, owner: 'owner' as OwnerId, version: 1 },
      placement: null,
      queued: null,
      nowMs: NOW - 60_000,
    }),
    state: 'READY',
    handle: 'h',
    placedAtMs: null,
    startedAtMs: NOW - 59_000,
    readyAtMs: NOW - 58_000,
    idleSinceMs: NOW - 1_000,
    held: 0,
    ...fields,
  }
}

/** A worker that has just started to wait for a placement. */
export function aQueued(fields: Partial<QueuedWorker> = {}): QueuedWorker {
  return {
    id: 'q1' as WorkerId,
    owner: 'owner' as OwnerId,
    endpointId: 'endpoint' as EndpointId,
    version: 1,
    queuedAtMs: NOW,
    downloadStartedAtMs: null,
    downloadEndedAtMs: null,
    resource: 'gpu',
    reason: 'no GPU is free',
    ...fields,
  }
}

/** A worker that has just ended by itself. */
export function anExit(fields: Partial<Worker> = {}, exit: Partial<WorkerExit> = {}): Worker {
  const how = { code: 1, signal: null, cause: { kind: 'ended' } as const, lastLines: [], ...exit }
  return aWorker({ state: 'EXITED', exitedAtMs: NOW, idleSinceMs: null, exit: how, ...fields })
}

/** An endpoint without jobs and workers. */
export function aSnapshot(fields: {
  readonly endpoint?: Partial<Endpoint>
  readonly queue?: Partial<QueueLoad>
  readonly averageExecutionMs?: number | null
  readonly workers?: readonly Partial<WorkerLoad>[]
  readonly queuedWorkers?: readonly QueuedWorker[]
  readonly exits?: readonly Worker[]
  readonly rollout?: RolloutFacts
}): EndpointSnapshot {
  const {
    endpoint,
    queue,
    averageExecutionMs = null,
    workers = [],
    queuedWorkers = [],
    exits = [],
    rollout = ROLLED_OUT,
  } = fields
  const waits = (queue?.queued ?? 0) > 0
  return {
    endpoint: anEndpoint(endpoint),
    counters: { completed: 0, failed: 0, retried: 0, averageExecutionMs },
    queue: {
      queued: 0,
      queuedLowPriority: 0,
      queuedInBatches: 0,
      inProgress: 0,
      suspectsQueued: 0,
      suspectsInProgress: 0,
      headQueuedAtMs: waits ? NOW : null,
      ...queue,
    },
    queuedWorkers,
    workers: workers.map((worker, index) => aWorker({ id: `w${index + 1}` as WorkerId, ...worker })),
    exits,
    rollout,
  }
}
