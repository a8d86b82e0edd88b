import { ENDPOINT_DEFAULTS } from '../../core/endpoints/endpoint.ts'
import { servingFailures } from '../../core/endpoints/serving.ts'
import { envFailures, portFailures } from '../../core/endpoints/template.ts'
import { cpuFailures, gpuFailures, locationFailures } from '../../core/hardware/catalog.ts'
import type { Members, Rule } from './route.ts'
import type { CreateEndpoint, UpdateEndpoint } from './schemas/endpoint.ts'

type Created = Partial<Members<typeof CreateEndpoint>>
type Changed = Partial<Members<typeof UpdateEndpoint>>

/** What holds for a container configuration wherever it is sent. */
export const containerRules: readonly Rule<Record<never, never>>[] = [
  ({ env }: { env?: Readonly<Record<string, string>> }) => under('$.env', envFailures(env ?? {})),
  ({ ports }: { ports?: readonly string[] }) => under('$.ports', portFailures(ports ?? [])),
]

/** What holds between the members of a request that makes an endpoint. */
export const createRules: readonly Rule<typeof CreateEndpoint>[] = [
  (_, sent) =>
    sent.has('image') || sent.has('templateId') ? [] : ['$.image: is required where there is no templateId'],
  (_, sent) => (sent.has('gpu') === sent.has('cpu') ? ['$: exactly one of gpu and cpu is needed'] : []),
  ({ type, scaling }) =>
    type === 'LOAD_BALANCER' && scaling?.type === 'QUEUE_DELAY'
      ? ['$.scaling.type: must be REQUEST_COUNT for a load-balancing endpoint']
      : [],
  ({ type, scaling, workers }) =>
    type === 'QUEUE' && scaling?.type === 'REQUEST_COUNT' && workers?.idleTimeout !== undefined
      ? [NO_IDLE_TIMEOUT]
      : [],
  ({ workers }) =>
    rangeFailures(workers?.min ?? ENDPOINT_DEFAULTS.workersMin, workers?.max ?? ENDPOINT_DEFAULTS.workersMax),
  ({ gpu }) => (gpu === undefined ? [] : [...selectionFailures(gpu.pools, gpu.excludedTypes), ...cudaFailures(gpu)]),
  ({ cpu }) => cpuListFailures(cpu),
  ({ dataCenterIds }) => under('$.dataCenterIds', locationFailures(dataCenterIds ?? [])),
  ({ type, env }) => (type === 'LOAD_BALANCER' ? under('$.env', servingFailures(env ?? {})) : []),
]

/** As much of {@link createRules} as a document can say. */
export const createKeywords = {
  allOf: [
    { oneOf: [{ required: ['gpu'] }, { required: ['cpu'] }] },
    { anyOf: [{ required: ['image'] }, { required: ['templateId'] }] },
  ],
}

/** What holds between the members of a request that changes an endpoint; the rest depends on the endpoint itself. */
export const updateRules: readonly Rule<typeof UpdateEndpoint>[] = [
  (_, sent) => (sent.has('gpu') && sent.has('cpu') ? ['$: only one of gpu and cpu can be changed'] : []),
  ({ workers }) =>
    workers?.min === undefined || workers.max === undefined ? [] : rangeFailures(workers.min, workers.max),
  ({ gpu }) => (gpu === undefined ? [] : [...changedSelectionFailures(gpu), ...cudaFailures(gpu)]),
  ({ cpu }) => cpuListFailures(cpu),
  ({ dataCenterIds }) => under('$.dataCenterIds', locationFailures(dataCenterIds ?? [])),
]

/** As much of {@link updateRules} as a document can say. */
export const updateKeywords = { not: { required: ['gpu', 'cpu'] } }

/** Why an idle timeout is refused for a queue that scales on requestCount. */
export const NO_IDLE_TIMEOUT =
  '$.workers.idleTimeout: does not apply to a queue that scales on requestCount; leave it out'

/** What is wrong with a range of workers. */
export function rangeFailures(min: number, max: number): string[] {
  return min > max ? [`$.workers.min: ${min} must not exceed workers.max, which is ${max}`] : []
}

function selectionFailures(pools: readonly string[], excludedTypes: readonly string[] | undefined): string[] {
  return under('$.gpu', gpuFailures(pools, excludedTypes ?? []))
}

function changedSelectionFailures({ pools, excludedTypes }: NonNullable<Changed['gpu']>): string[] {
  if (pools !== undefined) return selectionFailures(pools, excludedTypes)
  return excludedTypes === undefined ? [] : ['$.gpu.excludedTypes: needs gpu.pools beside it']
}

function cudaFailures(gpu: NonNullable<Changed['gpu']>): string[] {
  const both = (gpu.allowedCudaVersions?.length ?? 0) > 0 && (gpu.minCudaVersion ?? '') !== ''
  return both ? ['$.gpu: allowedCudaVersions and minCudaVersion exclude each other'] : []
}

function cpuListFailures(cpu: Created['cpu']): string[] {
  const configs = cpu ?? []
  const seen = new Set(configs.map(({ id, vcpuCount }) => `${id} ${vcpuCount}`))
  return [
    ...(seen.size < configs.length ? ['$.cpu: must not have an item twice'] : []),
    ...configs.flatMap(({ id, vcpuCount }, index) => under(`$.cpu[${index}]`, cpuFailures(id, vcpuCount))),
  ]
}

/** Sentences with the path of their member in front. */
export function under(path: string, failures: readonly string[]): string[] {
  return failures.map(failure => `${path}: ${failure}`)
}
