import { z } from '@hono/zod-openapi'
import { WORKER_PHASES } from '../../../core/workers/worker-phase.ts'
import { DateTime } from './common.ts'

const Count = z.int().min(0)
const Percent = z.number().min(0).max(100)

const Holder = z.object({
  endpointId: z.string(),
  endpointName: z.string().nullable(),
  account: z.string(),
  workerId: z.string(),
  phase: z.enum(WORKER_PHASES).openapi('WorkerPhase'),
  sinceMs: z.int(),
  asleep: z.boolean(),
})

const Gpu = z
  .object({
    id: z.string(),
    index: Count,
    name: z.string(),
    type: z.string(),
    pool: z.string(),
    memoryMb: Count,
    driver: z.string().nullable(),
    cuda: z.string().nullable(),
    mig: z.string().nullable(),
    busyPercent: Percent.nullable(),
    memoryUsedPercent: Percent.nullable(),
    state: z.enum(['FREE', 'IN_USE', 'PROBLEM']),
    problem: z.string().nullable(),
    holders: z.array(Holder),
  })
  .openapi('MachineGpu')

const Waiting = z
  .object({
    endpointId: z.string(),
    endpointName: z.string(),
    account: z.string(),
    workers: Count,
    resource: z.string(),
    reason: z.string(),
    sinceMs: z.int(),
  })
  .openapi('MachineWaiting')

const Containers = z
  .object({
    available: z.boolean(),
    address: z.string(),
    problem: z.string().nullable(),
    engine: z.enum(['docker', 'podman']),
    version: z.string(),
    apiVersion: z.string(),
    rootless: z.boolean(),
    freeBytes: z.number().nullable(),
  })
  .openapi('MachineContainers')

/** The machine, the users of its GPUs, and the waiting workers. */
export const MachineBody = z
  .object({
    vcpus: z.object({ total: z.number(), used: z.number() }),
    memoryMb: z.object({ total: Count, used: Count.nullable(), available: Count.nullable(), assigned: Count }),
    disk: z.object({ totalBytes: z.number(), availableBytes: z.number() }).nullable(),
    gpus: z.array(Gpu),
    gpuProblem: z.string().nullable(),
    workers: z.object({ total: Count, free: Count.nullable(), bound: z.string() }),
    waiting: z.array(Waiting),
    isolation: z.object({ processes: z.string().nullable(), problem: z.string().nullable() }),
    containers: Containers.nullable(),
  })
  .openapi('Machine')
/** See {@link MachineBody}. */
export type MachineBody = z.infer<typeof MachineBody>

/** Findings of `runyard doctor`. */
export const DiagnosisBody = z
  .object({
    at: DateTime,
    findings: z.array(
      z
        .object({
          check: z.string(),
          state: z.enum(['ok', 'warn', 'fail', 'skip']),
          message: z.string(),
          action: z.string().nullable(),
        })
        .openapi('Finding'),
    ),
  })
  .openapi('Diagnosis')
/** See {@link DiagnosisBody}. */
export type DiagnosisBody = z.infer<typeof DiagnosisBody>
