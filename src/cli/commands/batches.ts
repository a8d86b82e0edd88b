import type { Command } from 'commander'
import { JsonText } from '../../core/json/json-format.ts'
import { answerValue, jsonLine, pageItems } from '../client/answers.ts'
import { ask, type ConnectionOptions, withConnection } from '../client/connection.ts'
import { batchKind } from '../client/kinds.ts'
import { withEndpointName, withName } from '../client/names.ts'
import { fieldOption } from '../client/option-fields.ts'
import { pages } from '../client/pages.ts'
import { print, printList } from '../client/printing.ts'
import { readText } from '../client/text-files.ts'
import { CliError, EXIT } from '../exit.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import type { TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

interface CreateOptions extends ConnectionOptions {
  readonly requests: string
  readonly name?: string
  readonly draft?: boolean
}

/** Items of one page, and requests that one call adds. */
const PAGE = 1_000
/** Characters of the requests that one call adds; the server takes 10 MB. */
const MAX_ADDED = 8_000_000

/** `runyard batches list|create|get|requests|add|finalize|cancel <endpoint> [batch]`. */
export function addBatches(program: Command): void {
  const group = program
    .command('batches')
    .summary('list, create, read and end batches')
    .description('many requests as one: list, create, read and end batches')
  const listing = group.command('list').alias('ls').description('list the batches of an endpoint or of all')
  listing.argument('[endpoint]', 'the id or the name of a queue endpoint; all of them where it is left out')
  withConnection(listing).action(list)
  const creation = onEndpoint(group, 'create', 'submit the requests of a file as one batch')
    .requiredOption('-r, --requests <file>', 'one request a line, as of run: {"input": {...}}; - for standard input')
    .addOption(fieldOption('--name <text>', 'name of the batch', 'name'))
    .option('--draft', 'leave it open for more requests; finalize submits it')
  creation.action(create)
  onBatch(group, 'get', 'show one batch with its counts', async (options, path) =>
    print(options, await ask(options, path)),
  )
  onBatch(group, 'requests', 'print its requests with their outputs, a JSON line each', printRequests)
  const adding = onBatch(
    group,
    'add',
    'add requests to a draft',
    async (options: ConnectionOptions & { requests?: string }, path) => {
      if (options.requests === undefined) throw new CliError('add takes --requests <file>', EXIT.usage)
      let answer: Response | null = null
      for (const part of splitRequests(requestsIn(options.requests))) answer = await addPart(options, path, part)
      if (answer !== null) await print(options, answer)
    },
  )
  adding.option('-r, --requests <file>', 'one request a line, as of run: {"input": {...}}; - for standard input')
  for (const [verb, words] of Object.entries({
    finalize: 'submit a draft',
    cancel: 'cancel what waits or runs of it',
  })) {
    onBatch(group, verb, words, async (options, path) =>
      print(options, await ask(options, `${path}/${verb}`, { method: 'POST' })),
    )
  }
}

async function list(endpoint: string | undefined, options: ConnectionOptions): Promise<void> {
  if (endpoint === undefined) {
    printList(options, await pages(options, '/ops/batches', 'batches'), RESOURCE_COLUMNS.batchesOfAll, 'batches')
    return
  }
  const batches = async (id: string) => (await batchKind(id).list(options)) as unknown as TableRow[]
  printList(options, await withEndpointName(options, endpoint, batches), RESOURCE_COLUMNS.batches, 'batches')
}

function batchPath(endpoint: string): string {
  return `/v2/${encodeURIComponent(endpoint)}/batch`
}

function onEndpoint(group: Command, verb: string, description: string): Command {
  const command = group.command(verb).argument('<endpoint>', 'the id or the name of a queue endpoint')
  return withConnection(command.description(description))
}

function onBatch(
  group: Command,
  verb: string,
  description: string,
  act: (options: ConnectionOptions, path: string) => Promise<void>,
): Command {
  return onEndpoint(group, verb, description)
    .argument('<batch>', 'the id or the name of a batch')
    .action((endpoint: string, batch: string, options: ConnectionOptions) =>
      withEndpointName(options, endpoint, id =>
        withName(options, batchKind(id), batch, known => act(options, `${batchPath(id)}/${encodeURIComponent(known)}`)),
      ),
    )
}

async function create(endpoint: string, options: CreateOptions): Promise<void> {
  const parts = splitRequests(requestsIn(options.requests))
  const query = options.name === undefined ? '' : `?${new URLSearchParams({ name: options.name })}`
  await withEndpointName(options, endpoint, async id => {
    const answer = await ask(options, `${batchPath(id)}${query}`, { method: 'POST', body: parts[0] ?? [] })
    const { id: batch } = await answerValue<{ id: string }>(answer)
    const path = `${batchPath(id)}/${encodeURIComponent(batch)}`
    try {
      for (const part of parts.slice(1)) await addPart(options, path, part)
      if (options.draft !== true) await ask(options, `${path}/finalize`, { method: 'POST' })
    } catch (error) {
      // Half of a batch helps nobody, and a draft counts towards the limits of its account.
      await ask(options, `${path}/cancel`, { method: 'POST' }).catch(() => {})
      throw error
    }
    await print(options, await ask(options, path))
  })
}

function addPart(options: ConnectionOptions, path: string, requests: readonly JsonText[]): Promise<Response> {
  return ask(options, `${path}/requests`, { method: 'POST', body: { requests } })
}

/** The requests of a file, one JSON object a line. @throws CliError that names the line of the first mistake */
function requestsIn(file: string): JsonText[] {
  const text = readText(file === '-' ? null : file, { unreadable: EXIT.data })
  const requests = text.split('\n').flatMap((line, index) => (line.trim() === '' ? [] : [readRequest(line, index + 1)]))
  if (requests.length === 0) throw new CliError(`${file} has no requests`, EXIT.data)
  return requests
}

function readRequest(line: string, number: number): JsonText {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null && 'input' in value) return new JsonText(line.trim())
  } catch (error) {
    throw new CliError(`line ${number} is not JSON: ${(error as Error).message}`, EXIT.data)
  }
  throw new CliError(`line ${number} must be an object with an "input"`, EXIT.data)
}

/** Requests in parts that one call may have. */
function splitRequests(requests: readonly JsonText[]): JsonText[][] {
  const parts: JsonText[][] = [[]]
  let characters = 0
  for (const request of requests) {
    const { length } = request.text
    const last = parts.at(-1)!
    if (last.length === PAGE || (characters + length > MAX_ADDED && last.length > 0)) {
      parts.push([request])
      characters = length
    } else {
      last.push(request)
      characters += length
    }
  }
  return parts
}

async function printRequests(options: ConnectionOptions, path: string): Promise<void> {
  for (let offset = 0; ; offset += PAGE) {
    const page = await pageAt(options, `${path}/requests`, offset)
    for (const row of pageItems<TableRow>(page, 'requests')) printText(`${jsonLine(row)}\n`)
    if (page.hasMore !== true) return
  }
}

async function pageAt(options: ConnectionOptions, path: string, offset: number): Promise<Record<string, unknown>> {
  return answerValue(await ask(options, `${path}?offset=${offset}&limit=${PAGE}`))
}
