/** Kinds of things that have an id and a name. */
import { answerValue, pageItems } from './answers.ts'
import { ask, type ConnectionOptions } from './connection.ts'
import { pages } from './pages.ts'

/** One thing of a kind; its name may be empty. */
export interface Named {
  readonly id: string
  readonly name: string
}

/** A kind of things that a command takes by their id or their name. */
export interface NamedKind {
  /** The word for one of them, such as `network volume`. */
  readonly one: string
  /** The plural. */
  readonly many: string
  /** Path of the list; one of them is at its id below it. */
  readonly path: string
  /** Path of a second list, for a kind whose things are in two. */
  readonly secondPath?: string
  /** The command that lists them. */
  readonly listing: string
  /** All of them that the key may see. */
  readonly list: (options: ConnectionOptions) => Promise<Named[]>
}

/** @param wrapper the member of the list's answer that holds the items */
function kind(singular: string, many: string, path: string, wrapper: string, group: string): NamedKind {
  const list = async (options: ConnectionOptions) => (await pages(options, path, wrapper)) as unknown as Named[]
  return { one: singular, many, path, listing: `runyard ${group} list`, list }
}

/** The kinds that a group of commands lists, shows and changes, by the name of the group. */
export const KINDS = {
  endpoints: kind('endpoint', 'endpoints', '/v2/serverless', 'endpoints', 'endpoints'),
  templates: kind('template', 'templates', '/v2/templates', 'templates', 'templates'),
  secrets: kind('secret', 'secrets', '/v2/account/secrets', 'secrets', 'secrets'),
  keys: kind('API key', 'API keys', '/v2/account/keys', 'keys', 'keys'),
  accounts: kind('account', 'accounts', '/v2/account/accounts', 'accounts', 'accounts'),
  volumes: kind('network volume', 'network volumes', '/v2/network-volumes', 'networkVolumes', 'volumes'),
  'global-volumes': kind('global volume', 'global volumes', '/v2/global-volumes', 'globalVolumes', 'global-volumes'),
  registries: kind('registry', 'registries', '/v2/registries', 'registries', 'registries'),
  alerts: kind('receiver', 'receivers', '/v2/account/alert-receivers', 'alertReceivers', 'alerts'),
} as const satisfies Readonly<Record<string, NamedKind>>

/** The name of one of {@link KINDS}. */
export type KindName = keyof typeof KINDS

/** The kinds whose things options name. A volume of an endpoint may be of either kind. */
export const OPTION_KINDS: Readonly<Record<KindName, NamedKind>> = {
  ...KINDS,
  volumes: {
    ...KINDS.volumes,
    secondPath: KINDS['global-volumes'].path,
    list: async options => [...(await KINDS.volumes.list(options)), ...(await KINDS['global-volumes'].list(options))],
  },
}

/** Apps of RunPod's SDK 2.0, which no command creates. */
export const APPS = kind('app', 'apps', '/v2/account/apps', 'apps', 'apps')

/** The help of an argument that is one thing of a kind. */
export function idOrName({ one }: NamedKind): string {
  return `the id or the name of ${/^[aeiA]/.test(one) ? 'an' : 'a'} ${one}`
}

/** Items of one page of batches. */
const PAGE = 1_000

/** The batches of an endpoint. @param endpoint its id */
export function batchKind(endpoint: string): NamedKind {
  const path = `/v2/${encodeURIComponent(endpoint)}/batch`
  const list = (options: ConnectionOptions) => pagesByOffset<Named>(options, path, 'batches')
  return { one: 'batch', many: 'batches', path, listing: `runyard batches list ${endpoint}`, list }
}

/** All items of a list whose pages begin at an offset. */
export async function pagesByOffset<Item extends object>(
  options: ConnectionOptions,
  path: string,
  wrapper: string,
): Promise<Item[]> {
  const items: Item[] = []
  for (;;) {
    const answer = await ask(options, `${path}?offset=${items.length}&limit=${PAGE}`)
    const page = await answerValue<{ hasMore?: boolean }>(answer)
    const next = pageItems<Item>(page, wrapper)
    items.push(...next)
    if (page.hasMore !== true || next.length === 0) return items
  }
}
