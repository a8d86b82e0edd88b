import { type FieldProblem, fieldProblem, nameProblems, pairProblem } from '../field-problem.ts'
import { cpuProblems, gpuProblems, largestGpu, locationProblems } from '../hardware/catalog.ts'
import type { GpuType } from '../hardware/catalog-types.ts'
import type { EndpointId, OwnerId, TemplateId, VolumeId } from '../ids.ts'
import { MODEL_REFERENCE } from '../models/model-reference.ts'
import { listItems } from '../text-parts.ts'
import { domainProblem, type IsServerName, tidiedDomain } from './domain.ts'
import {
  type FieldTable,
  formProblems,
  immediate,
  integer,
  isIntegerIn,
  kept,
  lengthProblems,
  MAX_ITEMS,
  namesIn,
  problemsIn,
  released,
  type TableValues,
  tableDefaults,
} from './field.ts'
import type { WorkerRange } from './pause.ts'
import { cudaProblems, type Environment, envProblems, isSameEnv } from './template.ts'

/** `QUEUE` runs jobs, `LOAD_BALANCER` passes requests through. GraphQL calls them QB and LB. */
export type EndpointType = 'QUEUE' | 'LOAD_BALANCER'
/** Modes in which an idle worker is kept for a faster next start. */
export const FLASHBOOTS = ['OFF', 'FLASHBOOT', 'PRIORITY_FLASHBOOT'] as const
/** One of {@link FLASHBOOTS}. */
export type FlashBoot = (typeof FLASHBOOTS)[number]
/** Priorities of an endpoint beside others, the lowest first; see core/placement/pauses.ts. */
export const PRIORITIES = ['low', 'normal', 'high'] as const
/** One of {@link PRIORITIES}. */
export type Priority = (typeof PRIORITIES)[number]

/** The measure that decides the number of workers: the wait in the queue, in seconds, or the work per worker. */
export type Scaler =
  | { readonly type: 'QUEUE_DELAY'; readonly queueDelayS: number }
  | { readonly type: 'REQUEST_COUNT'; readonly requestCount: number }

/** Fields that define on what an endpoint scales. */
export interface Scaled {
  readonly type: EndpointType
  readonly scaler: Scaler
}

/** One CPU configuration that workers may get. */
export interface CpuConfig {
  readonly flavor: string
  readonly vcpuCount: number
}

/** The hardware that a worker needs. */
export type Compute =
  | {
      readonly kind: 'gpu'
      readonly pools: readonly string[]
      readonly excludedTypes: readonly string[]
      readonly count: number
      readonly allowedCudaVersions: readonly string[]
      readonly minCudaVersion: string | null
      /** Share of the memory of one GPU for each worker; absent for whole GPUs. */
      readonly memoryGb?: GpuShare
    }
  | { readonly kind: 'cpu'; readonly configs: readonly CpuConfig[] }

/** The hardware of a worker with GPUs. */
export type GpuCompute = Extract<Compute, { kind: 'gpu' }>

/** A share of the memory of a GPU, in GB; `auto` for one that is learned from what workers use. */
export type GpuShare = number | 'auto'

/** Certificates that `compliance` can name. */
export const COMPLIANCE: readonly string[] = [
  ...['GDPR', 'ISO_IEC_27001', 'ISO_14001', 'PCI_DSS', 'HITRUST', 'SOC_1_TYPE_2', 'SOC_2_TYPE_2', 'SOC_3_TYPE_2'],
  ...['ITAR', 'FISMA_HIGH', 'HIPAA', 'RENEWABLE'],
]

/** Limit of workers that one endpoint may ask for. */
export const MAX_WORKERS = 1_000
/** The longest idle timeout, in seconds. */
export const MAX_IDLE_TIMEOUT_S = 3_600
/** Limits of a share of a GPU, in GB: a context alone takes half a GB. */
const MIN_SHARE_GB = 0.5
const MAX_SHARE_GB = 1_024
/** A day. */
const MAX_QUEUE_DELAY_S = 86_400

/**
 * The fields of an endpoint, the same behind every surface. `src/api/endpoint-fields.ts` has their names there, and
 * CONTRIBUTING.md the checklist of a new one.
 */
