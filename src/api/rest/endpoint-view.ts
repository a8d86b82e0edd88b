import { ENDPOINT_FIELDS, type Endpoint, hasIdleTimeout } from '../../core/endpoints/endpoint.ts'
import { namesWith, picked } from '../../core/endpoints/field.ts'
import type { KeptConfiguration } from '../../core/endpoints/release.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { shownHealthPath } from '../../core/endpoints/serving.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { cpuMemoryGb } from '../../core/hardware/catalog.ts'
import { type Addresses, balancedUrl, browserUrl } from '../addresses.ts'
import { restMembers } from '../dialect.ts'
import { ENDPOINT_MEMBERS } from '../endpoint-fields.ts'
import { CONTAINER_MEMBERS } from '../template-fields.ts'
import { type EndpointBody, RELEASED_MEMBERS, type ReleaseConfiguration } from './schemas/endpoint.ts'

const IMMEDIATE_MEMBERS = picked(ENDPOINT_MEMBERS, namesWith(ENDPOINT_FIELDS, ['at once']))

/** The full REST representation of an endpoint with the container configuration of its template. */
export function endpointBody(endpoint: Endpoint, template: Template, addresses: Addresses): EndpointBody {
  const { id, name, type } = endpoint
  const applies = (field: string) => ENDPOINT_FIELDS[field as keyof typeof ENDPOINT_FIELDS].applies(endpoint)
  const { timeout, domain, ...others } = restMembers(IMMEDIATE_MEMBERS, endpoint, applies)
  return {
    id,
    name,
    type,
    requestUrls: requestUrls(endpoint, template, addresses),
    ...(type === 'LOAD_BALANCER' ? { browserUrl: browserUrl(addresses, endpoint), domain } : {}),
    workers: workersBody(endpoint),
    ...(endpoint.workersMax > 0 || endpoint.pausedFrom === null ? {} : { pausedFrom: endpoint.pausedFrom }),
    scaling: scalingBody(endpoint),
    ...others,
    timeout,
    createdAt: new Date(endpoint.createdAtMs).toISOString(),
    ...auditedBody(endpoint, template),
  }
}

/** The configuration of a release. */
export function configurationBody({ endpoint, template }: KeptConfiguration): ReleaseConfiguration {
  return { type: endpoint.type, ...auditedBody(endpoint, template) }
}

function auditedBody(
  endpoint: KeptConfiguration['endpoint'],
  template: KeptConfiguration['template'],
): Omit<ReleaseConfiguration, 'type'> {
  const { compute } = endpoint
  const { flashboot, ...others } = restMembers(RELEASED_MEMBERS, endpoint)
  return {
    ...(compute.kind === 'gpu' ? { gpu: gpuBody(compute) } : { cpu: cpuBody(compute) }),
    ...others,
    flashboot,
    ...restMembers(CONTAINER_MEMBERS, { ...template, env: savedEnv(endpoint, template) }),
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
    ...(gpu.memoryGb === undefined ? {} : { memoryGb: gpu.memoryGb }),
  }
}

function cpuBody(cpu: Extract<Endpoint['compute'], { kind: 'cpu' }>): NonNullable<EndpointBody['cpu']> {
  return cpu.configs.map(({ flavor, vcpuCount }) => ({ id: flavor, vcpuCount, memory: cpuMemoryGb(flavor, vcpuCount) }))
}

/** Queues that scale on requestCount have a fixed idle timeout, so the configured one is not shown. */
function workersBody(endpoint: Endpoint): EndpointBody['workers'] {
  const range = { min: endpoint.workersMin, max: endpoint.workersMax }
  return hasIdleTimeout(endpoint) ? { ...range, idleTimeout: endpoint.idleTimeoutS } : range
}

function scalingBody({ scaler }: Endpoint): EndpointBody['scaling'] {
  return scaler.type === 'QUEUE_DELAY'
    ? { type: scaler.type, queueDelay: scaler.queueDelayS }
    : { type: scaler.type, requestCount: scaler.requestCount }
}
