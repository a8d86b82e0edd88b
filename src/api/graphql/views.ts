import { cpuMemoryGb } from '../../core/catalog.ts'
import { type Endpoint, formatGpuIds } from '../../core/endpoint.ts'
import type { Secret } from '../../core/secret.ts'
import type { Template } from '../../core/template.ts'

/** An endpoint as GraphQL shows it; `pods` and `template` are resolved when asked for. */
export function endpointView(endpoint: Endpoint) {
  const { compute, scaler } = endpoint
  const gpu = compute.kind === 'gpu' ? compute : null
  return {
    endpoint,
    id: endpoint.id,
    name: endpoint.name,
    type: endpoint.type === 'QUEUE' ? 'QB' : 'LB',
    templateId: endpoint.templateId,
    gpuIds: formatGpuIds(compute),
    gpuCount: gpu?.count ?? null,
    instanceIds:
      compute.kind === 'cpu'
        ? compute.configs.map(({ flavor, vcpuCount }) => `${flavor}-${vcpuCount}-${cpuMemoryGb(flavor, vcpuCount)}`)
        : [],
    computeType: compute.kind === 'cpu' ? 'CPU' : 'GPU',
    allowedCudaVersions: gpu?.allowedCudaVersions.join(',') ?? null,
    minCudaVersion: gpu?.minCudaVersion ?? null,
    idleTimeout: endpoint.idleTimeoutS,
    locations: endpoint.locations.join(','),
    networkVolumeId: endpoint.networkVolumeIds[0] ?? null,
    networkVolume: endpoint.networkVolumeIds.map(volume => ({ id: volume, dataCenterId: null }))[0] ?? null,
    networkVolumeIds: endpoint.networkVolumeIds.map(networkVolumeId => ({ networkVolumeId, dataCenterId: null })),
    scalerType: scaler.type,
    scalerValue: scaler.type === 'QUEUE_DELAY' ? scaler.queueDelayS : scaler.requestCount,
    workersMin: endpoint.workersMin,
    workersMax: endpoint.workersMax,
    executionTimeoutMs: endpoint.executionTimeoutMs,
    flashBootType: endpoint.flashboot,
    env: variables(endpoint.env),
    version: endpoint.version,
    userId: endpoint.owner,
    createdAt: new Date(endpoint.createdAtMs).toISOString(),
  }
}

/** A template as GraphQL shows it. */
export function templateView(template: Template) {
  return {
    id: template.id,
    name: template.name,
    imageName: template.image,
    dockerArgs: template.args,
    containerDiskInGb: template.diskGb,
    volumeInGb: template.volumeGb,
    volumeMountPath: template.volumeMountPath,
    ports: template.ports.join(','),
    env: variables(template.env),
    readme: template.readme,
    isServerless: template.isServerless,
    isPublic: false,
    containerRegistryAuthId: template.registry,
  }
}

/** A secret as GraphQL shows it: without its value. */
export function secretView(secret: Secret) {
  const { id, name, description } = secret
  return { id, name, description, createdAt: new Date(secret.createdAtMs).toISOString() }
}

function variables(env: Readonly<Record<string, string>>): { key: string; value: string }[] {
  return Object.entries(env).map(([key, value]) => ({ key, value }))
}