export const ENDPOINT_FIELDS = {
  name: immediate<string>(undefined, { check: nameProblems }),
  type: released<EndpointType>('QUEUE', 'type'),
  workersMin: immediate<number>(0, integer('workersMin', 0, MAX_WORKERS)),
  workersMax: immediate<number>(3, { check: mostProblems }),
  /** Seconds after which an idle worker ends; see {@link idleTimeoutMs}. */
  idleTimeoutS: immediate<number>(10, {
    ...integer('idleTimeoutS', 1, MAX_IDLE_TIMEOUT_S, 'seconds'),
    applies: hasIdleTimeout,
  }),
  /** Milliseconds of one attempt of a job. */
  executionTimeoutMs: immediate<number>(600_000, integer('executionTimeoutMs', 5_000, 7 * 86_400_000, 'milliseconds')),
  /** Must fit the type, so a release keeps it. */
  scaler: kept<Scaler>(undefined, { check: scalerProblems }),
  compute: released<Compute>(undefined, listedCompute, { check: computeProblems }),
  /** Country codes and data centers, as they were given; empty means anywhere. */
  locations: released<readonly string[]>([], 'dataCenterIds', { check: locationProblems }),
  /** The first one contains the files of workers. */
  networkVolumeIds: released<readonly VolumeId[]>([], 'networkVolumes', { check: volumeProblems }),
  flashboot: released<FlashBoot>('OFF', 'flashboot'),
  /** Order of its workers beside those of other endpoints where the machine has too little room for all. */
  priority: immediate<Priority>('normal', { check: priorityProblems }),
  /** True if workers may be paused in the middle of a job for an endpoint of higher priority; for queues alone. */
  preemptible: immediate<boolean>(false, { check: preemptibleProblems, applies: isQueue }),
  /** Models that workers expect on their disk, as they were given; see `core/models/model-reference.ts`. */
  modelReferences: released<readonly string[]>([], 'modelReferences', { check: modelProblems }),
  /** Origins of web pages that may call its job operations, besides the server's; `*` for all. {@link isPageOrigin} */
  corsOrigins: immediate<readonly string[]>([], { check: originProblems }),
  /** The own host name of a load-balancing endpoint, besides its usual addresses; see domain.ts. Null without one. */
  domain: immediate<string | null>(null, { applies: isLoadBalancing }),
  /** Certificates that data centers should have. Kept for clients; no data center here declares any. */
  compliance: immediate<readonly string[]>([], { check: complianceProblems }),
  /** Kept for clients and without an effect. */
  workersPfbTarget: immediate<number>(0, integer('workersPfbTarget', 0, MAX_WORKERS)),
  /** As `workersPfbTarget`. */
  flashEnvironmentId: immediate<string | null>(null),
  /** True for a task: one worker, which runs once, and is no endpoint for clients; see task.ts. */
  runsOnce: immediate<boolean>(false),
  /** Of a task that a worker started: the endpoints and tasks from the first one to that of the worker. */
  starters: immediate<readonly EndpointId[]>([]),
  /** The numbers of workers before a pause; see pause.ts. Set by the server alone. */
  pausedFrom: immediate<WorkerRange | null>(null),
  /** Variables of this endpoint alone; they win over the template's. A release lists each variable. */
  env: released<Environment>({}, null, { audited: 'names', check: envProblems }),
} satisfies FieldTable

/** The configuration of an endpoint: a value of each of {@link ENDPOINT_FIELDS}. */
export interface EndpointConfig extends TableValues<typeof ENDPOINT_FIELDS> {}

/** An endpoint as the store keeps it. `version` grows with each change that workers must see. */
export interface Endpoint extends EndpointConfig {
  readonly id: EndpointId
  readonly owner: OwnerId
  readonly templateId: TemplateId
  readonly version: number
  readonly createdAtMs: number
}

/**
 * The memory of the average execution time: the first jobs count alike, and each later one moves it by this part of
 * the difference.
 */
export const MEASURED_JOBS = 30

/** Counters of an endpoint since its creation, and measurements of its jobs. */
export interface EndpointCounters {
  readonly completed: number
  readonly failed: number
  readonly retried: number
  /**
   * Moving average of execution times in milliseconds, with a memory of {@link MEASURED_JOBS}; null before the first
   * result.
   */
  readonly averageExecutionMs: number | null
}

