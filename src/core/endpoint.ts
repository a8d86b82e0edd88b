import { cpuFailures, gpuFailures, locationFailures } from './catalog.ts'
import type { EndpointId, OwnerId, TemplateId } from './ids.ts'
import { envFailures } from './template.ts'

/** `QUEUE` runs jobs, `LOAD_BALANCER` passes requests through. GraphQL calls them QB and LB. */
export type EndpointType = 'QUEUE' | 'LOAD_BALANCER'
/** How an idle worker is kept for a faster next start. */
export type FlashBoot = 'OFF' | 'FLASHBOOT' | 'PRIORITY_FLASHBOOT'

/** What decides the number of workers: the wait in the queue, in seconds, or the work per worker. */
export type Scaler =
  | { readonly type: 'QUEUE_DELAY'; readonly queueDelayS: number }
  | { readonly type: 'REQUEST_COUNT'; readonly requestCount: number }

/** One CPU configuration that workers may get. */
export interface CpuConfig {
  readonly flavor: string
  readonly vcpuCount: number
}

/** What hardware a worker needs. */
export type Compute =
  | {
      readonly kind: 'gpu'
      readonly pools: readonly string[]
      readonly excludedTypes: readonly string[]
      readonly count: number
      readonly allowedCudaVersions: readonly string[]
      readonly minCudaVersion: string | null
    }
  | { readonly kind: 'cpu'; readonly configs: readonly CpuConfig[] }

/** The configuration of an endpoint, the same behind every surface. Seconds and milliseconds as the names say. */
export interface EndpointConfig {
  readonly name: string
  readonly type: EndpointType
  readonly compute: Compute
  readonly workersMin: number
  readonly workersMax: number
  readonly idleTimeoutS: number
  readonly scaler: Scaler
  /** Country codes and data centers, as they were given; empty means anywhere. */
  readonly locations: readonly string[]
  readonly networkVolumeIds: readonly string[]
  readonly executionTimeoutMs: number
  readonly flashboot: FlashBoot
  /** Variables of this endpoint alone; they win over the template's. */
  readonly env: Readonly<Record<string, string>>
}

/** An endpoint as the store keeps it. `version` grows with each change that workers must see. */
export interface Endpoint extends EndpointConfig {
  readonly id: EndpointId
  readonly owner: OwnerId
  readonly templateId: TemplateId
  readonly version: number
  readonly createdAtMs: number
}

/** Counters of an endpoint since its creation, and what is measured of its jobs. */
export interface EndpointCounters {
  readonly completed: number
  readonly failed: number
  readonly retried: number
  /** Moving average of execution times in milliseconds; null before the first result. */
  readonly averageExecutionMs: number | null
}

/** Most workers that one endpoint may ask for. */
export const MAX_WORKERS = 1_000

/** What an endpoint gets where its creator says nothing, through GraphQL. */
export const ENDPOINT_DEFAULTS = {
  type: 'QUEUE',
  workersMin: 0,
  workersMax: 3,
  idleTimeoutS: 10,
  executionTimeoutMs: 600_000,
  flashboot: 'OFF',
  scaler: { QUEUE: { type: 'QUEUE_DELAY', queueDelayS: 4 }, LOAD_BALANCER: { type: 'REQUEST_COUNT', requestCount: 4 } },
} as const

/** Everything wrong with a whole configuration, one sentence each, with the names that GraphQL uses. */
export function endpointFailures(config: EndpointConfig): string[] {
  const { workersMin, workersMax, idleTimeoutS, executionTimeoutMs } = config
  const failures: string[] = []
  if (config.name.trim().length < 1) failures.push('name must not be empty')
  if (config.name.length > 191) failures.push('name must have at most 191 characters')
  if (!isIntegerIn(workersMin, 0, MAX_WORKERS)) failures.push(`workersMin must be an integer from 0 to ${MAX_WORKERS}`)
  if (!isIntegerIn(workersMax, 0, MAX_WORKERS)) failures.push(`workersMax must be an integer from 0 to ${MAX_WORKERS}`)
  if (workersMin > workersMax) failures.push(`workersMin (${workersMin}) must not exceed workersMax (${workersMax})`)
  if (!isIntegerIn(idleTimeoutS, 1, 3600)) failures.push('idleTimeout must be an integer from 1 to 3600 seconds')
  if (!isIntegerIn(executionTimeoutMs, 5_000, 7 * 86_400_000)) {
    failures.push('executionTimeoutMs must be an integer from 5000 to 604800000 milliseconds')
  }
  return [
    ...failures,
    ...scalerFailures(config),
    ...computeFailures(config.compute),
    ...locationFailures(config.locations),
    ...envFailures(config.env),
  ]
}

/** Seconds after which an idle worker ends: 5 for queues that scale on requestCount, else the endpoint's own. */
export function idleTimeoutMs(config: EndpointConfig): number {
  const fixed = config.type === 'QUEUE' && config.scaler.type === 'REQUEST_COUNT'
  return (fixed ? 5 : config.idleTimeoutS) * 1000
}

/** Whether workers have to be replaced when an endpoint changes from one configuration to the other. */
export function workersMustSee(before: EndpointConfig, after: EndpointConfig): boolean {
  const seen = (config: EndpointConfig) =>
    JSON.stringify([
      config.type,
      config.compute,
      config.locations,
      config.networkVolumeIds,
      Object.entries(config.env).sort(),
      config.flashboot,
    ])
  return seen(before) !== seen(after)
}

/** Pools and excluded types of a GraphQL `gpuIds` list, in which a leading hyphen takes a type out. */
export function parseGpuIds(gpuIds: string): { pools: string[]; excludedTypes: string[] } {
  const items = gpuIds.split(',').map(item => item.trim())
  return {
    pools: items.filter(item => item !== '' && !item.startsWith('-')),
    excludedTypes: items.filter(item => item.startsWith('-')).map(item => item.slice(1).trim()),
  }
}

/** The `gpuIds` list of pools and excluded types; null for CPU endpoints. */
export function formatGpuIds(compute: Compute): string | null {
  if (compute.kind === 'cpu') return null
  return [...compute.pools, ...compute.excludedTypes.map(type => `-${type}`)].join(',')
}

function scalerFailures({ scaler, type }: EndpointConfig): string[] {
  if (scaler.type === 'REQUEST_COUNT') {
    return isIntegerIn(scaler.requestCount, 1, 1_000_000)
      ? []
      : ['scalerValue must be an integer of at least 1 for REQUEST_COUNT']
  }
  if (type === 'LOAD_BALANCER') return ['scalerType must be REQUEST_COUNT for a load-balancing endpoint']
  return scaler.queueDelayS >= 0.5 && scaler.queueDelayS <= 86_400
    ? []
    : ['scalerValue must be at least 0.5 seconds for QUEUE_DELAY']
}

function computeFailures(compute: Compute): string[] {
  if (compute.kind === 'cpu') {
    if (compute.configs.length === 0) return ['instanceIds must name at least one CPU configuration']
    return compute.configs.flatMap(config => cpuFailures(config.flavor, config.vcpuCount))
  }
  const failures = gpuFailures(compute.pools, compute.excludedTypes)
  if (!isIntegerIn(compute.count, 1, 64)) failures.push('gpuCount must be an integer from 1 to 64')
  for (const version of [
    ...compute.allowedCudaVersions,
    ...(compute.minCudaVersion === null ? [] : [compute.minCudaVersion]),
  ]) {
    if (!/^\d+\.\d+$/.test(version)) failures.push(`CUDA version '${version}' is not of the form major.minor`)
  }
  return failures
}

function isIntegerIn(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max
}
