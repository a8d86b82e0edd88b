import {
  type Compute,
  type CpuConfig,
  type Endpoint,
  type EndpointConfig,
  type FlashBoot,
  gpuShare,
  type Scaler,
  withDefaults,
} from '../../core/endpoints/endpoint.ts'
import { formatInstanceId, parseInstanceId } from '../../core/endpoints/instance-id.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { AppError } from '../../core/errors.ts'
import { poolsFromTypes, typesFromPools } from '../../core/hardware/catalog.ts'
import { CPU_FLAVORS, GPU_POOLS } from '../../core/hardware/catalog-data.ts'
import type { VolumeId } from '../../core/ids.ts'
import { countGpus } from '../../core/workers/placement.ts'
import { isFrozen, takesJobs, type Worker } from '../../core/workers/worker.ts'
import { readFields, v1Members } from '../dialect.ts'
import { ENDPOINT_MEMBERS } from '../endpoint-fields.ts'
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
    ...readFields<EndpointConfig>(ENDPOINT_MEMBERS, 'v1', fields),
    ...(compute === null ? {} : { compute }),
    ...(scaler === null ? {} : { scaler }),
    ...(fields.flashboot === undefined ? {} : { flashboot: flashboot(fields.flashboot, before?.flashboot ?? 'OFF') }),
    ...(fields.dataCenterIds === undefined ? {} : { locations: fields.dataCenterIds ?? [] }),
    ...(volumes !== undefined
      ? { networkVolumeIds: (volumes ?? []) as VolumeId[] }
      : noVolume
        ? { networkVolumeIds: [] }
        : {}),
  }
}

/** @param before the present choice, which stays if this version shows it the same */
function flashboot(isOn: boolean, before: FlashBoot): FlashBoot {
  if (isOn === (before !== 'OFF')) return before
  return isOn ? 'FLASHBOOT' : 'OFF'
}

function changedScaler({ scalerType, scalerValue }: Fields, before: Scaler): Scaler | null {
  if (scalerType === undefined && scalerValue === undefined) return null
  const type = scalerType ?? before.type
  const kept = before.type === 'QUEUE_DELAY' ? before.queueDelayS : before.requestCount
  const value = scalerValue ?? (type === before.type ? kept : 4)
  return type === 'QUEUE_DELAY' ? { type, queueDelayS: value } : { type, requestCount: value }
}

/** Hardware that is sent as it is shown does not change: this version shows less of it than the server stores. */
function changedCompute(fields: Fields, before: Compute | null): Compute | null {
  const shown = before === null ? null : hardwareView(before)
  if (fields.cpuFlavorIds !== undefined && fields.cpuFlavorIds.length > 0 && fields.computeType !== 'GPU') {
    const { cpuFlavorIds, vcpuCount = shown?.vcpuCount || VCPUS } = fields
    if (before?.kind === 'cpu' && isSameText([cpuFlavorIds, vcpuCount], [shown!.cpuFlavorIds, shown!.vcpuCount]))
      return null
    const configs = cpuFlavorIds.map(flavor => ({ flavor, vcpuCount }))
    return { kind: 'cpu', configs: before === null ? namedConfigs(fields.instanceIds, configs) : configs }
  }
  if (before?.kind === 'cpu') {
    if (fields.vcpuCount === undefined || fields.vcpuCount === shown!.vcpuCount) return null
    const vcpuCount = fields.vcpuCount
    return { kind: 'cpu', configs: before.configs.map(({ flavor }) => ({ flavor, vcpuCount })) }
  }
  const { gpuTypeIds, gpuCount, gpuMemoryGb, allowedCudaVersions, minCudaVersion } = fields
  const touched = [gpuTypeIds, gpuCount, gpuMemoryGb, allowedCudaVersions, minCudaVersion].some(
    value => value !== undefined,
  )
  if (!touched || (before === null && gpuTypeIds === undefined)) return null
  const isKept = before !== null && (gpuTypeIds === undefined || isSameText(gpuTypeIds, shown!.gpuTypeIds))
  return {
    kind: 'gpu',
    ...(isKept ? { pools: before.pools, excludedTypes: before.excludedTypes } : selection(gpuTypeIds!)),
    count: gpuCount ?? before?.count ?? 1,
    allowedCudaVersions: allowedCudaVersions ?? before?.allowedCudaVersions ?? [],
    minCudaVersion: minCudaVersion === undefined ? (before?.minCudaVersion ?? null) : minCudaVersion || null,
    ...gpuShare(gpuMemoryGb, before),
  }
}

