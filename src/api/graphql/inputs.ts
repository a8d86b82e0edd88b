import {
  type Compute,
  type CpuConfig,
  type EndpointConfig,
  type GpuShare,
  gpuShare,
  parseGpuIds,
  SCALER_DEFAULTS,
  type Scaler,
} from '../../core/endpoints/endpoint.ts'
import { parseInstanceId } from '../../core/endpoints/instance-id.ts'
import type { TemplateInput } from '../../core/endpoints/template.ts'
import type { VolumeId } from '../../core/ids.ts'
import { listItems } from '../../core/text-parts.ts'
import { readFields } from '../dialect.ts'
import { ENDPOINT_MEMBERS } from '../endpoint-fields.ts'
import { TEMPLATE_MEMBERS } from '../template-fields.ts'

/** Fields that may be left out or null. */
export type NullableFields<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | null }

/** The hand-made members of a template in saveTemplate and saveEndpoint, as clients send them. */
export type SaveTemplateFields = NullableFields<{
  id: string
  volumeInGb: number
  isServerless: boolean
  startScript: string
}>

/** The hand-made members of the input of saveEndpoint as clients send it; an empty string removes a value. */
export type EndpointInput = { readonly name: string } & NullableFields<{
  id: string
  type: string
  templateId: string
  template: SaveTemplateFields
  gpuIds: string
  gpuCount: number
  gpuMemoryGb: number
  gpuMemoryAuto: boolean
  instanceIds: (string | null)[]
  allowedCudaVersions: string
  minCudaVersion: string
  networkVolumeId: string
  networkVolumeIds: (NullableFields<{ networkVolumeId: string }> | null)[]
  volumes: (NullableFields<{ volumeId: string; volumeType: string }> | null)[]
  scalerType: string
  scalerValue: number
  modelName: string
  hubReleaseId: string
  repo: unknown
  cloudStorageConfig: unknown
}>

/** An endpoint as an input gives it, with all problems of its form. */
export interface EndpointReading {
  readonly config: Partial<EndpointConfig>
  readonly failures: readonly string[]
}

/**
 * The configuration in an input. Omitted fields stay omitted.
 * @param before the endpoint to change; null for a new one
 */
export function readEndpointInput(input: EndpointInput, before: EndpointConfig | null): EndpointReading {
  const failures: string[] = [...unsupportedFields(input)]
  const config: { -readonly [Name in keyof EndpointConfig]?: EndpointConfig[Name] } = readFields<EndpointConfig>(
    ENDPOINT_MEMBERS,
    'graphql',
    input,
  )
  const type = readType(input.type, failures)
  if (type !== null) config.type = type
  const scaler = readScaler(input, config.type ?? before?.type ?? 'QUEUE', before?.scaler ?? null, failures)
  if (scaler !== null) config.scaler = scaler
  const compute = readCompute(input, before?.compute ?? null, failures)
  if (compute !== null) config.compute = compute
  const volumes = readVolumes(input)
  if (volumes !== null) config.networkVolumeIds = volumes
  return { config, failures }
}

function unsupportedFields(input: EndpointInput): string[] {
  return [
    ...(input.hubReleaseId ? ['hubReleaseId is not supported: there is no hub here'] : []),
    ...(input.modelName ? ['modelName is not supported; name models in modelReferences'] : []),
    ...(input.repo != null ? ['repo is not supported: images are not built here'] : []),
    ...(input.cloudStorageConfig != null ? ['cloudStorageConfig is not supported; use network volumes'] : []),
  ]
}

function readType(type: string | null | undefined, failures: string[]): EndpointConfig['type'] | null {
  if (type == null || type === '') return null
  if (type === 'QB' || type === 'LB') return type === 'QB' ? 'QUEUE' : 'LOAD_BALANCER'
  failures.push(`type must be QB or LB, not '${type}'`)
  return null
}

