import {
  type Compute,
  type Endpoint,
  type EndpointConfig,
  type Scaler,
  withDefaults,
} from '../../core/endpoints/endpoint.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { AppError } from '../../core/errors.ts'
import { cpuMemoryGb, poolsOfTypes, typesOfPools } from '../../core/hardware/catalog.ts'
import { CPU_FLAVORS, GPU_POOLS } from '../../core/hardware/catalog-data.ts'
import type { VolumeId } from '../../core/ids.ts'
import { gpuCountOf } from '../../core/workers/placement.ts'
import { isFrozen, takesJobs, type Worker } from '../../core/workers/worker.ts'
import type { Members } from '../rest/route.ts'
import type { EndpointFields } from './schemas.ts'
import { templateView } from './templates.ts'

type Fields = Partial<Members<typeof EndpointFields>>

/** The smallest CPU worker, for a request that names only flavors. */
const VCPUS = 2
const IDLE_TIMEOUT_S = 5

/**
 * The whole configuration of a new endpoint. Without hardware it uses any GPU type of a serverless pool, or
 * every CPU flavor.
 * @throws AppError `invalid`
 */
export function newConfig(fields: Fields): EndpointConfig {
  const compute = changedCompute(withHardware(fields), null) as Compute
  const changes = changedConfig(fields, null)
  return withDefaults({ idleTimeoutS: IDLE_TIMEOUT_S, ...changes, name: fields.name ?? 'endpoint', compute })
}

function withHardware(fields: Fields): Fields {
  const named = (ids: readonly string[] | undefined) => ids !== undefined && ids.length > 0
  if (fields.computeType === 'CPU') {
    return named(fields.cpuFlavorIds) ? fields : { ...fields, cpuFlavorIds: CPU_FLAVORS.map(({ id }) => id) }
  }
  const isCpu = fields.computeType === undefined && named(fields.cpuFlavorIds)
  if (isCpu || named(fields.gpuTypeIds)) return fields
  return { ...fields, gpuTypeIds: GPU_POOLS.flatMap(({ gpuTypes }) => gpuTypes) }
}

/** The requested changes. @param before the endpoint to change; null for a new one */
export function changedConfig(fields: Fields, before: EndpointConfig | null): Partial<EndpointConfig> {
  const compute = before === null ? null : changedCompute(fields, before.compute)
  const scaler = changedScaler(fields, before?.scaler ?? { type: 'QUEUE_DELAY', queueDelayS: 4 })
  const volumes = fields.networkVolumeIds ?? (fields.networkVolumeId ? [fields.networkVolumeId] : undefined)
  const noVolume = fields.networkVolumeId === '' || fields.networkVolumeId === null
  return {
    ...(fields.name === undefined ? {} : { name: fields.name }),
    ...(compute === null ? {} : { compute }),
    ...(scaler === null ? {} : { scaler }),
    ...(fields.workersMin === undefined ? {} : { workersMin: fields.workersMin }),
    ...(fields.workersMax === undefined ? {} : { workersMax: fields.workersMax }),
    ...(fields.idleTimeout === undefined ? {} : { idleTimeoutS: fields.idleTimeout }),
    ...(fields.executionTimeoutMs === undefined ? {} : { executionTimeoutMs: fields.executionTimeoutMs }),
    ...(fields.flashboot === undefined
      ? {}
      : { flashboot: fields.flashboot ? ('FLASHBOOT' as const) : ('OFF' as const) }),
    ...(fields.env === undefined ? {} : { env: fields.env }),
    ...(fields.dataCenterIds === undefined ? {} : { locations: fields.dataCenterIds ?? [] }),
    ...(volumes !== undefined
      ? { networkVolumeIds: (volumes ?? []) as VolumeId[] }
      : noVolume
        ? { networkVolumeIds: [] }
        : {}),
  }
}

function changedScaler({ scalerType, scalerValue }: Fields, before: Scaler): Scaler | null {
  if (scalerType === undefined && scalerValue === undefined) return null
  const type = scalerType ?? before.type
  const kept = before.type === 'QUEUE_DELAY' ? before.queueDelayS : before.requestCount
  const value = scalerValue ?? (type === before.type ? kept : 4)
  return type === 'QUEUE_DELAY' ? { type, queueDelayS: value } : { type, requestCount: value }
}

