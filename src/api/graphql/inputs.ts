import type { Scaler } from '../../core/endpoint.ts'
import {
  type Compute,
  type CpuConfig,
  ENDPOINT_DEFAULTS,
  type EndpointConfig,
  type FlashBoot,
  parseGpuIds,
} from '../../core/endpoint.ts'
import type { TemplateInput } from '../../core/template.ts'

interface Variable {
  readonly key: string
  readonly value: string
}

type Given<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | null }

/** The input of saveEndpoint as clients send it; empty strings mean "none". */
export type EndpointInput = { readonly name: string } & Given<{
  id: string
  type: string
  templateId: string
  template: TemplateFields
  gpuIds: string
  gpuCount: number
  instanceIds: (string | null)[]
  allowedCudaVersions: string
  minCudaVersion: string
  locations: string
  networkVolumeId: string
  networkVolumeIds: ({ networkVolumeId?: string | null } | null)[]
  idleTimeout: number
  scalerType: string
  scalerValue: number
  workersMin: number
  workersMax: number
  executionTimeoutMs: number
  flashBootType: FlashBoot
  env: (Variable | null)[]
}>

/** The fields of a template as clients send them. */
export type TemplateFields = Given<{
  id: string
  name: string
  imageName: string
  dockerArgs: string
  containerDiskInGb: number
  volumeInGb: number
  volumeMountPath: string
  ports: string
  env: (Variable | null)[]
  readme: string
  isServerless: boolean
  containerRegistryAuthId: string
}>

/** What an input amounts to, with everything that is wrong with its form. */
export interface EndpointReading {
  readonly config: Partial<EndpointConfig>
  readonly failures: readonly string[]
}

/**
 * The configuration that an input gives; fields that it leaves out stay out.
 * @param before the endpoint that it changes; null when it makes one
 */
export function readEndpointInput(input: EndpointInput, before: EndpointConfig | null): EndpointReading {
  const failures: string[] = []
  const config: { -readonly [Name in keyof EndpointConfig]?: EndpointConfig[Name] } = { name: input.name }
  const type = readType(input.type, failures)
  if (type !== null) config.type = type
  const scaler = readScaler(input, config.type ?? before?.type ?? 'QUEUE', before?.scaler ?? null, failures)
  if (scaler !== null) config.scaler = scaler
  const compute = readCompute(input, before?.compute ?? null, failures)
  if (compute !== null) config.compute = compute
  if (input.workersMin != null) config.workersMin = input.workersMin
  if (input.workersMax != null) config.workersMax = input.workersMax
  if (input.idleTimeout != null) config.idleTimeoutS = input.idleTimeout
  if (input.executionTimeoutMs != null) config.executionTimeoutMs = input.executionTimeoutMs
  if (input.flashBootType != null) config.flashboot = input.flashBootType
  if (input.locations != null) config.locations = commaList(input.locations)
  if (input.env != null) config.env = readEnv(input.env)
  const volumes = readVolumes(input)
  if (volumes !== null) config.networkVolumeIds = volumes
  return { config, failures }
}

/** A whole configuration from an input that makes an endpoint, with the defaults of GraphQL. */
export function withDefaults(config: Partial<EndpointConfig> & { name: string; compute: Compute }): EndpointConfig {
  const { scaler, ...defaults } = ENDPOINT_DEFAULTS
  const type = config.type ?? defaults.type
  return { ...defaults, locations: [], networkVolumeIds: [], env: {}, scaler: scaler[type], ...config, type }
}

