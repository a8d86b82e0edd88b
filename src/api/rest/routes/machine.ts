import { gpuKey } from '../../../core/hardware/inventory.ts'
import type { EngineState } from '../../../core/observing/diagnosis.ts'
import type { HeldGpu, MachineReport } from '../../../services/observing/machine-reader.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { DiagnosisBody, MachineBody } from '../schemas/machine.ts'

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
    workers: { total: report.workers, free: capacity.freeWorkers, bound: capacity.bound },
    waiting: report.waiting.map(waiting => ({ ...waiting })),
    isolation: { processes: report.processIsolation, problem: report.sharingProblem },
    containers: engine === null ? null : containersBody(engine),
  }
}

function gpuBody({ gpu, type, pool, use, holders }: HeldGpu): MachineBody['gpus'][number] {
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
    holders: holders.map(({ now, ...holder }) => ({ ...holder, phase: now.phase, sinceMs: now.sinceMs })),
  }
}

function containersBody(engine: EngineState): NonNullable<MachineBody['containers']> {
  const { address, problem, product, version, apiVersion, rootless, freeBytes } = engine
  return { available: problem === null, address, problem, engine: product, version, apiVersion, rootless, freeBytes }
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / BYTES_PER_MB)
}