function changedCompute(fields: Fields, before: Compute | null): Compute | null {
  if (fields.cpuFlavorIds !== undefined && fields.cpuFlavorIds.length > 0 && fields.computeType !== 'GPU') {
    const vcpuCount = fields.vcpuCount ?? (before?.kind === 'cpu' ? before.configs[0]?.vcpuCount : undefined) ?? VCPUS
    return { kind: 'cpu', configs: fields.cpuFlavorIds.map(flavor => ({ flavor, vcpuCount })) }
  }
  if (before?.kind === 'cpu') {
    if (fields.vcpuCount === undefined) return null
    const vcpuCount = fields.vcpuCount
    return { kind: 'cpu', configs: before.configs.map(({ flavor }) => ({ flavor, vcpuCount })) }
  }
  const { gpuTypeIds, gpuCount, allowedCudaVersions, minCudaVersion } = fields
  const touched = [gpuTypeIds, gpuCount, allowedCudaVersions, minCudaVersion].some(value => value !== undefined)
  if (!touched || (before === null && gpuTypeIds === undefined)) return null
  return {
    kind: 'gpu',
    ...(gpuTypeIds === undefined
      ? { pools: before!.pools, excludedTypes: before!.excludedTypes }
      : selection(gpuTypeIds)),
    count: gpuCount ?? before?.count ?? 1,
    allowedCudaVersions: allowedCudaVersions ?? before?.allowedCudaVersions ?? [],
    minCudaVersion: minCudaVersion === undefined ? (before?.minCudaVersion ?? null) : minCudaVersion || null,
  }
}

/** Selects exactly these GPU types: their pools, with the other types excluded. */
function selection(gpuTypeIds: readonly string[]): { pools: readonly string[]; excludedTypes: readonly string[] } {
  const { pools, unknown } = poolsOfTypes(gpuTypeIds)
  if (unknown.length > 0) {
    const failures = unknown.map(type => `gpuTypeIds: '${type}' is not a GPU type of a serverless pool`)
    throw new AppError('invalid', failures.join('; '), { failures })
  }
  return { pools, excludedTypes: typesOfPools(pools).filter(type => !gpuTypeIds.includes(type)) }
}

/** An endpoint as this version shows it. */
export function endpointView(endpoint: Endpoint, more: { template?: Template; workers?: readonly Worker[] }) {
  const { compute, scaler, networkVolumeIds } = endpoint
  const gpu = compute.kind === 'gpu' ? compute : null
  const configs = compute.kind === 'cpu' ? compute.configs : []
  return {
    id: endpoint.id,
    name: endpoint.name,
    userId: endpoint.owner,
    templateId: endpoint.templateId,
    computeType: gpu === null ? 'CPU' : 'GPU',
    gpuTypeIds: gpu === null ? [] : typesOfPools(gpu.pools).filter(type => !gpu.excludedTypes.includes(type)),
    gpuCount: gpu?.count ?? 0,
    cpuFlavorIds: configs.map(({ flavor }) => flavor),
    vcpuCount: configs[0]?.vcpuCount ?? 0,
    instanceIds: configs.map(({ flavor, vcpuCount }) => `${flavor}-${vcpuCount}-${cpuMemoryGb(flavor, vcpuCount)}`),
    allowedCudaVersions: gpu?.allowedCudaVersions ?? [],
    minCudaVersion: gpu?.minCudaVersion ?? null,
    workersMin: endpoint.workersMin,
    workersMax: endpoint.workersMax,
    idleTimeout: endpoint.idleTimeoutS,
    scalerType: scaler.type,
    scalerValue: scaler.type === 'QUEUE_DELAY' ? scaler.queueDelayS : scaler.requestCount,
    dataCenterIds: endpoint.locations,
    networkVolumeId: networkVolumeIds[0] ?? null,
    networkVolumeIds,
    executionTimeoutMs: endpoint.executionTimeoutMs,
    flashboot: endpoint.flashboot !== 'OFF',
    env: endpoint.env,
    version: endpoint.version,
    createdAt: new Date(endpoint.createdAtMs).toISOString(),
    ...(more.template === undefined ? {} : { template: templateView(more.template) }),
    ...(more.workers === undefined ? {} : { workers: more.workers.map(workerView) }),
  }
}

function workerView(worker: Worker) {
  const { id, version, placement, createdAtMs } = worker
  const desiredStatus = takesJobs(worker) || isFrozen(worker) ? 'RUNNING' : 'EXITED'
  const gpuCount = gpuCountOf(placement)
  return { id, desiredStatus, gpuCount, version, createdAt: new Date(createdAtMs).toISOString() }
}
