import type { EndpointId, OwnerId } from '../ids.ts'
import { isSealedPayload } from '../secrets/payload-seal.ts'
import { ENDPOINT_FIELDS, type Endpoint, type EndpointConfig } from './endpoint.ts'
import { listedValues, type NameWith, namesWith, picked } from './field.ts'
import { isFloating, parseReference } from './image-reference.ts'
import { savedEnv } from './saved-env.ts'
import { TEMPLATE_FIELDS, type Template, type TemplateInput } from './template.ts'

/** A value in a list of changes, as it goes into JSON. */
export type DiffValue = string | number | boolean | null | readonly DiffValue[] | { readonly [name: string]: DiffValue }

/** One field that a release has changed; a variable of the environment is `env.NAME`. */
export interface DiffEntry {
  readonly field: string
  /** Null where there was nothing. */
  readonly old: DiffValue
  readonly new: DiffValue
}

/** The origin of an endpoint's version: its creation, or a change that its workers must see. */
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
  /** The release whose configuration it has again; null for one that is no rollback. */
  readonly restores: number | null
  /** The exact image that its workers run; null before the first of them was started. */
  readonly image: string | null
  /** The percentage of workers that it has, or had, as a canary; null for other releases, and promoted ones. */
  readonly canary: number | null
}

/** A release in the list of an endpoint. */
export interface PastRelease extends Release {
  /** True when a worker of it has been ready, and it was neither a canary nor stopped. */
  readonly hasWorked: boolean
}

/** Limit of releases that are kept of an endpoint, the newest. */
export const MAX_RELEASES = 100
/**
 * Limit of characters of the configurations that are kept of an endpoint, the newest; those of the last two are kept
 * in any case.
 */
export const MAX_KEPT_CHARACTERS = 4 * 1024 * 1024
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
 * The fields that a release keeps, as they were saved: a secret is kept as its reference. See `Effect` in field.ts.
 */
export interface KeptConfiguration {
  readonly endpoint: Pick<EndpointConfig, NameWith<typeof ENDPOINT_FIELDS, 'release' | 'kept'>>
  readonly template: Pick<TemplateInput, NameWith<typeof TEMPLATE_FIELDS, 'release' | 'kept'>>
}

/** The template of the workers of a release. */
export type ReleasedTemplate = KeptConfiguration['template']

/** A release with its configuration; null where that is not kept any more, see {@link MAX_KEPT_CHARACTERS}. */
export interface KeptRelease extends Release {
  readonly configuration: KeptConfiguration | null
}

/** The fields that a release keeps of a configuration. */
export function keptConfiguration({ endpoint, template }: Configuration): KeptConfiguration {
  return {
    endpoint: picked(endpoint, namesWith(ENDPOINT_FIELDS, ['release', 'kept'])),
    template: picked(template, namesWith(TEMPLATE_FIELDS, ['release', 'kept'])),
  }
}

/**
 * The changes of an endpoint that restore a release. What makes no release, such as its name and workersMax, stays as
 * it is.
 */
export function restoredEndpoint(now: EndpointConfig, { endpoint }: KeptConfiguration): Partial<EndpointConfig> {
  const { scaler, ...seen } = endpoint
  return seen.type === now.type ? seen : { ...seen, scaler }
}

/**
 * The template of a rollback. A name that means the last published image, such as `latest`, becomes the exact image
 * that the release ran: the next release would run another one again.
 * @param exact the image that the release ran; null where that is not known
 */
export function restoredTemplate({ template }: KeptConfiguration, exact: string | null): KeptConfiguration['template'] {
  const reference = parseReference(template.image)
  const isNamed = exact === null || parseReference(exact)?.digest == null
  return isNamed || reference === null || !isFloating(reference) ? template : { ...template, image: exact }
}

/**
 * The changes that workers see, in the words of REST. Values of variables are as they were given, so a secret is
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

/** The progress of a rollout: the workers of the newest release. */
export interface WorkersOnLatest {
  readonly inProgress: boolean
  readonly workersOnLatest: number
  readonly workersTotal: number
  /** 0 when there are no workers. */
  readonly percentOnLatest: number
}

/**
 * The progress of a release.
 * @param versions of the workers that have not ended
 */
export function workersOnLatest(version: number, versions: readonly number[]): WorkersOnLatest {
  const latest = versions.filter(one => one === version).length
  const workersTotal = versions.length
  const inProgress = latest < workersTotal
  const percent = workersTotal === 0 ? 0 : Math.round((latest / workersTotal) * 100)
  return {
    inProgress,
    workersOnLatest: latest,
    workersTotal,
    percentOnLatest: inProgress ? Math.min(percent, 99) : percent,
  }
}

function fieldsOf({ endpoint, template }: Configuration): Record<string, DiffValue> {
  const variables = Object.entries(savedEnv(endpoint, template)).map(([name, value]) => [`env.${name}`, value])
  return {
    // The first in the list.
    type: endpoint.type,
    ...listedValues(TEMPLATE_FIELDS, template),
    ...listedValues(ENDPOINT_FIELDS, endpoint),
    ...Object.fromEntries(variables),
  }
}

function shortened(value: DiffValue): DiffValue {
  // A list of changes is plain, and what the operator wants sealed is not to be read in it.
  if (typeof value === 'string' && isSealedPayload(value)) return HIDDEN
  return typeof value === 'string' && value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value
}
