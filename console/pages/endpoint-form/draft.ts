/** The draft of an endpoint in its form, and the bodies of calls for it. */
import { asObject, asText, asTexts, type Body, isObject, isSame, readNumber, splitWords } from './body.ts'
import type { Variable } from './env-text.ts'
import { SIMPLE_DEFAULTS, type SimpleName, simpleBody, simpleDraft } from './simple-fields.ts'

/** Typed values of the container of an endpoint or a template. Numbers are texts until they are sent. */
export interface ContainerDraft {
  readonly image: string
  readonly args: string
  readonly env: readonly Variable[]
  /** Ports, separated by commas or blanks like all lists. */
  readonly ports: string
  readonly disk: string
  /** Id of the registry's credentials; empty for none. */
  readonly registry: string
}

/** Typed values of an endpoint. */
export interface Draft extends ContainerDraft, Readonly<Record<SimpleName, string>> {
  readonly name: string
  readonly type: 'QUEUE' | 'LOAD_BALANCER'
  readonly hardware: 'gpu' | 'cpu'
  readonly pools: readonly string[]
  readonly excludedTypes: readonly string[]
  readonly gpuCount: string
  /** Share of one GPU in GB; empty for whole GPUs. */
  readonly gpuMemory: string
  readonly minCuda: string
  readonly cudaVersions: string
  readonly cpus: readonly { readonly id: string; readonly vcpus: string }[]
  readonly min: string
  readonly max: string
  readonly idleTimeout: string
  readonly scaling: 'QUEUE_DELAY' | 'REQUEST_COUNT'
  readonly scalingValue: string
  readonly volumes: readonly string[]
  /** Share of the workers in percent that try a change first; empty for all. */
  readonly canary: string
}

/** Defaults of the API for a new endpoint. */
const DEFAULTS: Body = {
  image: '',
  args: '',
  env: {},
  ports: [],
  disk: 10,
  registry: null,
  workers: { min: 0, max: 3, idleTimeout: 10 },
  networkVolumes: [],
  ...SIMPLE_DEFAULTS,
}
const GPU_DEFAULTS: Body = { excludedTypes: [], count: 1, allowedCudaVersions: [], minCudaVersion: null }
/** Members whose own members are compared one by one. */
const MERGED = new Set(['workers', 'gpu'])

/** The form of a new endpoint. */
export const NEW_DRAFT: Draft = draftFromBody({
  ...DEFAULTS,
  name: '',
  type: 'QUEUE',
  cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
})

/** The form with the values of an endpoint, or of a body that may be wrong. */
export function draftFromBody(body: Body): Draft {
  const [workers, scaling, gpu] = [asObject(body.workers), asObject(body.scaling), asObject(body.gpu)]
  const isCount = scaling.type === 'REQUEST_COUNT'
  const cpus = Array.isArray(body.cpu) ? body.cpu.map(asObject) : []
  return {
    ...containerDraft(body),
    name: asText(body.name),
    type: body.type === 'LOAD_BALANCER' ? 'LOAD_BALANCER' : 'QUEUE',
    hardware: body.gpu == null && cpus.length > 0 ? 'cpu' : 'gpu',
    pools: asTexts(gpu.pools),
    excludedTypes: asTexts(gpu.excludedTypes),
    gpuCount: asText(gpu.count ?? 1),
    gpuMemory: asText(gpu.memoryGb),
    minCuda: asText(gpu.minCudaVersion),
    cudaVersions: asTexts(gpu.allowedCudaVersions).join(', '),
    cpus: cpus.map(({ id, vcpuCount }) => ({ id: asText(id), vcpus: asText(vcpuCount) })),
    min: asText(workers.min),
    max: asText(workers.max),
    idleTimeout: asText(workers.idleTimeout),
    scaling: isCount ? 'REQUEST_COUNT' : 'QUEUE_DELAY',
    scalingValue: asText(isCount ? scaling.requestCount : scaling.queueDelay),
    volumes: asTexts(body.networkVolumes),
    ...simpleDraft(body),
    canary: asText(asObject(body.rollout).canary),
  }
}

/** The draft of a container with the values of a template or an endpoint. */
export function containerDraft(body: Body): ContainerDraft {
  return {
    image: asText(body.image),
    args: asText(body.args),
    env: Object.entries(asObject(body.env)).map(([name, value]) => ({ name, value: asText(value) })),
    ports: asTexts(body.ports).join(', '),
    disk: asText(body.disk),
    registry: asText(body.registry),
  }
}

/** The container of a draft as the API takes it; null for a number that was removed. */
export function containerBody({ image, args, env, ports, disk, registry }: ContainerDraft): Body {
  const namedVariables = env.filter(({ name, value }) => name.trim() !== '' || value !== '')
  return {
    image: image.trim(),
    args,
    env: Object.fromEntries(namedVariables.map(({ name, value }) => [name.trim(), value])),
    ports: splitWords(ports),
    disk: readNumber(disk),
    registry: registry === '' ? null : registry,
  }
}

/** A whole draft as the API takes it. */
export function bodyFromDraft(draft: Draft): Body {
  const isCount = draft.scaling === 'REQUEST_COUNT'
  const value = readNumber(draft.scalingValue)
  const range = { min: readNumber(draft.min), max: readNumber(draft.max) }
  return {
    name: draft.name,
    type: draft.type,
    ...containerBody(draft),
    ...hardwareBody(draft),
    // Queues that scale on their jobs have a fixed idle timeout.
    workers: draft.type === 'QUEUE' && isCount ? range : { ...range, idleTimeout: readNumber(draft.idleTimeout) },
    scaling: isCount ? { type: 'REQUEST_COUNT', requestCount: value } : { type: 'QUEUE_DELAY', queueDelay: value },
    networkVolumes: draft.volumes,
    ...simpleBody(draft),
  }
}