/**
 * The configurations that instance ids name, if they agree with the flavors and the count in the request; else the
 * latter.
 */
function namedConfigs(ids: readonly string[] = [], wanted: readonly CpuConfig[]): readonly CpuConfig[] {
  const named = ids.flatMap(id => parseInstanceId(id) ?? [])
  const agree =
    named.length === ids.length &&
    named[0]?.vcpuCount === wanted[0]?.vcpuCount &&
    isSameText(flavorIds(named), flavorIds(wanted))
  return agree ? named : wanted
}

function flavorIds(configs: readonly CpuConfig[]): string[] {
  return configs.map(({ flavor }) => flavor)
}

function isSameText(some: unknown, others: unknown): boolean {
  return JSON.stringify(some) === JSON.stringify(others)
}

/** Selects exactly these GPU types: their pools, with the other types excluded. */
function selection(gpuTypeIds: readonly string[]): { pools: readonly string[]; excludedTypes: readonly string[] } {
  const { pools, unknown } = poolsFromTypes(gpuTypeIds)
  if (unknown.length > 0) {
    const failures = unknown.map(type => `gpuTypeIds: '${type}' is not a GPU type of a serverless pool`)
    throw new AppError('invalid', failures.join('; '), { failures })
  }
  return { pools, excludedTypes: typesFromPools(pools).filter(type => !gpuTypeIds.includes(type)) }
}

/** Hardware as this version shows it: the count of vCPUs is that of the first configuration. */
function hardwareView(compute: Compute) {
  const gpu = compute.kind === 'gpu' ? compute : null
  const configs = compute.kind === 'cpu' ? compute.configs : []
  return {
    computeType: gpu === null ? 'CPU' : 'GPU',
    gpuTypeIds: gpu === null ? [] : typesFromPools(gpu.pools).filter(type => !gpu.excludedTypes.includes(type)),
    gpuCount: gpu?.count ?? 0,
    ...(gpu?.memoryGb === undefined ? {} : { gpuMemoryGb: gpu.memoryGb }),
    cpuFlavorIds: flavorIds(configs),
    vcpuCount: configs[0]?.vcpuCount ?? 0,
    instanceIds: configs.map(formatInstanceId),
    allowedCudaVersions: gpu?.allowedCudaVersions ?? [],
    minCudaVersion: gpu?.minCudaVersion ?? null,
  }
}

/** An endpoint as this version shows it. */
export function endpointView(endpoint: Endpoint, more: { template?: Template; workers?: readonly Worker[] }) {
  const { compute, scaler, networkVolumeIds } = endpoint
  const { name, workersMin, workersMax, idleTimeout, executionTimeoutMs, ...others } = v1Members(
    ENDPOINT_MEMBERS,
    endpoint,
  )
  return {
    id: endpoint.id,
    name,
    userId: endpoint.owner,
    templateId: endpoint.templateId,
    ...hardwareView(compute),
    workersMin,
    workersMax,
    idleTimeout,
    scalerType: scaler.type,
    scalerValue: scaler.type === 'QUEUE_DELAY' ? scaler.queueDelayS : scaler.requestCount,
    dataCenterIds: endpoint.locations,
    networkVolumeId: networkVolumeIds[0] ?? null,
    networkVolumeIds,
    executionTimeoutMs,
    flashboot: endpoint.flashboot !== 'OFF',
    ...others,
    version: endpoint.version,
    createdAt: new Date(endpoint.createdAtMs).toISOString(),
    ...(more.template === undefined ? {} : { template: templateView(more.template) }),
    ...(more.workers === undefined ? {} : { workers: more.workers.map(workerView) }),
  }
}

function workerView(worker: Worker) {
  const { id, version, placement, createdAtMs } = worker
  const desiredStatus = takesJobs(worker) || isFrozen(worker) ? 'RUNNING' : 'EXITED'
  const gpuCount = countGpus(placement)
  return { id, desiredStatus, gpuCount, version, createdAt: new Date(createdAtMs).toISOString() }
}
