import { z } from '@hono/zod-openapi'
import { gpuKey } from '../../../core/hardware/inventory.ts'
import type { EngineState } from '../../../core/observing/diagnosis.ts'
import { WORKER_PHASES } from '../../../core/workers/worker-phase.ts'
import type { CardUse } from '../../../services/hardware/card-reader.ts'
import type { HeldGpu, MachineReport } from '../../../services/observing/machine-reader.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { DateTime } from '../schemas/common.ts'

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
  suspended: z.boolean(),
  shareMb: Count.nullable(),
  usedMb: Count.nullable(),
  beyondMb: Count,
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
    memory: z
      .object({
        totalMb: Count,
        freeMb: Count,
        foreignMb: Count,
        programs: z.array(z.object({ pid: Count, name: z.string().nullable(), memoryMb: Count })),
      })
      .nullable(),
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
const MachineBody = z
  .object({
    vcpus: z.object({ total: z.number(), used: z.number() }),
    memoryMb: z.object({ total: Count, used: Count.nullable(), available: Count.nullable(), assigned: Count }),
    disk: z.object({ totalBytes: z.number(), availableBytes: z.number() }).nullable(),
    gpus: z.array(Gpu),
    gpuProblem: z.string().nullable(),
    suspending: z.object({ lack: z.string().nullable() }).nullable(),
    workers: z.object({ total: Count, free: Count.nullable(), bound: z.string() }),
    waiting: z.array(Waiting),
    isolation: z.object({ processes: z.string().nullable(), problem: z.string().nullable() }),
    containers: Containers.nullable(),
  })
  .openapi('Machine')
/** See {@link MachineBody}. */
type MachineBody = z.infer<typeof MachineBody>

/** Findings of `runyard doctor`. */
const DiagnosisBody = z
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
type DiagnosisBody = z.infer<typeof DiagnosisBody>

const TAG = 'Machine'
const BYTES_PER_MB = 2 ** 20
const MB_PER_GB = 1024

/** Additions to the public contract: the machine, for its operator. */
export function machineRoutes({ machineReader }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/machine',
        operationId: 'getMachine',
        tag: TAG,
        level: 'operator',
        summary:
          'What the machine has, who has its GPUs, and which workers wait for what; for keys with all rights of the operator',
        success: { status: 200, schema: MachineBody },
      },
      async ({ caller }): Promise<MachineBody> => machineBody(await machineReader.report(caller)),
    ),
    route(
      {
        method: 'get',
        path: '/v2/machine/diagnosis',
        operationId: 'getMachineDiagnosis',
        tag: TAG,
        level: 'operator',
        summary:
          'What runyard doctor finds on the machine, for keys with all rights of the operator; it may take half a minute',
        success: { status: 200, schema: DiagnosisBody },
        problems: [409],
      },
      async ({ caller }): Promise<DiagnosisBody> => {
        const { atMs, findings } = await machineReader.diagnosis(caller)
        return { at: new Date(atMs).toISOString(), findings: [...findings] }
      },
    ),
  ]
}

function machineBody(report: MachineReport): MachineBody {
  const { parts, memory, disk, assigned, capacity, engine } = report
  return {
    vcpus: { total: parts.vcpus, used: assigned.vcpus },
    memoryMb: {
      total: memory === null ? Math.floor(parts.memoryGb * MB_PER_GB) : megabytes(memory.totalBytes),
      used: memory === null ? null : megabytes(memory.totalBytes - memory.availableBytes),
      available: memory === null ? null : megabytes(memory.availableBytes),
      assigned: Math.round(assigned.memoryMb),
    },
    disk,
    gpus: report.gpus.map(gpuBody),
    gpuProblem: parts.problem,
    suspending: report.suspending,
    workers: {
      total: report.workers,
      free: capacity.freeWorkers === null ? null : Math.max(0, capacity.freeWorkers),
      bound: capacity.bound,
    },
    waiting: report.waiting.map(waiting => ({ ...waiting })),
    isolation: { processes: report.processIsolation, problem: report.sharingProblem },
    containers: engine === null ? null : containersBody(engine),
  }
}

function gpuBody({ gpu, type, pool, use, memory, holders }: HeldGpu): MachineBody['gpus'][number] {
  const { index, name, memoryGb, driver, cuda, mig, problem } = gpu
  const isHeld = holders.some(({ asleep }) => !asleep)
  return {
    id: gpuKey(gpu),
    index,
    name,
    type,
    pool,
    memoryMb: Math.round(memoryGb * MB_PER_GB),
    driver,
    cuda,
    mig,
    busyPercent: use?.busy ?? null,
    memoryUsedPercent: use?.memory ?? null,
    state: problem !== null ? 'PROBLEM' : isHeld ? 'IN_USE' : 'FREE',
    problem,
    memory: memory === null ? null : cardBody(memory),
    holders: holders.map(({ now, ...holder }) => ({ ...holder, phase: now.phase, sinceMs: now.sinceMs })),
  }
}

function cardBody({
  totalMb,
  freeMb,
  foreignMb,
  programs,
}: CardUse): NonNullable<MachineBody['gpus'][number]['memory']> {
  return { totalMb, freeMb, foreignMb, programs: programs.map(program => ({ ...program })) }
}

function containersBody(engine: EngineState): NonNullable<MachineBody['containers']> {
  const { address, problem, product, version, apiVersion, rootless, freeBytes } = engine
  return { available: problem === null, address, problem, engine: product, version, apiVersion, rootless, freeBytes }
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / BYTES_PER_MB)
}