/** The fields of a template that an input gives; fields that it leaves out stay out. */
export function readTemplateFields(fields: TemplateFields): Partial<TemplateInput> {
  const input: { -readonly [Name in keyof TemplateInput]?: TemplateInput[Name] } = {}
  if (fields.name != null) input.name = fields.name
  if (fields.imageName != null) input.image = fields.imageName
  if (fields.dockerArgs != null) input.args = fields.dockerArgs
  if (fields.containerDiskInGb != null) input.diskGb = fields.containerDiskInGb
  if (fields.volumeInGb != null) input.volumeGb = fields.volumeInGb
  if (fields.volumeMountPath != null) input.volumeMountPath = fields.volumeMountPath
  if (fields.ports != null) input.ports = commaList(fields.ports)
  if (fields.env != null) input.env = readEnv(fields.env)
  if (fields.readme != null) input.readme = fields.readme
  if (fields.isServerless != null) input.isServerless = fields.isServerless
  if (fields.containerRegistryAuthId != null) input.registry = fields.containerRegistryAuthId || null
  return input
}

/** What a template gets where its creator says nothing. */
export const TEMPLATE_DEFAULTS = {
  ...{ args: '', volumeMountPath: '/workspace', env: {}, ports: [], readme: '', isServerless: false, registry: null },
} as const

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
  if (input.scalerType == null && input.scalerValue == null) return null
  const start = before ?? ENDPOINT_DEFAULTS.scaler[type]
  const name = input.scalerType || start.type
  if (name === 'QUEUE_DELAY') {
    const kept = start.type === name ? start.queueDelayS : ENDPOINT_DEFAULTS.scaler.QUEUE.queueDelayS
    return { type: name, queueDelayS: input.scalerValue ?? kept }
  }
  if (name === 'REQUEST_COUNT') {
    const kept = start.type === name ? start.requestCount : ENDPOINT_DEFAULTS.scaler.LOAD_BALANCER.requestCount
    return { type: name, requestCount: input.scalerValue ?? kept }
  }
  failures.push(`scalerType must be QUEUE_DELAY or REQUEST_COUNT, not '${name}'`)
  return null
}

function readCompute(input: EndpointInput, before: Compute | null, failures: string[]): Compute | null {
  if (input.instanceIds != null && input.instanceIds.length > 0) {
    return { kind: 'cpu', configs: input.instanceIds.flatMap(id => readInstance(id ?? '', failures)) }
  }
  const touched = [input.gpuIds, input.gpuCount, input.allowedCudaVersions, input.minCudaVersion].some(
    given => given != null,
  )
  const gpu = before?.kind === 'gpu' ? before : null
  if (!touched || (gpu === null && !input.gpuIds)) return null
  const selection = input.gpuIds ? parseGpuIds(input.gpuIds) : { pools: gpu!.pools, excludedTypes: gpu!.excludedTypes }
  return {
    kind: 'gpu',
    ...selection,
    count: input.gpuCount ?? gpu?.count ?? 1,
    allowedCudaVersions:
      input.allowedCudaVersions != null ? commaList(input.allowedCudaVersions) : (gpu?.allowedCudaVersions ?? []),
    minCudaVersion: input.minCudaVersion != null ? input.minCudaVersion || null : (gpu?.minCudaVersion ?? null),
  }
}

function readInstance(id: string, failures: string[]): CpuConfig[] {
  const parts = /^([a-z0-9]+)-([1-9]\d*)-([1-9]\d*)$/.exec(id)
  if (parts !== null) return [{ flavor: parts[1]!, vcpuCount: Number(parts[2]) }]
  failures.push(`instanceIds: '${id}' is not of the form flavor-vcpus-memory, such as cpu3g-4-16`)
  return []
}

function readVolumes(input: EndpointInput): string[] | null {
  if (input.networkVolumeIds != null) {
    return input.networkVolumeIds.map(volume => volume?.networkVolumeId ?? '').filter(id => id !== '')
  }
  if (input.networkVolumeId == null) return null
  return input.networkVolumeId === '' ? [] : [input.networkVolumeId]
}

function readEnv(variables: readonly (Variable | null)[]): Record<string, string> {
  return Object.fromEntries(variables.flatMap(variable => (variable === null ? [] : [[variable.key, variable.value]])))
}

function commaList(text: string): string[] {
  return text
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== '')
}
