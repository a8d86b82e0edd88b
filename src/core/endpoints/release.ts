import type { EndpointId, OwnerId } from '../ids.ts'
import { isSealedPayload } from '../secrets/seals.ts'
import { ENDPOINT_FIELDS, type Endpoint, type EndpointConfig } from './endpoint.ts'
import { listedValues, type NameWith, namesWith, picked } from './field.ts'
import { isFloating, parseReference } from './image-reference.ts'
import { savedEnv } from './saved-env.ts'
import { TEMPLATE_FIELDS, type Template, type TemplateInput } from './template.ts'

/** A value in a list of changes, in its JSON form. */
export type DiffValue = string | number | boolean | null | readonly DiffValue[] | { readonly [name: string]: DiffValue }

/** One field that a release changed; a variable of the environment is `env.NAME`. */
export interface DiffEntry {
  readonly field: string
  /** Null for a field without a previous value. */
  readonly old: DiffValue
  readonly new: DiffValue
}

/** Origin of an endpoint's version: its creation, or a change that its workers must see. */
export interface Release {
  readonly id: string
  readonly endpointId: EndpointId
  readonly owner: OwnerId
  readonly version: number
  readonly source: 'MANUAL'
  /** The account that made it. */
  readonly createdBy: OwnerId | null
  readonly createdAtMs: number
  /** Empty for the first version. */
  readonly diff: readonly DiffEntry[]
  /** The release whose configuration it restores; null for a release that is not a rollback. */
  readonly restores: number | null
  /** The exact image of its workers; null before the first of them was started. */
  readonly image: string | null
  /** Percentage of workers that it has, or had, as a canary; null for other releases, and promoted ones. */
  readonly canary: number | null
}

/** A release in the list of an endpoint. */
export interface PastRelease extends Release {
  /** True if a worker of it was ready, and it was neither a canary nor stopped. */
  readonly hasWorked: boolean
}

/** Limit of stored releases of an endpoint; the newest stay. */
export const MAX_RELEASES = 100
/** Limit of characters of the stored configurations of an endpoint; the newest stay, and the last two in any case. */
export const MAX_KEPT_CHARACTERS = 4 * 1024 * 1024
/** Longer texts are shortened in a list of changes. */
const MAX_TEXT = 500
/** Text in place of a sealed value. */
const HIDDEN = '(sealed)'

/** An endpoint and its template: everything that a release can change. */
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

/** A release with its configuration; null if that is no longer stored, see {@link MAX_KEPT_CHARACTERS}. */
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
 * Changes of an endpoint that restore a release. Fields that make no release, such as its name and workersMax,
 * stay as they are.
 */
export function restoredEndpoint(now: EndpointConfig, { endpoint }: KeptConfiguration): Partial<EndpointConfig> {
  const { scaler, ...seen } = endpoint
  return seen.type === now.type ? seen : { ...seen, scaler }
}

/**
 * The template of a rollback. A name that means the last published image, such as `latest`, becomes the exact
 * image that the release ran: the next release would otherwise run another one again.
 * @param exact the image that the release ran; null if unknown
 */
export function restoredTemplate({ template }: KeptConfiguration, exact: string | null): KeptConfiguration['template'] {
  const reference = parseReference(template.image)
  const isNamed = exact === null || parseReference(exact)?.digest == null
  return isNamed || reference === null || !isFloating(reference) ? template : { ...template, image: exact }
}

/**
 * Changes that workers see, with the field names of REST. Values of variables are as they were given, so a secret
 * appears as its reference.
 */
export function configDiff(previous: Configuration, next: Configuration): DiffEntry[] {
  const [old, now] = [releaseFields(previous), releaseFields(next)]
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
  /** 0 without workers. */
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

function releaseFields({ endpoint, template }: Configuration): Record<string, DiffValue> {
  const variables = Object.entries(savedEnv(endpoint, template)).map(([name, value]) => [`env.${name}`, value])
  return {
    // `type` is the first in the list.
    type: endpoint.type,
    ...listedValues(TEMPLATE_FIELDS, template),
    ...listedValues(ENDPOINT_FIELDS, endpoint),
    ...Object.fromEntries(variables),
  }
}

function shortened(value: DiffValue): DiffValue {
  // A list of changes is plain text, so a sealed value must not be readable in it.
  if (typeof value === 'string' && isSealedPayload(value)) return HIDDEN
  return typeof value === 'string' && value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value
}
