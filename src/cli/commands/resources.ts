import type { Command } from 'commander'
import { type AuditView, fieldChanges, type ShownValue } from '../../core/audit/field-change.ts'
import { listItems } from '../../core/text-parts.ts'
import { UsageError } from '../cli-command.ts'
import { answerValue } from '../client/answers.ts'
import { ask, type CliRequest, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { changedGpus, checkShare, withGpus } from '../client/endpoint-gpus.ts'
import {
  type BodyOptions,
  collected,
  type Field,
  plainValue,
  readBody,
  withBody,
  withIds,
  withSecrets,
} from '../client/fields.ts'
import { idOrName, KINDS, type KindName, type NamedKind } from '../client/kinds.ts'
import { addNoSuchVerb } from '../client/locate.ts'
import { findId, withEndpointName, withName } from '../client/names.ts'
import { fieldOption } from '../client/option-fields.ts'
import { parseLimits } from '../client/option-words.ts'
import { pages } from '../client/pages.ts'
import { print, printList, printValue } from '../client/printing.ts'
import { timeSpanMs } from '../client/time-spans.ts'
import { CliError, EXIT } from '../exit.ts'
import { changeText } from '../terminal/audit-columns.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import { type Column, onOneLine, shown, type TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'
import { addDeletion } from './deletion.ts'
import { addPromote, addReleases, addRollback } from './endpoint-releases.ts'
import { RESOURCE_OPTIONS } from './resource-options.ts'
import { addVolumeKey } from './volume-key.ts'

/** A kind of resource that the command line lists, shows and changes through the REST API. */
interface Resource extends NamedKind {
  /** The command, such as `endpoints`. */
  readonly name: KindName
  readonly columns: readonly Column[]
  readonly createFields: readonly Field[]
  /** Null where there is no verb `update`. */
  readonly updateFields: readonly Field[] | null
}

const RESOURCES: readonly Resource[] = (Object.keys(RESOURCE_OPTIONS) as (keyof typeof RESOURCE_OPTIONS)[]).map(
  name => {
    const { create, update } = RESOURCE_OPTIONS[name]
    return { ...KINDS[name], name, columns: RESOURCE_COLUMNS[name], createFields: create, updateFields: update }
  },
)

/**
 * Adds `runyard endpoints|templates|secrets|keys|accounts|volumes|global-volumes|registries` with the verbs `list`,
 * `get`, `create`, `update` and `delete`; accounts stay.
 */
export function addResources(program: Command): void {
  for (const resource of RESOURCES) {
    const group = program.command(resource.name).description(`list, show and change ${resource.name}`)
    addReading(group, resource)
    addChanging(group, resource)
    if (resource.name === 'keys') addKeyVerbs(group, resource)
    if (resource.name === 'volumes' || resource.name === 'global-volumes') addVolumeKey(group, resource)
    if (resource.name === 'endpoints') addEndpointKeyVerbs(group, resource)
    if (resource.name === 'endpoints') addRestart(group)
    if (resource.name === 'endpoints') addReleases(group)
    if (resource.name === 'endpoints') addRollback(group)
    if (resource.name === 'endpoints') addPromote(group)
  }
}

function addReading(group: Command, resource: Resource): void {
  const { name, one, path, columns } = resource
  withConnection(group.command('list').alias('ls').description(`list all ${name}`)).action(
    async (options: ConnectionOptions) => {
      printList(options, (await resource.list(options)) as unknown as TableRow[], columns, name)
      if (name === 'volumes') await noteGlobalVolumes(options)
    },
  )
  addVerb(group, 'get', resource)
    .description(`show one ${one}`)
    .action(async (id: string, options: ConnectionOptions) =>
      print(
        options,
        await withName(options, resource, id, known => ask(options, `${path}/${encodeURIComponent(known)}`)),
      ),
    )
}

/** Says on standard error that there are volumes in the other list. */
async function noteGlobalVolumes(options: ConnectionOptions): Promise<void> {
  if (wantsJson(options)) return
  const { length } = await KINDS['global-volumes'].list(options)
  if (length === 0) return
  const found = length === 1 ? 'there is 1 global volume' : `there are ${length} global volumes`
  printText(`${found}: ${KINDS['global-volumes'].listing}\n`, process.stderr)
}

/** A verb on one resource, by its id or name. */
function addVerb(group: Command, verb: string, kind: NamedKind): Command {
  return withConnection(group.command(verb).argument('<id>', idOrName(kind)))
}

function addChanging(group: Command, resource: Resource): void {
  const { one, path, createFields, updateFields, name } = resource
  const create = withBody(group.command('create').description(`create one ${one}`), createFields)
  if (name === 'endpoints') withGpuOption(create)
  if (name === 'keys') {
    create.addOption(
      fieldOption('--jobs <endpoint>', 'may do nothing but call this endpoint; its id or name', 'scope.jobs'),
    )
    create.addOption(
      fieldOption('--models <names>', 'may do nothing but call these models at /openai/v1', 'scope.models'),
    )
    create.addOption(fieldOption('--expires <time>', 'time until it expires, such as 15m, 12h or 30d', 'expiresAt'))
  }
  create.action(async (typed: BodyOptions & ConnectionOptions) => {
    const options = await withIds(createFields, typed)
    const body = await withSecrets(createFields, options, readBody(createFields, options))
    let whole: Readonly<Record<string, unknown>> = body
    if (name === 'endpoints') checkShare(options, body)
    if (name === 'endpoints') whole = await withGpus(options, withScaling({ type: 'QUEUE', ...body }), gpusIn(options))
    if (name === 'keys') whole = await withKeyOptions(options, body)
    await print(options, await ask(options, path, { method: 'POST', body: whole }))
  })
  if (updateFields === null) addNoSuchVerb(group, 'update', `a ${one} does not change; create another one`)
  else addUpdate(group, resource, updateFields)
  if (name === 'accounts') return
  const verb = { word: 'delete', alias: 'rm', description: `delete one ${one}`, done: 'deleted' }
  addDeletion(group, resource, verb)
}

function addUpdate(group: Command, resource: Resource, updateFields: readonly Field[]): void {
  const { one, path, name } = resource
  const described = group.command('update').argument('<id>', idOrName(resource)).description(`change one ${one}`)
  const update = withBody(described, updateFields)
  if (name === 'endpoints') withGpuOption(update)
  if (name === 'accounts') withLimitOption(update)
  update.action(async (id: string, typed: BodyOptions & ConnectionOptions) => {
    const options = await withIds(updateFields, typed)
    const given = await withSecrets(updateFields, options, readBody(updateFields, options, true), true)
    if (Object.keys(given).length === 0 && options.gpu === undefined && options.limit === undefined)
      throw new UsageError('no change is given; give an option', update)
    if (name === 'endpoints') checkShare(options, given)
    // CPUs replace GPUs, so the request need not remove these.
    const hardware = gpusIn(options) ?? (given.cpu !== undefined && given.gpu === undefined ? 'none' : null)
    const change = async (known: string) => {
      const at = `${path}/${encodeURIComponent(known)}`
      const body = name === 'accounts' ? await withLimits(options, at, given) : given
      const previous = wantsJson(options) ? null : await answerValue<TableRow>(await ask(options, at))
      const rest = name === 'endpoints' ? await changedGpus(options, known, body, hardware) : body
      const isDone = rest !== body && Object.keys(rest).length === 0
      const request: CliRequest = isDone ? {} : { method: 'PATCH', body: rest }
      const after = await answerValue<TableRow>(await ask(options, at, request))
      if (previous !== null) printChange(`${one} ${known}`, previous, after, body, hardware !== null)
      return after
    }
    printValue(options, await withName(options, resource, id, change))
  })
}

/**
 * Prints the changes on standard error.
 * @param who the resource
 * @param body the sent fields
 * @param withGpus true if its hardware was changed too
 */
function printChange(
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
  const previousEnv = (before.env ?? {}) as Readonly<Record<string, string>>
  const absent = Object.entries((body.envChanges ?? {}) as Readonly<Record<string, string | null>>)
    .filter(([name, value]) => value === null && !Object.hasOwn(previousEnv, name))
    .map(([name]) => `env ${name} was not there`)
  const what = lines.length === 0 ? 'is as it was' : 'is changed:'
  printText(`${[`${who} ${what}`, ...[...lines, ...absent].map(line => `  ${line}`)].join('\n')}\n`, process.stderr)
}

/**
 * The body of a new key with the values of `--jobs` and `--expires`.
 * @throws CliError for an invalid time, or an endpoint that does not exist
 */
async function withKeyOptions(
  options: BodyOptions & ConnectionOptions,
  body: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const { jobs, models, expires } = options
  const whole: Record<string, unknown> = { ...body }
  if (models !== undefined) {
    if (body.scope !== undefined || jobs !== undefined)
      throw new CliError('--models, --jobs and --scope each say what it may do; give one', EXIT.usage)
    const names = listItems(String(models), ',')
    if (names.length === 0) throw new CliError('--models takes names of models, with commas between them', EXIT.usage)
    whole.scope = { type: 'restricted', management: 'none', jobs: 'none', models: names }
    whole.name ??= `models ${names.join(', ')}`.slice(0, 191)
  }
  if (jobs !== undefined) {
    if (body.scope !== undefined) throw new CliError('--jobs and --scope both say what it may do', EXIT.usage)
    const endpoint = await findId(options, KINDS.endpoints, String(jobs), '--jobs')
    const response = await ask(options, `/v2/serverless/${encodeURIComponent(endpoint)}`)
    const { id, name } = (await response.json()) as { id: string; name: string }
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
  const help = 'such as "RTX 4090", ADA_24, any of this machine, or none for the CPU'
  command.addOption(fieldOption('--gpu <names>', help, 'gpu', 'gpu.pools', 'gpu.excludedTypes'))
}

function withLimitOption(command: Command): void {
  const help = 'such as gpus=2, queuedJobs=none or gpus=default; again for more; for the operator'
  command.addOption(fieldOption('--limit <name=value>', help, 'limits').argParser(collected))
}

/** A change of an account: single limits are completed to all of them. @param at path of the account */
async function withLimits(
  options: BodyOptions & ConnectionOptions,
  at: string,
  body: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const { limit } = options
  if (limit === undefined) return body
  if (body.limits !== undefined) throw new CliError('--limit is for single limits; leave the others out', EXIT.usage)
  const given = parseLimits('--limit', limit as readonly string[])
  const { limits } = (await (await ask(options, at)).json()) as { limits: Readonly<Record<string, unknown>> }
  const all = Object.entries({ ...limits, ...Object.fromEntries(given) })
  return { ...body, limits: Object.fromEntries(all.filter(([, value]) => value !== undefined)) }
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

function addKeyVerbs(group: Command, resource: Resource): void {
  const { path } = resource
  const set = (verb: string, body: object, description: string) =>
    addVerb(group, verb, resource)
      .description(description)
      .action(async (id: string, options: ConnectionOptions) => {
        const change = (known: string) =>
          ask(options, `${path}/${encodeURIComponent(known)}`, { method: 'PATCH', body })
        await print(options, await withName(options, resource, id, change))
      })
  set('disable', { disabled: true }, 'refuse a key until it is enabled again')
  set('enable', { disabled: false }, 'take a disabled key again')
  addVerb(group, 'rotate', resource)
    .description('give a new key with the rights, limits and expiry of another one, and show it')
    .option('--overlap <time>', 'time for which the old key goes on, such as 0s, 1h or 7d', '1d')
    .action(async (id: string, options: ConnectionOptions & { readonly overlap: string }) => {
      const { overlap } = options
      const overlapMs = timeSpanMs(overlap)
      if (overlapMs === null)
        throw new CliError(`--overlap takes a time such as 0s, 1h or 7d, not '${overlap}'`, EXIT.usage)
      const body = { overlapSeconds: overlapMs / 1_000 }
      const rotate = (known: string) =>
        ask(options, `${path}/${encodeURIComponent(known)}/rotate`, { method: 'POST', body })
      await print(options, await withName(options, resource, id, rotate))
    })
  const verb = { word: 'revoke', description: 'delete a key, which is refused at once', done: 'revoked' }
  addDeletion(group, resource, verb)
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
function addEndpointKeyVerbs(group: Command, resource: Resource): void {
  withConnection(group.command('keys').description('list the keys that endpoints have of their own')).action(
    async (options: ConnectionOptions) => {
      const rows = await pages(options, '/v2/account/endpoint-keys', 'keys')
      printList(options, rows, RESOURCE_COLUMNS.endpointKeys, 'keys of endpoints')
    },
  )
  addVerb(group, 'rotate-key', resource)
    .description('give an endpoint a new key, and show it; the previous one is refused at once')
    .action(async (id: string, options: ConnectionOptions) => {
      const rotate = (known: string) =>
        ask(options, `${resource.path}/${encodeURIComponent(known)}/rotate-key`, { method: 'POST' })
      await print(options, await withName(options, resource, id, rotate))
    })
}

/** Members whose values may be secret. */
const HIDDEN = new Set(['args', 'description'])

/**
 * The differences of a resource before and after a change, a line each; empty without any.
 * @param members those that were changed; null for any
 */
function changeLines(before: TableRow, after: TableRow, members: readonly string[] | null): string[] {
  const chosen = (row: TableRow) =>
    auditView(Object.entries(row).filter(([name]) => members === null || members.includes(name)))
  return fieldChanges(chosen(before), chosen(after)).map(change => onOneLine(changeText(change)))
}

function auditView(members: readonly (readonly [name: string, value: unknown])[]): AuditView {
  const isHidden = ([name]: readonly [string, unknown]) => HIDDEN.has(name)
  const plain = members.filter(([name]) => name !== 'env')
  const env = Object.fromEntries(members).env as Readonly<Record<string, string>> | undefined
  return {
    shown: Object.fromEntries(plain.filter(member => !isHidden(member)).flatMap(flattened)),
    hidden: Object.fromEntries(plain.filter(isHidden)) as AuditView['hidden'],
    variables: env === undefined ? {} : { env },
  }
}

/** The members of an object by themselves, as `workers.max`. */
function flattened([name, value]: readonly [string, unknown]): [string, ShownValue][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value as ShownValue]]
  return Object.entries(value).map(([inner, one]) => [`${name}.${inner}`, one as ShownValue])
}
