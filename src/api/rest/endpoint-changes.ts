import {
  type Compute,
  type CpuConfig,
  type EndpointConfig,
  gpuShare,
  type Scaler,
  withDefaults,
} from '../../core/endpoints/endpoint.ts'
import { namesIn, picked } from '../../core/endpoints/field.ts'
import { changedEnv, savedEnv } from '../../core/endpoints/saved-env.ts'
import type { Template, TemplateInput } from '../../core/endpoints/template.ts'
import { invalidRequest } from '../../core/errors.ts'
import type { TemplateId } from '../../core/ids.ts'
import { readFields } from '../dialect.ts'
import { ENDPOINT_MEMBERS } from '../endpoint-fields.ts'
import { CONTAINER_MEMBERS } from '../template-fields.ts'
import type { Members } from './route.ts'
import type { ContainerShape, CreateEndpoint, UpdateEndpoint } from './schemas/endpoint.ts'

type Created = Members<typeof CreateEndpoint>
type Changed = Members<typeof UpdateEndpoint>

/** The requested configuration of a new endpoint. @param template the template that it starts from, if any */
export function newConfig(body: Created, template: Template | null): EndpointConfig {
  const { name, type } = body
  return withDefaults({ ...configFromBody(body), name, type, compute: newCompute(body, template) })
}

/**
 * The endpoint's own template. Sent members override the template that it starts from; `env` is merged by variable.
 */
export function newTemplate(body: Created, template: Template | null): Partial<TemplateInput> & { image: string } {
  return {
    ...(template === null ? {} : containerSettings(template)),
    ...containerChanges(body),
    env: { ...template?.env, ...body.env },
    image: body.image ?? template!.image,
  }
}

/** The endpoint fields of a request, without type and hardware. */
export function configFromBody(body: Omit<Partial<Changed>, 'gpu' | 'cpu'>): Partial<EndpointConfig> {
  const { scaling } = body
  return {
    ...readFields<EndpointConfig>(ENDPOINT_MEMBERS, 'rest', body),
    ...(scaling === undefined ? {} : { scaler: scaler(scaling) }),
  }
}

/** Problems of new CPU configurations: only GraphQL makes workers with one vCPU. */
export function newCpuProblems(cpu: Created['cpu'] = [], before: readonly CpuConfig[] = []): string[] {
  return cpu.flatMap(({ id, vcpuCount }, index) => {
    const isKnown = before.some(config => config.flavor === id && config.vcpuCount === vcpuCount)
    return vcpuCount >= 2 || isKnown ? [] : [`$.cpu[${index}].vcpuCount: must be at least 2`]
  })
}

/**
 * The requested changes.
 * @throws AppError `invalid` if the hardware is not of the endpoint's kind (GPU or CPU)
 */
export function changedConfig(body: Changed, before: EndpointConfig): Partial<EndpointConfig> {
  const { kind } = before.compute
  if (body.gpu !== undefined && kind === 'cpu')
    throw invalidRequest(['$.gpu: this endpoint runs on CPUs; that cannot be changed'])
  if (body.cpu !== undefined && kind === 'gpu')
    throw invalidRequest(['$.cpu: this endpoint runs on GPUs; that cannot be changed'])
  const problems = newCpuProblems(body.cpu, before.compute.kind === 'cpu' ? before.compute.configs : [])
  if (problems.length > 0) throw invalidRequest(problems)
  return { ...configFromBody(body), ...optionalMember('compute', changedCompute(body, before.compute)) }
}

/**
 * Changes to the container configuration, based on the one that the endpoint runs at the moment of the change.
 * @param template a template to apply once, if any
 */
export function changedTemplate(body: Changed, template: Template | null) {
  const { envChanges } = body
  const applied = template === null ? {} : containerSettings(template)
  const replaced = template === null ? body.env : { ...template.env, ...body.env }
  return (endpoint: Pick<EndpointConfig, 'env'>, now: Pick<Template, 'env'>): Partial<TemplateInput> => {
    const env = envChanges === undefined ? replaced : changedEnv(replaced ?? savedEnv(endpoint, now), envChanges)
    return { ...applied, ...containerChanges(body), ...optionalMember('env', env) }
  }
}

/** Settings that a configuration takes from the template it starts from. */
function containerSettings(template: Template): Partial<TemplateInput> {
  return picked(template, namesIn(CONTAINER_MEMBERS))
}

/** The container members that were sent, by their names in the model. */
export function containerChanges(body: Partial<Members<typeof ContainerShape>>): Partial<TemplateInput> {
  return readFields<TemplateInput>(CONTAINER_MEMBERS, 'rest', body)
}

/** Hardware in a request for a new endpoint; null without hardware. */
export function computeFromBody({ gpu, cpu }: Partial<Created>): Compute | null {
  if (cpu !== undefined) return { kind: 'cpu', configs: cpuConfigs(cpu) }
  if (gpu === undefined) return null
  const { pools, excludedTypes = [], count, allowedCudaVersions = [], minCudaVersion = null, memoryGb } = gpu
  return { kind: 'gpu', pools, excludedTypes, count, allowedCudaVersions, minCudaVersion, ...gpuShare(memoryGb) }
}

/** The request's CUDA limit, or the CUDA versions of the template. */
function newCompute(body: Created, template: Template | null): Compute {
  const compute = computeFromBody(body)!
  const limited = body.gpu?.allowedCudaVersions !== undefined || body.gpu?.minCudaVersion != null
  if (compute.kind === 'cpu' || limited) return compute
  return { ...compute, allowedCudaVersions: template?.allowedCudaVersions ?? [] }
}

/** New pools clear the exclusions; setting one CUDA limit clears the other. */
function changedCompute({ gpu, cpu }: Changed, before: Compute): Compute | undefined {
  if (cpu !== undefined) return { kind: 'cpu', configs: cpuConfigs(cpu) }
  if (gpu === undefined || before.kind === 'cpu') return undefined
  const { pools, excludedTypes, count, allowedCudaVersions, minCudaVersion, memoryGb } = gpu
  const listed = allowedCudaVersions !== undefined && allowedCudaVersions.length > 0
  const floored = minCudaVersion != null && minCudaVersion !== ''
  return {
    kind: 'gpu',
    pools: pools ?? before.pools,
    excludedTypes: pools === undefined ? before.excludedTypes : (excludedTypes ?? []),
    count: count ?? before.count,
    allowedCudaVersions: allowedCudaVersions ?? (floored ? [] : before.allowedCudaVersions),
    minCudaVersion: minCudaVersion === undefined ? (listed ? null : before.minCudaVersion) : minCudaVersion || null,
    ...gpuShare(memoryGb, before),
  }
}

function cpuConfigs(cpu: NonNullable<Created['cpu']>): CpuConfig[] {
  return cpu.map(({ id, vcpuCount }) => ({ flavor: id, vcpuCount }))
}

function scaler(scaling: Created['scaling']): Scaler {
  return scaling.type === 'QUEUE_DELAY'
    ? { type: scaling.type, queueDelayS: scaling.queueDelay }
    : { type: scaling.type, requestCount: scaling.requestCount }
}

function optionalMember<Name extends string, Value>(name: Name, value: Value | undefined): { [Key in Name]?: Value } {
  return value === undefined ? {} : ({ [name]: value } as { [Key in Name]?: Value })
}

/** Id of the template that a request starts from. */
export function templateIdFromBody(body: { templateId?: string | undefined }): TemplateId | null {
  return (body.templateId as TemplateId | undefined) ?? null
}
