import type { Command } from 'commander'
import { answerValue } from '../client/answers.ts'
import { ask, type CliRequest, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { changedGpus, withGpus } from '../client/endpoint-gpus.ts'
import { withEndpointName } from '../client/endpoint-names.ts'
import { type BodyOptions, bodyOf, collected, type Field, plainValue } from '../client/fields.ts'
import { addNoSuchVerb } from '../client/locate.ts'
import { pages } from '../client/pages.ts'
import { print, printList, printValue } from '../client/printing.ts'
import { timeSpanMs } from '../client/time-spans.ts'
import { CliError, EXIT } from '../exit.ts'
import { changeLines } from '../terminal/change-text.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import { type Column, shown, type TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'
import { addDeletion } from './deletion.ts'
import { addPromote, addReleases, addRollback } from './endpoint-releases.ts'

/** A kind of resource that the command line lists, shows and changes through the REST API. */
interface Resource {
  /** The command, such as `endpoints`. */
  readonly name: string
  readonly one: string
  readonly path: string
  /** The member of a list's answer that holds the items. */
  readonly wrapper: string
  readonly columns: readonly Column[]
  readonly createFields: readonly Field[]
  /** Null where there is no verb `update`. */
  readonly updateFields: readonly Field[] | null
  /** Whether there is no verb `delete`. */
  readonly stays?: true
}

const CONTAINER: readonly Field[] = [
  {
    flag: '--image <reference>',
    help: 'image reference, or dir:<folder> of this machine',
    path: 'image',
    kind: 'image',
  },
  { flag: '--args <text>', help: 'arguments of the entry point', path: 'args', kind: 'text' },
  { flag: '--disk <GB>', help: 'container disk', path: 'disk', kind: 'number' },
  {
    flag: '--env <NAME=value>',
    help: 'environment variable to add or replace; again for more',
    path: 'env',
    kind: 'pairs',
  },
  { flag: '--ports <list>', help: 'such as 8000/http,9000/tcp', path: 'ports', kind: 'list' },
  { flag: '--registry <id>', help: 'saved registry credential', path: 'registry', kind: 'text' },
]

/** Options of a change besides. */
const UNSET_ENV: Field = {
  flag: '--unset-env <NAME>',
  help: 'environment variable to remove; again for more',
  path: 'env',
  kind: 'names',
}

const ENDPOINT: readonly Field[] = [
  { flag: '--name <text>', help: 'name', path: 'name', kind: 'text' },
  ...CONTAINER,
  { flag: '--gpu-count <n>', help: 'GPUs of one worker', path: 'gpu.count', kind: 'number' },
  { flag: '--cpu <json>', help: 'CPU flavors, such as [{"id":"cpu3g","vcpuCount":2}]', path: 'cpu', kind: 'json' },
  { flag: '--min <n>', help: 'workers at least', path: 'workers.min', kind: 'number' },
  { flag: '--max <n>', help: 'workers at most', path: 'workers.max', kind: 'number' },
  {
    flag: '--idle-timeout <s>',
    help: 'seconds after which an idle worker ends',
    path: 'workers.idleTimeout',
    kind: 'number',
  },
  { flag: '--timeout <ms>', help: 'execution timeout of a job', path: 'timeout', kind: 'number' },
  { flag: '--scaling <json>', help: 'such as {"type":"QUEUE_DELAY","queueDelay":4}', path: 'scaling', kind: 'json' },
  { flag: '--flashboot <mode>', help: 'OFF, FLASHBOOT or PRIORITY_FLASHBOOT', path: 'flashboot', kind: 'text' },
  {
    flag: '--cors-origins <list>',
    help: 'web pages that may call it, such as https://app.example',
    path: 'corsOrigins',
    kind: 'list',
  },
  { flag: '--template <id>', help: 'template whose settings it starts from', path: 'templateId', kind: 'text' },
]

const CANARY: Field = {
  flag: '--canary <percent>',
  help: 'share of the workers that runs this change until it is promoted',
  path: 'rollout.canary',
  kind: 'number',
}

const TEMPLATE: readonly Field[] = [
  { flag: '--name <text>', help: 'name', path: 'name', kind: 'text' },
  ...CONTAINER,
  { flag: '--serverless', help: 'for endpoints', path: 'serverless', kind: 'boolean' },
]

const SECRET_VALUE: readonly Field[] = [
  {
    flag: '--value <text>',
    help: 'the value; better @file or -, which no process list shows',
    path: 'value',
    kind: 'source',
  },
  { flag: '--description <text>', help: 'what it is for', path: 'description', kind: 'text' },
]

const KEY: readonly Field[] = [
  { flag: '--name <text>', help: 'name', path: 'name', kind: 'text' },
  { flag: '--scope <json>', help: 'such as {"type":"read-only"}', path: 'scope', kind: 'json' },
  { flag: '--expires-at <time>', help: 'RFC 3339 time after which it is refused', path: 'expiresAt', kind: 'text' },
]

const RESOURCES: readonly Resource[] = [
  {
    name: 'endpoints',
    one: 'endpoint',
    path: '/v2/serverless',
    wrapper: 'endpoints',
    columns: RESOURCE_COLUMNS.endpoints,
    createFields: [
      ...ENDPOINT,
      { flag: '--type <type>', help: 'QUEUE (default) or LOAD_BALANCER', path: 'type', kind: 'text' },
    ],
    updateFields: [...ENDPOINT, UNSET_ENV, CANARY],
  },
  {
    name: 'templates',
    one: 'template',
    path: '/v2/templates',
    wrapper: 'templates',
    columns: RESOURCE_COLUMNS.templates,
    createFields: TEMPLATE,
    updateFields: [...TEMPLATE, UNSET_ENV],
  },
  {
    name: 'secrets',
    one: 'secret',
    path: '/v2/account/secrets',
    wrapper: 'secrets',
    columns: RESOURCE_COLUMNS.secrets,
    createFields: [{ flag: '--name <text>', help: 'name', path: 'name', kind: 'text' }, ...SECRET_VALUE],
    updateFields: SECRET_VALUE,
  },
  {
    name: 'keys',
    one: 'API key',
    path: '/v2/account/keys',
    wrapper: 'keys',
    columns: RESOURCE_COLUMNS.keys,
    createFields: [
      ...KEY,
      { flag: '--account <id>', help: 'account that it belongs to; for the operator', path: 'account', kind: 'text' },
      { flag: '--exempt', help: 'without rate limits; for the operator', path: 'exempt', kind: 'boolean' },
    ],
    updateFields: KEY,
  },
  {
    name: 'accounts',
    one: 'account',
    path: '/v2/account/accounts',
    wrapper: 'accounts',
    stays: true,
    columns: RESOURCE_COLUMNS.accounts,
    createFields: [{ flag: '--name <text>', help: 'name', path: 'name', kind: 'text' }],
    updateFields: [
      { flag: '--name <text>', help: 'name; for the operator', path: 'name', kind: 'text' },
      {
        flag: '--delete-running-endpoints <true|false>',
        help: 'whether GraphQL deletes endpoints whose workersMin or workersMax is not 0',
        path: 'deleteRunningEndpoints',
        kind: 'json',
      },
      {
        flag: '--limits <json>',
        help: 'all limits of its own, such as {"queuedJobs":5000,"gpus":1}; null for no limit; for the operator',
        path: 'limits',
        kind: 'json',
      },
    ],
  },
  {
    name: 'volumes',
    one: 'network volume',
    path: '/v2/network-volumes',
    wrapper: 'networkVolumes',
    columns: RESOURCE_COLUMNS.volumes,
    createFields: [
      { flag: '--name <text>', help: 'name', path: 'name', kind: 'text' },
      { flag: '--size <GB>', help: 'size', path: 'size', kind: 'number' },
      { flag: '--data-center <id>', help: 'data center', path: 'dataCenter', kind: 'text' },
    ],
    updateFields: [
      { flag: '--name <text>', help: 'name', path: 'name', kind: 'text' },
      { flag: '--size <GB>', help: 'new size; it only grows', path: 'size', kind: 'number' },
    ],
  },
  {
    name: 'registries',
    one: 'registry',
    path: '/v2/registries',
    wrapper: 'registries',
    columns: RESOURCE_COLUMNS.registries,
    createFields: [
      { flag: '--name <text>', help: 'name', path: 'name', kind: 'text' },
      { flag: '--username <text>', help: 'user of the registry', path: 'username', kind: 'text' },
      {
        flag: '--password <text>',
        help: 'password or token; better @file or -, which no process list shows',
        path: 'password',
        kind: 'source',
      },
    ],
    updateFields: null,
  },
]

/** Adds `runyard endpoints|templates|secrets|keys|accounts|volumes|registries list|get|create|update|delete`; accounts stay. */
export function addResources(program: Command): void {
  for (const resource of RESOURCES) {
    const group = program.command(resource.name).description(`list, show and change ${resource.name}`)
    addReading(group, resource)
    addChanging(group, resource)
    if (resource.name === 'keys') addKeyVerbs(group, resource)
    if (resource.name === 'endpoints') addEndpointKeyVerbs(group, resource)
    if (resource.name === 'endpoints') addRestart(group)
    if (resource.name === 'endpoints') addReleases(group)
    if (resource.name === 'endpoints') addRollback(group)
    if (resource.name === 'endpoints') addPromote(group)
  }
}

function addReading(group: Command, { name, one, path, wrapper, columns }: Resource): void {
  withConnection(group.command('list').alias('ls').description(`list all ${name}`)).action(
    async (options: ConnectionOptions) => printList(options, await pages(options, path, wrapper), columns, name),
  )
  withConnection(group.command('get').argument('<id>').description(`show one ${one}`)).action(
    async (id: string, options: ConnectionOptions) =>
      print(options, await named(options, name, id, known => ask(options, `${path}/${encodeURIComponent(known)}`))),
  )
}

function addChanging(group: Command, resource: Resource): void {
  const { one, path, createFields, updateFields, name, stays } = resource
  const create = withBody(group.command('create').description(`create one ${one}`), createFields)
  if (name === 'endpoints') withGpuOption(create)
  if (name === 'keys') {
    create.option('--jobs <endpoint>', 'may do nothing but call this endpoint; its id or name')
    create.option('--expires <time>', 'how long it is valid, such as 15m, 12h or 30d')
  }
  create.action(async (options: BodyOptions & ConnectionOptions) => {
    const body = bodyOf(createFields, options)
    let whole: Readonly<Record<string, unknown>> = body
    if (name === 'endpoints') whole = await withGpus(options, withScaling({ type: 'QUEUE', ...body }), gpusIn(options))
    if (name === 'keys') whole = await withKeyOptions(options, body)
    await print(options, await ask(options, path, { method: 'POST', body: whole }))
  })
  if (updateFields === null) addNoSuchVerb(group, 'update', `a ${one} does not change; create another one`)
  else addUpdate(group, resource, updateFields)
  if (stays) return
  const verb = { word: 'delete', alias: 'rm', description: `delete one ${one}`, done: 'deleted' }
  addDeletion(group, resource, verb, options => (id, act) => named(options, name, id, act))
}

function addUpdate(group: Command, { one, path, name }: Resource, updateFields: readonly Field[]): void {
  const update = withBody(group.command('update').argument('<id>').description(`change one ${one}`), updateFields)
  if (name === 'endpoints') withGpuOption(update)
  update.action(async (id: string, options: BodyOptions & ConnectionOptions) => {
    const given = bodyOf(updateFields, options, true)
    const change = async (known: string) => {
      const at = `${path}/${encodeURIComponent(known)}`
      const before = wantsJson(options) ? null : await answerValue<TableRow>(await ask(options, at))
      const body = name === 'endpoints' ? await changedGpus(options, known, given, gpusIn(options)) : given
      const isDone = body !== given && Object.keys(body).length === 0
      const request: CliRequest = isDone ? {} : { method: 'PATCH', body }
      const after = await answerValue<TableRow>(await ask(options, at, request))
      if (before !== null) tellChange(`${one} ${known}`, before, after, given, gpusIn(options) !== null)
      return after
    }
    printValue(options, await named(options, name, id, change))
  })
}

/** Says on standard error what a change was. @param who the resource @param body what was sent of it @param withGpus whether its hardware was changed beside that */
function tellChange(
  who: string,
  before: TableRow,
  after: TableRow,
  body: Readonly<Record<string, unknown>>,
  withGpus: boolean,
): void {
  const beside = [...('envChanges' in body ? ['env'] : []), ...(withGpus ? ['gpu', 'cpu'] : [])]
  const members = 'templateId' in body ? null : [...Object.keys(body), ...beside]
  const lines = changeLines(before, after, members)
  // Their values are in no answer.
  for (const secret of ['value', 'password']) if (secret in body) lines.push(`${secret} changed`)
  const known = (before.env ?? {}) as Readonly<Record<string, string>>
  const absent = Object.entries((body.envChanges ?? {}) as Readonly<Record<string, string | null>>)
    .filter(([name, value]) => value === null && !Object.hasOwn(known, name))
    .map(([name]) => `env ${name} was not there`)
  const what = lines.length === 0 ? 'is as it was' : 'is changed:'
  printText(`${[`${who} ${what}`, ...[...lines, ...absent].map(line => `  ${line}`)].join('\n')}\n`, process.stderr)
}

/** Does something with a resource of an id, which for endpoints may be a name too. */
function named<Result>(
  options: ConnectionOptions,
  resource: string,
  id: string,
  act: (id: string) => Promise<Result>,
): Promise<Result> {
  return resource === 'endpoints' ? withEndpointName(options, id, act) : act(id)
}

/** The body of a new key with what `--jobs` and `--expires` say. @throws CliError for a time that is none, or an endpoint that is not there */
async function withKeyOptions(
  options: BodyOptions & ConnectionOptions,
  body: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const { jobs, expires } = options
  const whole: Record<string, unknown> = { ...body }
  if (jobs !== undefined) {
    if (body.scope !== undefined) throw new CliError('--jobs and --scope both say what it may do', EXIT.usage)
    const found = await withEndpointName(options, String(jobs), id =>
      ask(options, `/v2/serverless/${encodeURIComponent(id)}`),
    )
    const { id, name } = (await found.json()) as { id: string; name: string }
    whole.scope = { type: 'restricted', management: 'none', jobs: { [id]: 'write' } }
    whole.name ??= `jobs of ${name}`
  }
  if (expires === undefined) return whole
  const validMs = timeSpanMs(String(expires))
  if (validMs === null)
    throw new CliError(`--expires takes a time such as 15m, 12h or 30d, not '${expires}'`, EXIT.usage)
  if (body.expiresAt !== undefined) throw new CliError('--expires and --expires-at both say when it ends', EXIT.usage)
  whole.expiresAt = new Date(Date.now() + validMs).toISOString()
  return whole
}

function withGpuOption(command: Command): void {
  command.option('--gpu <names>', 'such as "RTX 4090", ADA_24, any of this machine, or none for the CPU')
}

function gpusIn({ gpu }: BodyOptions): string | null {
  return gpu === undefined ? null : String(gpu)
}

/** Adds the default scaling of the endpoint's type if none is given. */
function withScaling(body: Record<string, unknown>): Record<string, unknown> {
  const requests = { type: 'REQUEST_COUNT', requestCount: 4 }
  return {
    scaling: plainValue(body.type) === 'LOAD_BALANCER' ? requests : { type: 'QUEUE_DELAY', queueDelay: 4 },
    ...body,
  }
}

function addKeyVerbs(group: Command, { path }: Resource): void {
  const set = (verb: string, body: object, description: string) =>
    withConnection(group.command(verb).argument('<id>').description(description)).action(
      async (id: string, options: ConnectionOptions) =>
        print(options, await ask(options, `${path}/${encodeURIComponent(id)}`, { method: 'PATCH', body })),
    )
  set('disable', { disabled: true }, 'refuse a key until it is enabled again')
  set('enable', { disabled: false }, 'take a disabled key again')
  const verb = { word: 'revoke', description: 'delete a key, which is refused at once', done: 'revoked' }
  addDeletion(group, { name: 'keys', one: 'API key', path }, verb, () => (id, act) => act(id))
}

function addRestart(group: Command): void {
  const restart = group.command('restart').argument('<endpoint>', 'the id or the name of an endpoint')
  withConnection(
    restart.description('replace its workers: new ones start at once, also after crashes; old ones finish their jobs'),
  ).action(async (id: string, options: ConnectionOptions) => {
    const answer = await withEndpointName(options, id, known =>
      ask(options, `/ops/restart/${encodeURIComponent(known)}`, { method: 'POST' }),
    )
    const restarted = await answerValue<TableRow>(answer)
    if (wantsJson(options)) printValue(options, restarted)
    else printText(`endpoint ${shown(restarted.id)} gets new workers, version ${shown(restarted.version)}\n`)
  })
}

/** Adds commands for the keys that belong to endpoints; `runyard keys revoke` deletes one. */
function addEndpointKeyVerbs(group: Command, { path }: Resource): void {
  withConnection(group.command('keys').description('list the keys that endpoints have of their own')).action(
    async (options: ConnectionOptions) => {
      const rows = await pages(options, '/v2/account/endpoint-keys', 'keys')
      printList(options, rows, RESOURCE_COLUMNS.endpointKeys, 'keys of endpoints')
    },
  )
  const rotate = group.command('rotate-key').argument('<id>')
  withConnection(
    rotate.description('give an endpoint a new key, and show it; the one before is refused at once'),
  ).action(async (id: string, options: ConnectionOptions) =>
    print(options, await ask(options, `${path}/${encodeURIComponent(id)}/rotate-key`, { method: 'POST' })),
  )
}

function withBody(command: Command, fields: readonly Field[]): Command {
  for (const { flag, help, kind } of fields) {
    if (kind === 'pairs' || kind === 'names') command.option(flag, help, collected)
    else command.option(flag, help)
  }
  command.option('--file <file>', 'JSON object to start from; - for standard input')
  command.option('--set <path=value>', 'any member of the body, such as workers.max=5; again for more', collected)
  return withConnection(command)
}