function hardwareBody(draft: Draft): Body {
  if (draft.hardware === 'cpu') {
    return { cpu: draft.cpus.map(({ id, vcpus }) => ({ id, vcpuCount: readNumber(vcpus) })) }
  }
  const { pools, excludedTypes, gpuCount, gpuMemory, minCuda, cudaVersions } = draft
  const cuda = { allowedCudaVersions: splitWords(cudaVersions), minCudaVersion: minCuda.trim() || null }
  const share =
    gpuMemory.trim() === '' ? {} : { memoryGb: gpuMemory.trim() === 'auto' ? 'auto' : readNumber(gpuMemory) }
  return { gpu: { pools, excludedTypes, count: readNumber(gpuCount), ...cuda, ...share } }
}

/** The smallest body that creates the endpoint of a draft. */
export function createBody(draft: Draft): Body {
  const { workers, gpu, ...rest } = bodyFromDraft(draft)
  const ranges = without(asObject(workers), asObject(DEFAULTS.workers))
  return {
    ...without(rest, DEFAULTS),
    ...(gpu === undefined ? {} : { gpu: without(asObject(gpu), GPU_DEFAULTS) }),
    ...(Object.keys(ranges).length === 0 ? {} : { workers: ranges }),
  }
}

/** The members that differ from the defaults. */
export function without(body: Body, defaults: Body): Body {
  return Object.fromEntries(
    Object.entries(body).filter(([name, value]) => value !== null && !isSame(value, defaults[name])),
  )
}

/**
 * The body that changes an endpoint to a draft: the changed members only.
 * @param before the draft of the unchanged endpoint
 */
export function changedBody(before: Draft, after: Draft): Body {
  const changes = changedMembers(bodyFromDraft(before), bodyFromDraft(after))
  return after.canary.trim() === '' ? changes : { ...changes, rollout: { canary: readNumber(after.canary) } }
}

/** The members that changed. */
export function changedMembers(before: Body, after: Body): Body {
  const changed = Object.entries(after).filter(([name, value]) => !isSame(value, before[name]))
  return Object.fromEntries(
    changed.flatMap(([name, value]) => {
      if (!MERGED.has(name)) return [[name, value]]
      const members = changedMembers(asObject(before[name]), asObject(value))
      if (name === 'gpu') {
        const isWhole = 'memoryGb' in asObject(before.gpu) && !('memoryGb' in asObject(value))
        return [[name, { ...gpuChange(members, asObject(value)), ...(isWhole ? { memoryGb: null } : {}) }]]
      }
      return Object.keys(members).length === 0 ? [] : [[name, members]]
    }),
  )
}

/**
 * A change of pools clears the excluded types, so these are sent with the pools. An empty
 * text removes the CUDA floor.
 */
function gpuChange({ excludedTypes: isOther, ...changed }: Body, { pools, excludedTypes }: Body): Body {
  const poolMembers = { pools, ...(asTexts(excludedTypes).length === 0 ? {} : { excludedTypes }) }
  return {
    ...changed,
    ...(isOther !== undefined || 'pools' in changed ? poolMembers : {}),
    ...('minCudaVersion' in changed ? { minCudaVersion: changed.minCudaVersion ?? '' } : {}),
  }
}

/** A configuration after a change of it. */
export function merged(configuration: Body, { rollout: _, ...changes }: Body): Body {
  const after: Record<string, unknown> = { ...configuration, ...changes }
  for (const name of MERGED) {
    if (isObject(changes[name])) after[name] = { ...asObject(configuration[name]), ...asObject(changes[name]) }
  }
  const gpu = asObject(changes.gpu)
  if ('pools' in gpu && !('excludedTypes' in gpu)) after.gpu = { ...asObject(after.gpu), excludedTypes: [] }
  if (gpu.minCudaVersion === '') after.gpu = { ...asObject(after.gpu), minCudaVersion: null }
  return after
}

/** The draft with the changes of a body applied, and the members of the body that no draft can have. */
export function draftWith(
  original: Draft,
  changes: Body,
): { readonly draft: Draft; readonly unknown: readonly string[] } {
  const configuration = bodyFromDraft(original)
  const draft = draftFromBody({ ...merged(configuration, changes), rollout: changes.rollout })
  const actual = merged(configuration, changedBody(original, draft))
  const expected = merged(configuration, changes)
  const unknown = Object.keys(changes).filter(name => name !== 'rollout' && !isSame(actual[name], expected[name]))
  return { draft, unknown }
}

/** A change on top of a version that somebody else saved in the meantime; variables are merged one by one. */
export function rebased(base: Body, changes: Body, latest: Body): Body {
  if (!isObject(changes.env)) return changes
  const [old, mine, env] = [base.env, changes.env, latest.env].map(of => new Map(Object.entries(asObject(of))))
  for (const name of new Set([...old!.keys(), ...mine!.keys()])) {
    if (old!.get(name) === mine!.get(name)) continue
    if (mine!.has(name)) env!.set(name, mine!.get(name))
    else env!.delete(name)
  }
  return { ...changes, env: Object.fromEntries(env!) }
}
