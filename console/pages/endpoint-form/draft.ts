/** The draft of an endpoint in its form, and the bodies of calls for it. */
import { type Body, isObject, isSame, listOf, numberOf, objectOf, textOf, words } from './body.ts'
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
export const NEW_DRAFT: Draft = draftOf({
  ...DEFAULTS,
  name: '',
  type: 'QUEUE',
  cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
})

/** The form with the values of an endpoint, or of a body that may be wrong. */
export function draftOf(body: Body): Draft {
  const [workers, scaling, gpu] = [objectOf(body.workers), objectOf(body.scaling), objectOf(body.gpu)]
  const isCount = scaling.type === 'REQUEST_COUNT'
  const cpus = Array.isArray(body.cpu) ? body.cpu.map(objectOf) : []
  return {
    ...containerDraft(body),
    name: textOf(body.name),
    type: body.type === 'LOAD_BALANCER' ? 'LOAD_BALANCER' : 'QUEUE',
    hardware: body.gpu == null && cpus.length > 0 ? 'cpu' : 'gpu',
    pools: listOf(gpu.pools),
    excludedTypes: listOf(gpu.excludedTypes),
    gpuCount: textOf(gpu.count ?? 1),
    minCuda: textOf(gpu.minCudaVersion),
    cudaVersions: listOf(gpu.allowedCudaVersions).join(', '),
    cpus: cpus.map(({ id, vcpuCount }) => ({ id: textOf(id), vcpus: textOf(vcpuCount) })),
    min: textOf(workers.min),
    max: textOf(workers.max),
    idleTimeout: textOf(workers.idleTimeout),
    scaling: isCount ? 'REQUEST_COUNT' : 'QUEUE_DELAY',
    scalingValue: textOf(isCount ? scaling.requestCount : scaling.queueDelay),
    volumes: listOf(body.networkVolumes),
    ...simpleDraft(body),
    canary: textOf(objectOf(body.rollout).canary),
  }
}

/** The draft of a container with the values of a template or an endpoint. */
export function containerDraft(body: Body): ContainerDraft {
  return {
    image: textOf(body.image),
    args: textOf(body.args),
    env: Object.entries(objectOf(body.env)).map(([name, value]) => ({ name, value: textOf(value) })),
    ports: listOf(body.ports).join(', '),
    disk: textOf(body.disk),
    registry: textOf(body.registry),
  }
}

/** The container of a draft as the API takes it; null for a number that was removed. */
export function containerBody({ image, args, env, ports, disk, registry }: ContainerDraft): Body {
  const named = env.filter(({ name, value }) => name.trim() !== '' || value !== '')
  return {
    image: image.trim(),
    args,
    env: Object.fromEntries(named.map(({ name, value }) => [name.trim(), value])),
    ports: words(ports),
    disk: numberOf(disk),
    registry: registry === '' ? null : registry,
  }
}

/** A whole draft as the API takes it. */
export function bodyOf(draft: Draft): Body {
  const isCount = draft.scaling === 'REQUEST_COUNT'
  const value = numberOf(draft.scalingValue)
  const range = { min: numberOf(draft.min), max: numberOf(draft.max) }
  return {
    name: draft.name,
    type: draft.type,
    ...containerBody(draft),
    ...hardwareOf(draft),
    // Queues that scale on their jobs have a fixed idle timeout.
    workers: draft.type === 'QUEUE' && isCount ? range : { ...range, idleTimeout: numberOf(draft.idleTimeout) },
    scaling: isCount ? { type: 'REQUEST_COUNT', requestCount: value } : { type: 'QUEUE_DELAY', queueDelay: value },
    networkVolumes: draft.volumes,
    ...simpleBody(draft),
  }
}

