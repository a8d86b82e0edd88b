import { z } from '@hono/zod-openapi'
import { WORKER_STATUSES } from '../../../core/observing/worker-status.ts'
import { ISOLATIONS, LIMITS } from '../../../core/workers/isolation.ts'
import { WORKER_PHASES } from '../../../core/workers/worker-phase.ts'
import { DateTime } from './common.ts'

const Count = z.int().min(0)

const Status = z.enum(WORKER_STATUSES).openapi('WorkerStatus')

/** Members of every worker. Those after `startedAt` are additions to the public contract. */
const common = {
  id: z.string(),
  isStale: z.boolean(),
  version: z.int().nullable(),
  gpuCount: Count,
  image: z.string().nullable(),
  uptimeSeconds: Count.nullable(),
  gpuTypeId: z.string().nullable(),
  node: z.string().nullable(),
  dataCenterId: z.string().nullable(),
  startedAt: DateTime.nullable(),
  phase: z.enum(WORKER_PHASES).openapi('WorkerPhase'),
  phaseSince: DateTime,
  pullPercent: z.number().min(0).max(100).nullable(),
  download: z.object({ receivedBytes: Count, totalBytes: Count.nullable() }).openapi('ModelDownload').nullable(),
  jobsHeld: Count,
  reason: z.string().nullable(),
  isolation: z.enum(ISOLATIONS).nullable(),
}

const WorkerBody = z.object({ ...common, status: Status }).openapi('Worker')

const TimeLine = z
  .array(z.object({ phase: z.enum(WORKER_PHASES).openapi('WorkerPhase'), startedAt: DateTime, ms: Count }))
  .openapi('WorkerTimeLine')

const Exit = z.object({ code: z.int().nullable(), signal: z.string().nullable(), cause: z.string() })

/** Members of an ended worker, or of a single one. */
const more = {
  ...common,
  status: z.enum([...WORKER_STATUSES, 'EXITED']),
  createdAt: DateTime,
  readyAt: DateTime.nullable(),
  exitedAt: DateTime.nullable(),
  stopReason: z.string().nullable(),
  timeLine: TimeLine,
}

const EndedWorker = z.object({ ...more, exit: Exit.nullable() }).openapi('EndedWorker')

/** Workers of an endpoint that have not ended, and the ended ones if requested. */
export const WorkerList = z
  .object({
    workers: z.array(WorkerBody),
    summary: z
      .object({ running: Count, idle: Count, initializing: Count, throttled: Count, unhealthy: Count, total: Count })
      .openapi('WorkerSummary'),
    endpointVersion: z.int().nullable(),
    ended: z.array(EndedWorker).optional(),
  })
  .openapi('ListEndpointWorkersResponse')

/** The shape of {@link WorkerList}. */
export type WorkerList = z.infer<typeof WorkerList>

/** One worker with its history, its jobs, and its exit. */
export const WorkerDetail = z
  .object({
    ...more,
    endpointId: z.string(),
    sdk: z.string().nullable(),
    jobsFinished: Count,
    jobs: z.array(z.object({ id: z.string(), startedAt: DateTime.nullable() })),
    gpus: z.array(z.object({ index: Count, id: z.string(), memoryGb: z.number() })),
    pool: z.string().nullable(),
    vcpus: z.number().nullable(),
    memoryMb: z.number().nullable(),
    limits: z.array(z.enum(LIMITS)),
    exit: Exit.extend({ lastLines: z.array(z.string()) }).nullable(),
  })
  .openapi('WorkerDetail')

/** The shape of {@link WorkerDetail}. */
export type WorkerDetail = z.infer<typeof WorkerDetail>