/** Defaults of an endpoint through GraphQL. */
export const ENDPOINT_DEFAULTS = tableDefaults(ENDPOINT_FIELDS) as Omit<EndpointConfig, 'name' | 'compute' | 'scaler'>

/** Default scaler of an endpoint, by type. */
export const SCALER_DEFAULTS = {
  QUEUE: { type: 'QUEUE_DELAY', queueDelayS: 4 },
  LOAD_BALANCER: { type: 'REQUEST_COUNT', requestCount: 4 },
} as const

/** A complete configuration from the fields that its creator gives. */
export function withDefaults(config: Partial<EndpointConfig> & { name: string; compute: Compute }): EndpointConfig {
  return { ...ENDPOINT_DEFAULTS, scaler: SCALER_DEFAULTS[config.type ?? ENDPOINT_DEFAULTS.type], ...config }
}

/**
 * All problems of a configuration, or of those of its fields that are given.
 * @param local GPU types of this machine, which the catalog may not contain; null while they are not known: then
 * excluded types are not looked up
 */
export function endpointProblems(
  config: Partial<EndpointConfig>,
  local: readonly Pick<GpuType, 'id' | 'pool' | 'memoryGb'>[] | null = [],
): FieldProblem[] {
  return problemsIn(ENDPOINT_FIELDS, { ...config, local })
}

/**
 * The configuration in its stored form: names of types without blanks around them, and a domain in its one spelling.
 */
export function tidied<Config extends Pick<EndpointConfig, 'compute' | 'domain'>>(given: Config): Config {
  const config = { ...given, domain: tidiedDomain(given.domain) }
  const { compute } = config
  if (compute.kind === 'cpu') return config
  const trimmed = (texts: readonly string[]) => texts.map(text => text.trim())
  const { pools, excludedTypes } = compute
  return { ...config, compute: { ...compute, pools: trimmed(pools), excludedTypes: trimmed(excludedTypes) } }
}

/**
 * The reason why an endpoint cannot change from one type to the other now, as a sentence; null when it can.
 * @param unfinished the number of its jobs that wait or run
 */
export function typeChangeProblem(previous: Endpoint, next: EndpointConfig, unfinished: number): string | null {
  if (previous.type === next.type || unfinished === 0) return null
  return `the type of endpoint ${previous.id} cannot change while it has unfinished jobs`
}

/**
 * Problems of the domain of an endpoint: its form, a name of the server, an endpoint with a queue.
 * @param previous the configuration before a change; its domain is not checked again, since the names of
 * the server may have changed
 */
export function domainProblems(
  { domain, type }: Pick<EndpointConfig, 'domain' | 'type'>,
  previous: Pick<EndpointConfig, 'domain'> | null,
  isServerName: IsServerName,
): FieldProblem[] {
  if (domain === null) return []
  if (type === 'QUEUE') {
    return [fieldProblem('domain', 'is for load-balancing endpoints; jobs are called at the address of the server')]
  }
  const problem = previous?.domain === domain ? null : domainProblem(domain, isServerName)
  return problem === null ? [] : [fieldProblem('domain', problem, `'${domain}'`)]
}

/**
 * The share of a GPU as a member of the hardware of an endpoint.
 * @param given null for whole GPUs, undefined to keep the share
 * @param before the present hardware; null for a new endpoint
 */
export function gpuShare(given: GpuShare | null | undefined, before: Compute | null = null): { memoryGb?: GpuShare } {
  const kept = before?.kind === 'gpu' ? before.memoryGb : undefined
  const memoryGb = given === undefined ? kept : (given ?? undefined)
  return memoryGb === undefined ? {} : { memoryGb }
}

/** The problem of an idle timeout that a request sets although it would have no effect. */
export function idleTimeoutProblems({ type, scaler }: Partial<EndpointConfig>): FieldProblem[] {
  if (type === undefined || scaler === undefined || hasIdleTimeout({ type, scaler })) return []
  return [fieldProblem('idleTimeoutS', 'does not apply to a queue that scales on requestCount; leave it out')]
}

/** True if the endpoint's own idleTimeout has an effect. Queues that scale on requestCount have a fixed one. */
export function hasIdleTimeout({ type, scaler }: Scaled): boolean {
  return type !== 'QUEUE' || scaler.type !== 'REQUEST_COUNT'
}

/**
 * Milliseconds after which an idle worker ends: 5 seconds for queues that scale on requestCount, else the
 * endpoint's own.
 */
