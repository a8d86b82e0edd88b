import type { EndpointId, OwnerId } from '../ids.ts'
import { isSealedPayload } from '../secrets/payload-seal.ts'
import type { Compute, Endpoint } from './endpoint.ts'
import type { Template } from './template.ts'

/** A value in a list of changes, as it goes into JSON. */
export type DiffValue = string | number | boolean | null | readonly DiffValue[] | { readonly [name: string]: DiffValue }

/** One field that a release has changed; a variable of the environment is `env.NAME`. */
export interface DiffEntry {
  readonly field: string
  /** Null where there was nothing. */
  readonly old: DiffValue
  readonly new: DiffValue
}

/** What made an endpoint's version: its creation, or a change that its workers must see. */
export interface Release {
  readonly id: string
  readonly endpointId: EndpointId
  readonly owner: OwnerId
  readonly version: number
  readonly source: 'MANUAL'
  /** The account that did it. */
  readonly createdBy: OwnerId | null
  readonly createdAtMs: number
  /** Empty for the first version. */
  readonly diff: readonly DiffEntry[]
}

/** Limit of releases that are kept of an endpoint, the newest. */
export const MAX_RELEASES = 100
/** Longer texts are shortened in a list of changes. */
const MAX_TEXT = 500
/** Stands for what is sealed. */
const HIDDEN = '(sealed)'

/** An endpoint with what its workers run: all that a release can change. */
export interface Configuration {
  readonly endpoint: Endpoint
  readonly template: Template
}

/**
 * What workers would see differently, in the words of REST. Values of variables are as they were given, so a secret is
 * there as the reference to it.
 */
export function configDiff(before: Configuration, after: Configuration): DiffEntry[] {
  const [old, now] = [fieldsOf(before), fieldsOf(after)]
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])]
  return names.flatMap(field => {
    const [a, b] = [old[field] ?? null, now[field] ?? null]
    return JSON.stringify(a) === JSON.stringify(b) ? [] : [{ field, old: shortened(a), new: shortened(b) }]
  })
}

/** How far the workers of an endpoint have come to its version. */
export interface Rollout {
  readonly inProgress: boolean
  readonly workersOnLatest: number
  readonly workersTotal: number
  /** 0 when there are no workers. */
  readonly percentOnLatest: number
}

/**
 * How far a release has come.
 * @param versions of the workers that have not ended
 */
export function rolloutOf(version: number, versions: readonly number[]): Rollout {
  const workersOnLatest = versions.filter(one => one === version).length
  const workersTotal = versions.length
  const inProgress = workersOnLatest < workersTotal
  const percent = workersTotal === 0 ? 0 : Math.round((workersOnLatest / workersTotal) * 100)
  return { inProgress, workersOnLatest, workersTotal, percentOnLatest: inProgress ? Math.min(percent, 99) : percent }
}

function fieldsOf({ endpoint, template }: Configuration): Record<string, DiffValue> {
  const env = { ...template.env, ...endpoint.env }
  return {
    type: endpoint.type,
    image: template.image,
    args: template.args,
    disk: template.diskGb,
    ports: template.ports,
    registry: template.registry,
    ...computeOf(endpoint.compute),
    dataCenterIds: endpoint.locations,
    networkVolumes: endpoint.networkVolumeIds,
    flashboot: endpoint.flashboot,
    modelReferences: endpoint.modelReferences,
    ...Object.fromEntries(Object.entries(env).map(([name, value]) => [`env.${name}`, value])),
  }
}

function computeOf(compute: Compute): Record<string, DiffValue> {
  if (compute.kind === 'cpu') return { cpu: compute.configs.map(({ flavor: id, vcpuCount }) => ({ id, vcpuCount })) }
  const { pools, excludedTypes, count, allowedCudaVersions, minCudaVersion } = compute
  return { gpu: { pools, excludedTypes, count, allowedCudaVersions, minCudaVersion } }
}

function shortened(value: DiffValue): DiffValue {
  // A list of changes is plain, and what the operator wants sealed is not to be read in it.
  if (typeof value === 'string' && isSealedPayload(value)) return HIDDEN
  return typeof value === 'string' && value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value
}
