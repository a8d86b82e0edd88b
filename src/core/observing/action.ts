/**
 * Actions: steps that a person can take to end a cause, as data. The command line prints them as commands, the
 * console makes buttons of them.
 */
import type { EndpointId, WorkerId } from '../ids.ts'
import { shellWord } from '../shell-word.ts'

/** The pages that an action can open. `settings` and `requests` are those of the endpoint. */
export const ACTION_PAGES = [
  ...(['settings', 'requests', 'secrets', 'registries', 'volumes', 'machine', 'usage', 'batches'] as const),
] as const
/** One of {@link ACTION_PAGES}. */
export type ActionPage = (typeof ACTION_PAGES)[number]

/** The value of a field, as REST v2 takes it. */
export type ActionValue = string | number | readonly string[] | Readonly<Record<string, string | number>>

/** One step that a person can take. Its title names the step in the words of a button. */
export type Action = { readonly title: string } & (
  | SetField
  | { readonly kind: 'rollback' | 'promote'; readonly version: number }
  /** A new release with the same configuration, whose workers start at once. */
  | { readonly kind: 'restart' }
  /** `worker` is null for the output of all workers. */
  | { readonly kind: 'logs'; readonly worker: WorkerId | null }
  | { readonly kind: 'download'; readonly model: string }
  /**
   * `part` is a part of the page: a section of the settings, the name of a new secret, `findings` or `workers` of the
   * machine, `failed` of the requests; null for the whole page.
   */
  | { readonly kind: 'open'; readonly page: ActionPage; readonly part: string | null }
  /**
   * A program with its arguments, for the machine of the server or, if the operator need not run it, for any machine;
   * `<...>` stands for a value that the person chooses.
   */
  | { readonly kind: 'run'; readonly words: readonly string[]; readonly place: 'server' | 'client' }
)

/** Sets a field of the endpoint, named as in REST v2 (`workers.max`); a variable is `env.NAME`. */
interface SetField {
  readonly kind: 'set'
  readonly field: string
  /** The present value; null if it has no value, or the value is not shown. */
  readonly from: ActionValue | null
  readonly value: ActionValue
  /** True if this makes a new release, whose workers replace the present ones. */
  readonly isRelease: boolean
}

/** An action of one kind. */
export type ActionOf<Kind extends Action['kind']> = Extract<Action, { readonly kind: Kind }>

const SETTINGS_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  volumes: ['--volume', '<volume>'],
  models: ['--model', '<owner/name>'],
}

/**
 * The command line of an action, ready to paste; null if no command does it. `<...>` stands for a value that the
 * person chooses.
 */
export function actionCommand(action: Action, endpoint: EndpointId): string | null {
  const words = commandWords(action, endpoint)
  return words === null ? null : words.map(word => (/^<[\w/= ]+>$/.test(word) ? word : shellWord(word))).join(' ')
}

function commandWords(action: Action, id: EndpointId): readonly string[] | null {
  switch (action.kind) {
    case 'set':
      return ['runyard', 'endpoints', 'update', id, ...settingOption(action)]
    case 'rollback':
    case 'promote':
      return ['runyard', 'endpoints', action.kind, id, String(action.version)]
    case 'restart':
      return ['runyard', 'endpoints', 'restart', id]
    case 'logs':
      return ['runyard', 'logs', action.worker ?? id]
    case 'download':
      return ['runyard', 'models', 'pull', action.model]
    case 'run':
      return action.words
    case 'open':
      return pageWords(action, id)
  }
}

const OPTIONS: Readonly<Record<string, string>> = {
  'workers.max': '--max',
  'workers.min': '--min',
  'workers.idleTimeout': '--idle-timeout',
  'gpu.pools': '--gpu',
  'gpu.count': '--gpu-count',
}

function settingOption({ field, value }: ActionOf<'set'>): readonly string[] {
  if (field.startsWith('env.')) return ['--env', `${field.slice('env.'.length)}=${value}`]
  if (field === 'scaling') return ['--scaler', Object.values(value).join(':')]
  const option = OPTIONS[field]
  return option === undefined ? ['--set', `${field}=${JSON.stringify(value)}`] : [option, String(value)]
}

function pageWords({ page, part }: ActionOf<'open'>, id: EndpointId): readonly string[] | null {
  switch (page) {
    case 'settings': {
      const options = part === null ? undefined : SETTINGS_OPTIONS[part]
      return options === undefined ? null : ['runyard', 'endpoints', 'update', id, ...options]
    }
    case 'requests':
      return ['runyard', 'jobs', 'list', id, ...(part === 'failed' ? ['--failed'] : [])]
    case 'secrets':
      return ['runyard', 'secrets', 'create', '--name', part ?? '<name>']
    case 'registries':
      return ['runyard', 'registries', 'create']
    case 'volumes':
      return ['runyard', 'volumes', 'list']
    case 'machine':
      return ['runyard', part === 'findings' ? 'doctor' : 'top']
    case 'usage':
      return ['runyard', 'usage']
    case 'batches':
      return ['runyard', 'batches', 'list', id]
  }
}