function readScaler(
  input: EndpointInput,
  type: EndpointConfig['type'],
  before: Scaler | null,
  failures: string[],
): Scaler | null {
  // Load-balancing endpoints have only one scaler, so an endpoint that becomes one gets it by default.
  const kept = before !== null && (type === 'QUEUE' || before.type === 'REQUEST_COUNT') ? before : null
  if (!input.scalerType && input.scalerValue == null) {
    return kept === before ? null : SCALER_DEFAULTS[type]
  }
  const start = kept ?? SCALER_DEFAULTS[type]
  const name = input.scalerType || start.type
  if (name === 'QUEUE_DELAY') {
    const delay = start.type === name ? start.queueDelayS : SCALER_DEFAULTS.QUEUE.queueDelayS
    return { type: name, queueDelayS: input.scalerValue ?? delay }
  }
  if (name === 'REQUEST_COUNT') {
    const count = start.type === name ? start.requestCount : SCALER_DEFAULTS.LOAD_BALANCER.requestCount
    return { type: name, requestCount: input.scalerValue ?? count }
  }
  failures.push(`scalerType must be QUEUE_DELAY or REQUEST_COUNT, not '${name}'`)
  return null
}

function readCompute(input: EndpointInput, before: Compute | null, failures: string[]): Compute | null {
  if (input.instanceIds != null && input.instanceIds.length > 0) {
    return { kind: 'cpu', configs: input.instanceIds.flatMap(id => readInstance(id ?? '', failures)) }
  }
  const { gpuIds, gpuCount, allowedCudaVersions, minCudaVersion } = input
  const share = readShare(input, failures)
  const touched = [gpuIds || null, gpuCount, share, allowedCudaVersions, minCudaVersion].some(given => given != null)
  const gpu = before?.kind === 'gpu' ? before : null
  if (!touched || (gpu === null && !gpuIds)) return null
  const selection = gpuIds ? parseGpuIds(gpuIds) : { pools: gpu!.pools, excludedTypes: gpu!.excludedTypes }
  return {
    kind: 'gpu',
    ...selection,
    count: gpuCount ?? gpu?.count ?? 1,
    // The two limits exclude each other: setting one clears the other.
    allowedCudaVersions:
      allowedCudaVersions != null
        ? listItems(allowedCudaVersions, ',')
        : minCudaVersion
          ? []
          : (gpu?.allowedCudaVersions ?? []),
    minCudaVersion:
      minCudaVersion != null ? minCudaVersion || null : allowedCudaVersions ? null : (gpu?.minCudaVersion ?? null),
    ...gpuShare(share === 0 ? null : share, gpu),
  }
}

/** The share of a GPU: 0 for whole GPUs, undefined if it is not given. */
function readShare({ gpuMemoryGb, gpuMemoryAuto }: EndpointInput, failures: string[]): GpuShare | undefined {
  if (gpuMemoryAuto !== true) return gpuMemoryGb ?? (gpuMemoryAuto === false ? 0 : undefined)
  if (gpuMemoryGb) failures.push('gpuMemoryAuto: true excludes gpuMemoryGb; leave one of them out')
  return 'auto'
}

function readInstance(id: string, failures: string[]): CpuConfig[] {
  const config = parseInstanceId(id)
  if (config !== null) return [config]
  failures.push(`instanceIds: '${id}' is not of the form flavor-vcpus-memory, such as cpu3g-4-16`)
  return []
}

/** The lists take precedence over the single value, which clients also send, empty. */
function readVolumes({ networkVolumeId, networkVolumeIds, volumes }: EndpointInput): VolumeId[] | null {
  const listed = [
    ...(networkVolumeIds ?? []).flatMap(volume => volume?.networkVolumeId || []),
    ...(volumes ?? []).flatMap(volume => volume?.volumeId || []),
  ]
  if (listed.length > 0) return listed as VolumeId[]
  if (networkVolumeId) return [networkVolumeId as VolumeId]
  return networkVolumeId == null && networkVolumeIds == null ? null : []
}

/** A template as an input gives it, with all problems of its form. */
export interface TemplateReading {
  readonly template: Partial<TemplateInput>
  readonly failures: readonly string[]
}

/** The template fields of an input. Omitted fields stay omitted. */
export function readTemplateFields(fields: SaveTemplateFields): TemplateReading {
  const template = readFields<TemplateInput>(TEMPLATE_MEMBERS, 'graphql', fields)
  return { template, failures: fields.startScript ? [NO_START_SCRIPT] : [] }
}

const NO_START_SCRIPT = 'startScript is not supported; put what it does into dockerArgs or the image'