function hardwareOf(draft: Draft): Body {
  if (draft.hardware === 'cpu') {
    return { cpu: draft.cpus.map(({ id, vcpus }) => ({ id, vcpuCount: numberOf(vcpus) })) }
  }
  const { pools, excludedTypes, gpuCount, minCuda, cudaVersions } = draft
  const cuda = { allowedCudaVersions: words(cudaVersions), minCudaVersion: minCuda.trim() || null }
  return { gpu: { pools, excludedTypes, count: numberOf(gpuCount), ...cuda } }
}

/** The smallest body that creates the endpoint of a draft. */
export function createBody(draft: Draft): Body {
  const { workers, gpu, ...rest } = bodyOf(draft)
  const ranges = without(objectOf(workers), objectOf(DEFAULTS.workers))
  return {
    ...without(rest, DEFAULTS),
    ...(gpu === undefined ? {} : { gpu: without(objectOf(gpu), GPU_DEFAULTS) }),
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
export function changesOf(before: Draft, after: Draft): Body {
  const changes = changedMembers(bodyOf(before), bodyOf(after))
  return after.canary.trim() === '' ? changes : { ...changes, rollout: { canary: numberOf(after.canary) } }
}

/** The members that changed. */
export function changedMembers(before: Body, after: Body): Body {
  const changed = Object.entries(after).filter(([name, value]) => !isSame(value, before[name]))
  return Object.fromEntries(
    changed.flatMap(([name, value]) => {
      if (!MERGED.has(name)) return [[name, value]]
      const members = changedMembers(objectOf(before[name]), objectOf(value))
      if (name === 'gpu') return [[name, gpuChange(members, objectOf(value))]]
      return Object.keys(members).length === 0 ? [] : [[name, members]]
    }),
  )
}

/**
 * A change of pools clears the excluded types, so these are sent with the pools. An empty
 * text removes the CUDA floor.
 */
function gpuChange({ excludedTypes: isOther, ...changed }: Body, { pools, excludedTypes }: Body): Body {
  const both = { pools, ...(listOf(excludedTypes).length === 0 ? {} : { excludedTypes }) }
  return {
    ...changed,
    ...(isOther !== undefined || 'pools' in changed ? both : {}),
    ...('minCudaVersion' in changed ? { minCudaVersion: changed.minCudaVersion ?? '' } : {}),
  }
}

/** A configuration after a change of it. */
export function merged(before: Body, { rollout: _, ...changes }: Body): Body {
  const after: Record<string, unknown> = { ...before, ...changes }
  for (const name of MERGED) {
    if (isObject(changes[name])) after[name] = { ...objectOf(before[name]), ...objectOf(changes[name]) }
  }
  const gpu = objectOf(changes.gpu)
  if ('pools' in gpu && !('excludedTypes' in gpu)) after.gpu = { ...objectOf(after.gpu), excludedTypes: [] }
  if (gpu.minCudaVersion === '') after.gpu = { ...objectOf(after.gpu), minCudaVersion: null }
  return after
}

/** The draft with the changes of a body applied, and the members of the body that no draft can have. */
export function draftWith(
  before: Draft,
  changes: Body,
): { readonly draft: Draft; readonly unknown: readonly string[] } {
  const own = bodyOf(before)
  const draft = draftOf({ ...merged(own, changes), rollout: changes.rollout })
  const meant = merged(own, changesOf(before, draft))
  const wanted = merged(own, changes)
  const unknown = Object.keys(changes).filter(name => name !== 'rollout' && !isSame(meant[name], wanted[name]))
  return { draft, unknown }
}

/** A change on top of a version that somebody else saved in the meantime; variables are merged one by one. */
export function rebased(before: Body, changes: Body, latest: Body): Body {
  if (!isObject(changes.env)) return changes
  const [old, mine, env] = [before.env, changes.env, latest.env].map(of => new Map(Object.entries(objectOf(of))))
  for (const name of new Set([...old!.keys(), ...mine!.keys()])) {
    if (old!.get(name) === mine!.get(name)) continue
    if (mine!.has(name)) env!.set(name, mine!.get(name))
    else env!.delete(name)
  }
  return { ...changes, env: Object.fromEntries(env!) }
}
