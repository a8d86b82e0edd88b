import { type Endpoint, formatGpuIds } from '../../core/endpoints/endpoint.ts'
import { formatInstanceId } from '../../core/endpoints/instance-id.ts'
import type { Template } from '../../core/endpoints/template.ts'
import type { Volume } from '../../core/endpoints/volume.ts'
import type { Registry } from '../../core/secrets/registry.ts'
import type { Secret } from '../../core/secrets/secret.ts'
import { countGpus, type QueuedWorker } from '../../core/workers/placement.ts'
import { isFrozen, takesJobs, type Worker } from '../../core/workers/worker.ts'
import { graphqlMembers } from '../dialect.ts'
import { ENDPOINT_MEMBERS } from '../endpoint-fields.ts'
import { TEMPLATE_MEMBERS } from '../template-fields.ts'

/** Source value of the endpoint's resolvers. */
export type EndpointView = ReturnType<typeof endpointView>

/** An endpoint as GraphQL shows it. Fields that need another read are resolved on request. */
export function endpointView(endpoint: Endpoint) {
  const { compute, scaler } = endpoint
  const gpu = compute.kind === 'gpu' ? compute : null
  return {
    endpoint,
    id: endpoint.id,
    ...graphqlMembers(ENDPOINT_MEMBERS, endpoint),
    type: endpoint.type === 'QUEUE' ? 'QB' : 'LB',
    templateId: endpoint.templateId,
    gpuIds: formatGpuIds(compute),
    gpuCount: gpu?.count ?? null,
    gpuMemoryGb: typeof gpu?.memoryGb === 'number' ? gpu.memoryGb : null,
    gpuMemoryAuto: gpu?.memoryGb === 'auto',
    instanceIds: compute.kind === 'cpu' ? compute.configs.map(formatInstanceId) : [],
    computeType: compute.kind === 'cpu' ? 'CPU' : 'GPU',
    allowedCudaVersions: gpu?.allowedCudaVersions.join(',') ?? null,
    minCudaVersion: gpu?.minCudaVersion ?? null,
    networkVolumeId: endpoint.networkVolumeIds[0] ?? null,
    scalerType: scaler.type,
    scalerValue: scaler.type === 'QUEUE_DELAY' ? scaler.queueDelayS : scaler.requestCount,
    workersStandby: 0,
    version: endpoint.version,
    userId: endpoint.owner,
    createdAt: new Date(endpoint.createdAtMs).toISOString(),
  }
}

/** A template as GraphQL shows it. */
export function templateView(template: Template) {
  return {
    id: template.id,
    ...graphqlMembers(TEMPLATE_MEMBERS, template),
    isRunpod: false,
    startScript: '',
    advancedStart: false,
  }
}

/** A secret as GraphQL shows it: without its value. */
export function secretView({ id, name, description, createdAtMs, valueUpdatedAtMs }: Secret) {
  const updatedAt = valueUpdatedAtMs === null ? null : instant(valueUpdatedAtMs)
  return { id, name, description, createdAt: instant(createdAtMs), updatedAt }
}

/** A registry as GraphQL shows it: without its credential. */
export function registryView({ id, name }: Registry) {
  return { id, name }
}

/** A volume as GraphQL shows it. */
export function volumeView({ id, name, sizeGb, dataCenter }: Volume) {
  return { id, name, size: sizeGb, dataCenterId: dataCenter, storageClusterId: null, storageType: null }
}

/** A worker as GraphQL shows it. */
export function workerView(worker: Worker) {
  const { id, placement, platform } = worker
  const desiredStatus = takesJobs(worker) || isFrozen(worker) ? 'RUNNING' : 'EXITED'
  const machineType = placement?.gpus[0]?.type ?? platform?.place?.gpuType ?? null
  return { id, desiredStatus, gpuCount: countGpus(placement), machineId: platform?.place?.node ?? null, machineType }
}

/** A worker that waits for placement, as GraphQL shows it. */
export function queuedView({ id }: QueuedWorker) {
  return { id, desiredStatus: 'RUNNING' }
}

function instant(ms: number): string {
  return new Date(ms).toISOString()
}
