import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { KeptConfiguration } from '../../core/endpoints/release.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { shownHealthPath } from '../../core/endpoints/serving.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { cpuMemoryGb } from '../../core/hardware/catalog.ts'
import { type Addresses, balancedUrl, browserUrl } from '../addresses.ts'
import type { EndpointBody, ReleaseConfiguration } from './schemas/endpoint.ts'

/** The full REST representation of an endpoint with the container configuration of its template. */
export function endpointBody(endpoint: Endpoint, template: Template, addresses: Addresses): EndpointBody {
  const { id, name, type } = endpoint
  return {
    id,
    name,
    type,
    requestUrls: requestUrls(endpoint, template, addresses),
    ...(type === 'LOAD_BALANCER' ? { browserUrl: browserUrl(addresses, endpoint), domain: endpoint.domain } : {}),
    workers: workersBody(endpoint),
    scaling: scalingBody(endpoint),
    corsOrigins: [...endpoint.corsOrigins],
    timeout: endpoint.executionTimeoutMs,
    createdAt: new Date(endpoint.createdAtMs).toISOString(),
    ...seenBody(endpoint, template),
  }
}

/** What the workers of a release see. */
export function configurationBody({ endpoint, template }: KeptConfiguration): ReleaseConfiguration {
  return { type: endpoint.type, ...seenBody(endpoint, template) }
}

function seenBody(
  endpoint: KeptConfiguration['endpoint'],
  template: KeptConfiguration['template'],
): Omit<ReleaseConfiguration, 'type'> {
  const { compute } = endpoint
  return {
    ...(compute.kind === 'gpu' ? { gpu: gpuBody(compute) } : { cpu: cpuBody(compute) }),
    dataCenterIds: [...endpoint.locations],
    networkVolumes: [...endpoint.networkVolumeIds],
    modelReferences: [...endpoint.modelReferences],
    flashboot: endpoint.flashboot,
    args: template.args,
    disk: template.diskGb,
    env: savedEnv(endpoint, template),
    image: template.image,
    ports: [...template.ports],
    registry: template.registry,
  }
}

function requestUrls(endpoint: Endpoint, template: Template, addresses: Addresses): EndpointBody['requestUrls'] {
  if (endpoint.type === 'LOAD_BALANCER') {
    const base = balancedUrl(addresses, endpoint.id)
    return { base, health: `${base}${shownHealthPath({ ...template.env, ...endpoint.env })}` }
  }
  const base = `${addresses.queueUrl}/v2/${endpoint.id}`
  return {
    run: `${base}/run`,
    runSync: `${base}/runsync`,
    status: `${base}/status/{job_id}`,
    stream: `${base}/stream/{job_id}`,
    cancel: `${base}/cancel/{job_id}`,
    retry: `${base}/retry/{job_id}`,
    purgeQueue: `${base}/purge-queue`,
    health: `${base}/health`,
  }
}

function gpuBody(gpu: Extract<Endpoint['compute'], { kind: 'gpu' }>): NonNullable<EndpointBody['gpu']> {
  return {
    pools: [...gpu.pools],
    ...(gpu.excludedTypes.length > 0 ? { excludedTypes: [...gpu.excludedTypes] } : {}),
    count: gpu.count,
    allowedCudaVersions: [...gpu.allowedCudaVersions],
    minCudaVersion: gpu.minCudaVersion,
  }
}

function cpuBody(cpu: Extract<Endpoint['compute'], { kind: 'cpu' }>): NonNullable<EndpointBody['cpu']> {
  return cpu.configs.map(({ flavor, vcpuCount }) => ({ id: flavor, vcpuCount, memory: cpuMemoryGb(flavor, vcpuCount) }))
}

/** Queues that scale on requestCount have a fixed idle timeout, so the configured one is not shown. */
function workersBody({ type, scaler, workersMin, workersMax, idleTimeoutS }: Endpoint): EndpointBody['workers'] {
  const range = { min: workersMin, max: workersMax }
  return type === 'QUEUE' && scaler.type === 'REQUEST_COUNT' ? range : { ...range, idleTimeout: idleTimeoutS }
}

function scalingBody({ scaler }: Endpoint): EndpointBody['scaling'] {
  return scaler.type === 'QUEUE_DELAY'
    ? { type: scaler.type, queueDelay: scaler.queueDelayS }
    : { type: scaler.type, requestCount: scaler.requestCount }
}