export function idleTimeoutMs(config: EndpointConfig): number {
  return (hasIdleTimeout(config) ? config.idleTimeoutS : 5) * 1000
}

/** True for a change of an endpoint after which its workers must be replaced. */
export function workersMustSee(previous: EndpointConfig, next: EndpointConfig): boolean {
  const text = (value: unknown) => JSON.stringify(value)
  const isSame = (name: keyof EndpointConfig) =>
    name === 'env' ? isSameEnv(previous.env, next.env) : text(previous[name]) === text(next[name])
  return namesIn(ENDPOINT_FIELDS).some(name => ENDPOINT_FIELDS[name].change === 'release' && !isSame(name))
}

/**
 * Pools and excluded types of a GraphQL `gpuIds` list, in which a leading hyphen takes a type out.
 * @throws AppError `invalid` if there are too many
 */
export function parseGpuIds(gpuIds: string): { pools: string[]; excludedTypes: string[] } {
  const items = listItems(gpuIds, ',')
  return {
    pools: items.filter(item => !item.startsWith('-')),
    excludedTypes: items.filter(item => item.startsWith('-')).map(item => item.slice(1).trim()),
  }
}

/** The `gpuIds` list of pools and excluded types; null for CPU endpoints. */
export function formatGpuIds(compute: Compute): string | null {
  if (compute.kind === 'cpu') return null
  return [...compute.pools, ...compute.excludedTypes.map(type => `-${type}`)].join(',')
}

function priorityProblems(priority: Priority): FieldProblem[] {
  const isKnown = PRIORITIES.includes(priority)
  return isKnown ? [] : [fieldProblem('priority', `must be one of ${PRIORITIES.join(', ')}`, `${priority}`)]
}

/** The connections of requests do not outlive a pause, so only jobs are paused. */
function preemptibleProblems(preemptible: boolean, { type }: { readonly type?: EndpointType }): FieldProblem[] {
  if (!preemptible || type !== 'LOAD_BALANCER') return []
  return [fieldProblem('preemptible', 'is for endpoints with a queue; requests are not paused')]
}

function isQueue({ type }: Pick<Scaled, 'type'>): boolean {
  return type === 'QUEUE'
}

function isLoadBalancing({ type }: Pick<Scaled, 'type'>): boolean {
  return type === 'LOAD_BALANCER'
}

/** Problems of `workersMax`, also beside `workersMin`. */
function mostProblems(most: number, { workersMin: least }: { readonly workersMin?: number }): FieldProblem[] {
  const { check } = integer('workersMax', 0, MAX_WORKERS)
  if (least === undefined || least <= most) return check(most, {})
  const problem = pairProblem('workersMin', 'workersMax', `must not exceed {other} (${most})`)
  return [...check(most, {}), { ...problem, value: `${least}` }]
}

function scalerProblems(scaler: Scaler, { type }: { readonly type?: EndpointType }): FieldProblem[] {
  if (scaler.type === 'REQUEST_COUNT') {
    return isIntegerIn(scaler.requestCount, 1, 1_000_000)
      ? []
      : [fieldProblem('scaler.requestCount', 'must be an integer of at least 1 for REQUEST_COUNT')]
  }
  if (type === 'LOAD_BALANCER')
    return [fieldProblem('scaler.type', 'must be REQUEST_COUNT for a load-balancing endpoint')]
  if (scaler.queueDelayS > MAX_QUEUE_DELAY_S) {
    return [fieldProblem('scaler.queueDelayS', `must be at most ${MAX_QUEUE_DELAY_S} seconds for QUEUE_DELAY`)]
  }
  return scaler.queueDelayS >= 0.5
    ? []
    : [fieldProblem('scaler.queueDelayS', 'must be at least 0.5 seconds for QUEUE_DELAY')]
}

