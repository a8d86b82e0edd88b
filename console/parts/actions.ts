/**
 * The actions that the server offers for a cause, as buttons: the target of each, the settings that it changes, and
 * the request that does it.
 */
import type { EndpointExplanation, UpdateEndpointRequest } from '../client/api-types.d.ts'

/** An action of an explanation. */
export type Action = EndpointExplanation['actions'][number]

type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>

/** A setting that changes, for people. */
export interface Change {
  readonly name: string
  readonly from: string
  readonly to: string
}

/** The releases of an endpoint, newest first. */
export interface Releases {
  readonly releases: readonly {
    readonly version: number | null
    readonly diff: readonly { readonly field: string; readonly old: unknown; readonly new: unknown }[]
  }[]
}

/** The right that an action needs, so that nobody sees one that is refused. */
export type Needs = 'read' | 'write' | 'operate'

const PAGES: Readonly<Record<ActionOf<'open'>['page'], (id: string, part: string | null) => string>> = {
  settings: (id, part) => `/endpoints/${id}/settings${part === null ? '' : `#${part}`}`,
  requests: (id, part) => `/endpoints/${id}/requests${part === 'failed' ? '?status=FAILED,TIMED_OUT' : ''}`,
  secrets: (_, part) => `/secrets${part === null ? '' : `?new=${encodeURIComponent(part)}`}`,
  registries: () => '/registries',
  volumes: () => '/volumes',
  machine: () => '/machine',
  usage: () => '/usage',
  batches: () => '/batches',
}

const READ_PAGES: ReadonlySet<string> = new Set(['requests', 'usage', 'batches'])

/** The right that an action needs; null for a kind or page that only a newer server has. */
export function findNeeds(action: Action): Needs | null {
  switch (action.kind) {
    case 'open':
      if (!Object.hasOwn(PAGES, action.page)) return null
      return action.page === 'machine' ? 'operate' : READ_PAGES.has(action.page) ? 'read' : 'write'
    case 'logs':
      return 'read'
    case 'set':
    case 'rollback':
    case 'promote':
    case 'restart':
      return 'write'
    case 'download':
      return 'operate'
    case 'run':
      return action.place === 'server' ? 'operate' : 'read'
    default:
      return null
  }
}

/** True for an action that only opens or shows something. */
export function isLook(action: Action): boolean {
  return findNeeds(action) === 'read'
}

/** The address that an action opens, for an endpoint; null if it opens none. */
export function actionHref(action: Action, id: string): string | null {
  if (action.kind === 'open') return PAGES[action.page](id, action.part)
  if (action.kind !== 'logs') return null
  return `/endpoints/${id}/logs${action.worker === null ? '' : `?worker=${encodeURIComponent(action.worker)}`}`
}

/** The actions of the cause, or those of a note, each title once. */
export function fittingActions(
  { actions }: { readonly actions: readonly Action[] },
  note: number | null,
): readonly Action[] {
  const titles = new Set(note === null ? [] : actions.filter(action => action.note === null).map(({ title }) => title))
  return actions.filter(action => action.note === note && !titles.has(action.title) && titles.add(action.title))
}

const NAMES: Readonly<Record<string, string>> = {
  'workers.max': 'Workers at most',
  'workers.min': 'Workers at least',
  'workers.idleTimeout': 'Idle timeout, seconds',
  scaling: 'Scaler',
  'gpu.pools': 'GPU pools',
  'gpu.count': 'GPUs of a worker',
}

const VARIABLE = 'env.'

/** The settings that an action changes. */
export function actionChanges(action: Action, releases: Releases | null): readonly Change[] {
  if (action.kind === 'rollback') return changesBack(releases, action.version)
  if (action.kind !== 'set') return []
  const { field, from, value } = action
  const name = NAMES[field] ?? (field.startsWith(VARIABLE) ? field.slice(VARIABLE.length) : field)
  return [{ name, from: valueText(from), to: valueText(value) }]
}

/** The request that sets the field of an action. */
export function actionBody({ field, value }: ActionOf<'set'>): UpdateEndpointRequest {
  if (field.startsWith(VARIABLE)) return { envChanges: { [field.slice(VARIABLE.length)]: String(value) } }
  const [name, member] = field.split('.') as [string, string | undefined]
  return { [name]: member === undefined ? value : { [member]: value } } as UpdateEndpointRequest
}

/** The action with another limit of workers than the number that the server advises. */
export function withWorkersMax(action: ActionOf<'set'>, value: number): Action {
  return { ...action, title: `Allow ${value === 1 ? '1 worker' : `${value} workers`}`, value }
}

/** The changes of a rollback to a release, from the changes of each newer one. */
export function changesBack(releases: Releases | null, version: number): readonly Change[] {
  const newer = releases?.releases.filter(release => release.version !== null && release.version > version) ?? []
  const changes = new Map<string, Change>()
  // Newest first: the first value of a field is the present one, and the last old one is that of the release.
  for (const { diff } of newer)
    for (const { field, old, new: present } of diff)
      changes.set(field, { name: field, from: changes.get(field)?.from ?? valueText(present), to: valueText(old) })
  return [...changes.values()].filter(({ from, to }) => from !== to)
}

function valueText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–'
  return typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value)
}
