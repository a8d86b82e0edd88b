import type { Command } from 'commander'
import { type DownloadProgress, progressText } from '../../core/models/download-progress.ts'
import { sizeText } from '../../core/models/model-problem.ts'
import { parseModelReference } from '../../core/models/model-reference.ts'
import { agreeToDelete, withYes, type YesOption } from '../client/agreeing.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { addNoSuchVerb } from '../client/locate.ts'
import { printList, printValue } from '../client/printing.ts'
import { CliError, EXIT } from '../exit.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import { type Column, column, type TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

interface Content {
  readonly models: TableRow[]
  readonly downloads: (TableRow & DownloadProgress & { readonly name: string })[]
  readonly usedBytes: number
  readonly limitBytes: number
}

interface Pulled extends DownloadProgress {
  readonly done: boolean
  readonly commit: string | null
}

/** `runyard models list|pull|remove|alias|aliases|unalias|warm`. */
export function addModels(program: Command): void {
  const group = program
    .command('models')
    .summary('models that this machine keeps, and names of models')
    .description('models of Hugging Face that this machine keeps for workers, and names of models for clients')
  withConnection(group.command('list').alias('ls')).description('list them, the last used first').action(list)
  withConnection(group.command('pull').argument('<model>', 'as owner/name or owner/name:revision'))
    .description('download a model, with the secret HF_TOKEN where its hub wants a token')
    .action(pull)
  const removal = group.command('remove').alias('rm')
  withConnection(withYes(removal.argument('<model>', 'as owner/name, or owner/name:commit for one revision')))
    .description('remove a model that no worker has')
    .action(remove)
  withConnection(
    group
      .command('alias')
      .argument('<name=endpoints>', 'name=endpoint or name=endpoint,endpoint: the first that is ready answers'),
  )
    .description('give models another name for OpenAI clients')
    .action(saveAlias)
  withConnection(group.command('aliases')).description('list these names').action(listAliases)
  withConnection(group.command('unalias').argument('<name>', 'of an alias'))
    .description('remove such a name; its endpoints stay')
    .action(removeAlias)
  withConnection(group.command('warm').argument('<model>', 'as OpenAI clients name it'))
    .description('start a worker for a model')
    .action(warm)
  const alternative = 'runyard models pull <owner/name>, or name it in modelReferences of an endpoint'
  addNoSuchVerb(group, 'create', `a model is downloaded: ${alternative}`)
  addNoSuchVerb(group, 'delete', 'runyard models remove <owner/name>')
}

async function list(options: ConnectionOptions): Promise<void> {
  const { models, downloads, usedBytes, limitBytes } = (await (await ask(options, '/ops/models')).json()) as Content
  printList(options, models, RESOURCE_COLUMNS.models, 'models')
  if (wantsJson(options)) return
  for (const { name, ...progress } of downloads) printText(`${name} is being downloaded: ${progressText(progress)}\n`)
  printText(`${sizeText(usedBytes)} of ${sizeText(limitBytes)} used\n`)
}

async function pull(model: string, options: ConnectionOptions): Promise<void> {
  const { path, revision } = located(model)
  const query = revision === null ? '' : `?revision=${encodeURIComponent(revision)}`
  for (;;) {
    const state = (await (await ask(options, `${path}${query}`, { method: 'POST' })).json()) as Pulled
    if (wantsJson(options)) printValue(options, { ...state })
    else if (state.done) printText(`${model} is there, as ${state.commit}\n`)
    else printText(`${progressText(state)}\n`)
    if (state.done) return
  }
}

async function remove(model: string, options: ConnectionOptions & YesOption): Promise<void> {
  const { path, revision } = located(model)
  const loss = 'will be removed from this machine: its next use downloads it again'
  await agreeToDelete(options, async () => `${model} ${loss}`)
  await ask(options, `${path}${revision === null ? '' : `?commit=${encodeURIComponent(revision)}`}`, {
    method: 'DELETE',
  })
  if (!wantsJson(options)) printText(`${model} is removed\n`)
}

const ALIASES = '/v2/account/model-aliases'

interface Alias extends TableRow {
  readonly name: string
  readonly endpoints: readonly { readonly id: string; readonly name: string }[]
}

const ALIAS_COLUMNS: readonly Column[] = [
  column('NAME', 'name'),
  {
    title: 'ENDPOINTS',
    text: ({ endpoints }) => (endpoints as Alias['endpoints']).map(({ name }) => name).join(', ') || '-',
  },
]

async function saveAlias(text: string, options: ConnectionOptions): Promise<void> {
  const at = text.indexOf('=')
  const [name, list] = [text.slice(0, at), text.slice(at + 1)]
  const endpoints = list.split(',').map(part => part.trim())
  if (at < 1 || endpoints.includes(''))
    throw new CliError(`'${text}' is no alias; its form is name=endpoint or name=endpoint,endpoint`, EXIT.usage)
  const saved = (await (await ask(options, ALIASES, { method: 'PUT', body: { name, endpoints } })).json()) as Alias
  if (wantsJson(options)) printValue(options, saved)
  else printText(`${name} is ${saved.endpoints.map(endpoint => endpoint.name).join(', else ')}\n`)
}

async function listAliases(options: ConnectionOptions): Promise<void> {
  const { aliases } = (await (await ask(options, ALIASES)).json()) as { readonly aliases: Alias[] }
  printList(options, aliases, ALIAS_COLUMNS, 'aliases')
}

async function removeAlias(name: string, options: ConnectionOptions): Promise<void> {
  await ask(options, `${ALIASES}?name=${encodeURIComponent(name)}`, { method: 'DELETE' })
  if (!wantsJson(options)) printText(`${name} is removed\n`)
}

async function warm(model: string, options: ConnectionOptions): Promise<void> {
  const answer = await ask(options, '/v2/account/models/warm', { method: 'POST', body: { model } })
  const warmed = (await answer.json()) as { readonly name: string; readonly state: string }
  if (wantsJson(options)) printValue(options, { ...warmed })
  else printText(warmed.state === 'ready' ? `${warmed.name} is ready\n` : `a worker of ${warmed.name} starts\n`)
}

/** The route of a model. @throws CliError when the text names none */
function located(text: string): { path: string; revision: string | null } {
  const reference = parseModelReference(text)
  if (reference === null)
    throw new CliError(`'${text}' names no model; its form is owner/name or owner/name:revision`, EXIT.usage)
  const { name, revision } = reference
  const isNamed = text.replace(/^https:\/\//, '').includes(':')
  return { path: `/ops/models/${name}`, revision: isNamed ? revision : null }
}