/** @param local see {@link endpointProblems} */
function computeProblems(
  compute: Compute,
  { local = [] }: { readonly local?: readonly Pick<GpuType, 'id' | 'pool' | 'memoryGb'>[] | null },
): FieldProblem[] {
  if (compute.kind === 'cpu') return cpuListProblems(compute.configs)
  const { pools, excludedTypes, count, allowedCudaVersions, minCudaVersion, memoryGb } = compute
  const problems = gpuProblems(pools, excludedTypes, local)
  if (memoryGb !== undefined) problems.push(...shareProblems(memoryGb, count, largestGpu(pools, excludedTypes, local)))
  problems.push(...integer('compute.count', 1, 64).check(count, {}))
  problems.push(...cudaProblems('compute.allowedCudaVersions', allowedCudaVersions))
  problems.push(...cudaProblems('compute.minCudaVersion', minCudaVersion === null ? [] : [minCudaVersion]))
  if (allowedCudaVersions.length > 0 && minCudaVersion !== null) {
    const problem = 'excludes {other}; one of them must be empty'
    problems.push(pairProblem('compute.allowedCudaVersions', 'compute.minCudaVersion', problem))
  }
  return problems
}

/** @param largestGb memory of the largest GPU of the endpoint, in GB; null if unknown */
function shareProblems(memoryGb: GpuShare, count: number, largestGb: number | null): FieldProblem[] {
  const name = 'compute.memoryGb'
  const several = count === 1 ? [] : [pairProblem(name, 'compute.count', 'is a share of one GPU, so {other} must be 1')]
  if (memoryGb === 'auto') return several
  if (!(memoryGb >= MIN_SHARE_GB && memoryGb <= MAX_SHARE_GB)) {
    return [fieldProblem(name, `must be from ${MIN_SHARE_GB} to ${MAX_SHARE_GB} GB`, `${memoryGb}`)]
  }
  if (!Number.isInteger(memoryGb * 1024)) return [fieldProblem(name, 'must be a whole number of MiB', `${memoryGb}`)]
  if (largestGb === null || memoryGb <= largestGb) return several
  const limit = `must be at most ${largestGb} GB, the memory of the largest GPU`
  return [...several, fieldProblem(name, limit, `${memoryGb}`)]
}

function cpuListProblems(configs: readonly CpuConfig[]): FieldProblem[] {
  if (configs.length === 0) return [fieldProblem('compute.configs', 'must name at least one CPU configuration')]
  if (configs.length > MAX_ITEMS) return lengthProblems('compute.configs', configs)
  const twice = repeated(configs.map(({ flavor, vcpuCount }) => `${flavor} with ${vcpuCount} vCPUs`))
  return [
    ...configs.flatMap(config => cpuProblems(config.flavor, config.vcpuCount)),
    ...twice.map(config => fieldProblem('compute.configs', 'is given twice', config)),
  ]
}

/** Hardware in the list of changes of a release. */
function listedCompute(compute: Compute): Record<string, unknown> {
  if (compute.kind === 'cpu') return { cpu: compute.configs.map(({ flavor: id, vcpuCount }) => ({ id, vcpuCount })) }
  const { kind: _, ...gpu } = compute
  return { gpu }
}

function volumeProblems(ids: readonly VolumeId[]): FieldProblem[] {
  const twice = repeated(ids).map(id => fieldProblem('networkVolumeIds', 'is given twice', `'${id}'`))
  return [...lengthProblems('networkVolumeIds', ids), ...twice]
}

function modelProblems(models: readonly string[]): FieldProblem[] {
  const hasForm = (model: string) => MODEL_REFERENCE.test(model)
  return [
    ...lengthProblems('modelReferences', models),
    ...formProblems('modelReferences', models, hasForm, REFERENCE_FORM),
  ]
}

function originProblems(origins: readonly string[]): FieldProblem[] {
  return [...lengthProblems('corsOrigins', origins), ...formProblems('corsOrigins', origins, isPageOrigin, ORIGIN_FORM)]
}

function complianceProblems(names: readonly string[]): FieldProblem[] {
  const form = `is not known; known are ${COMPLIANCE.join(', ')}`
  return formProblems('compliance', names, name => COMPLIANCE.includes(name), form)
}

/** True for the origin of web pages, such as `https://app.example`, as browsers send it, or `*` for all pages. */
export function isPageOrigin(text: string): boolean {
  if (text === '*') return true
  return /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text
}

const ORIGIN_FORM = 'is not an origin of web pages such as https://app.example, without a path, or * for all'

const REFERENCE_FORM =
  'is not of the form owner/name or owner/name:revision, as it is or behind https://huggingface.co/'

function repeated(items: readonly string[]): string[] {
  return [...new Set(items.filter((item, index) => items.indexOf(item) !== index))]
}
