import { type Command, Option } from 'commander'
import {
  READY_WORKERS,
  type ReadyWorker,
  type ReadyWorkers,
  readReadyWorkers,
} from '../../core/endpoints/ready-workers.ts'
import { compactJson, indentedJson, JsonText, jsonText } from '../../core/json/json-format.ts'
import { nearest } from '../../core/nearest.ts'
import { answerValue, memberJson, parsed } from '../client/answers.ts'
import { ask, type ConnectionOptions, serverUrl, wantsJson, withConnection } from '../client/connection.ts'
import { withGpus } from '../client/endpoint-gpus.ts'
import { collected, namedValues } from '../client/fields.ts'
import { KINDS } from '../client/kinds.ts'
import { findId } from '../client/names.ts'
import { fieldOption, setsSecrets } from '../client/option-fields.ts'
import { parseGpuMemory } from '../client/option-words.ts'
import { printList, printValue } from '../client/printing.ts'
import { readText } from '../client/text-files.ts'
import { CliError, EXIT } from '../exit.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import { printText } from '../terminal/terminal-text.ts'
import { run } from './run.ts'

interface DeployOptions extends ConnectionOptions {
  readonly list?: boolean
  readonly about?: boolean
  readonly name?: string
  readonly set?: readonly string[]
  readonly gpu?: string
  readonly gpuCount?: string
  readonly gpuMemory?: string
  readonly image?: string
  readonly min?: string
  readonly max?: string
  readonly registry?: string
  readonly run?: boolean
  readonly catalog?: string
}

const GPU_HELP = 'such as "RTX 4090", or none (default: those of this machine with enough memory)'

/** `runyard deploy <worker>`: an endpoint that runs a public worker image. */
export function addDeploy(program: Command): void {
  const command = program
    .command('deploy')
    .argument('[worker]', 'a worker of --list')
    .option('-l, --list', 'list the workers')
    .option('--about', 'show what a worker needs, its variables and its first request')
    .addOption(fieldOption('--name <text>', 'name of the endpoint (default: that of the worker)', 'name'))
    .addOption(
      setsSecrets(new Option('-s, --set <NAME=value>', 'variable of the worker; again for more'), 'env').argParser(
        collected,
      ),
    )
    .addOption(fieldOption('--gpu <names>', GPU_HELP, 'gpu', 'gpu.pools', 'gpu.excludedTypes'))
    .addOption(fieldOption('--gpu-count <n>', 'GPUs of one worker', 'gpu.count').default('1'))
    .addOption(fieldOption('--gpu-memory <GB|auto>', 'share of one GPU for each worker', 'gpu.memoryGb'))
    .addOption(fieldOption('--image <reference>', 'another version of the image', 'image'))
    .addOption(fieldOption('--min <n>', 'workers at least', 'workers.min').default('0'))
    .addOption(fieldOption('--max <n>', 'workers at most', 'workers.max').default('3'))
    .addOption(fieldOption('--registry <name>', 'saved registry credential, by name or id', 'registry'))
    .option('--run', 'run the first request, and wait for it')
    .option('--catalog <file>', 'your own catalog, in the format of the documentation')
  withConnection(command)
    .summary('make an endpoint of a ready worker, such as vllm')
    .description('make an endpoint of a ready worker, such as vllm or comfyui')
    .action(deploy)
}

async function deploy(name: string | undefined, options: DeployOptions): Promise<void> {
  const workers = readCatalog(options)
  if (options.list === true || name === undefined) return list(workers, options)
  const worker = Object.hasOwn(workers, name) ? workers[name] : undefined
  if (worker === undefined) throw unknownWorker(name, Object.keys(workers))
  if (options.about === true) return printAbout(name, worker, sampleInput(workers, name), options)
  const answer = await ask(options, '/v2/serverless', {
    method: 'POST',
    body: await endpointBody(name, worker, options),
  })
  const endpoint = await answerValue<{ id: string; name: string }>(answer)
  if (wantsJson(options)) printValue(options, endpoint)
  else printText(deployedText(endpoint, worker, sampleInput(workers, name), options))
  if (options.run === true) await run(endpoint.id, { ...options, input: sampleInput(workers, name) })
}

/** The workers of the package, or those of a file. @throws CliError with everything wrong with it */
function readCatalog({ catalog }: DeployOptions): ReadyWorkers {
  if (catalog === undefined) return READY_WORKERS
  let value: object
  const text = readText(catalog, { unreadable: EXIT.data })
  try {
    value = parsed(text)
  } catch (error) {
    throw new CliError(`${catalog} cannot be read: ${(error as Error).message}`, EXIT.data)
  }
  const reading = readReadyWorkers(value)
  if ('workers' in reading) return reading.workers
  const mistakes = reading.mistakes.map(mistake => `  ${mistake}`).join('\n')
  throw new CliError(`${catalog} is not a valid catalog:\n${mistakes}`, EXIT.data)
}

/** The input of the first job, from the catalog. */
function sampleInput(workers: ReadyWorkers, name: string): string {
  return compactJson(jsonText(memberJson(workers, name)?.members()?.get('input') ?? {}))
}

function unknownWorker(name: string, names: readonly string[]): CliError {
  const close = nearest(name, names)
  const hint = close === null ? `there are ${names.join(', ')}` : `did you mean ${close}?`
  return new CliError(`there is no worker '${name}'; ${hint}`, EXIT.notFound)
}

function list(workers: ReadyWorkers, options: DeployOptions): void {
  const rows = Object.entries(workers).map(([name, worker]) => {
    return { name, ...worker, input: new JsonText(sampleInput(workers, name)) }
  })
  printList(options, rows, RESOURCE_COLUMNS.readyWorkers, 'workers')
}

function printAbout(name: string, worker: ReadyWorker, input: string, options: DeployOptions): void {
  if (wantsJson(options)) {
    printText(`${jsonText({ name, ...worker, input: new JsonText(input) })}\n`)
    return
  }
  const { title, about: sentence, image, gpuMemoryGb, diskGb, env, openAi } = worker
  const variables = env.map(({ name: variable, about: meaning, default: value }) => {
    return `  ${variable}${value === undefined ? '' : `=${value}`}\n      ${meaning}\n`
  })
  const gpu = gpuMemoryGb === 0 ? 'no GPU' : `a GPU with ${gpuMemoryGb} GB`
  printText(
    `${title}: ${sentence}\nimage ${image}\nneeds ${gpu}, ${diskGb} GB of disk\n` +
      `${openAi ? 'takes requests of OpenAI clients too\n' : ''}` +
      `${variables.length === 0 ? '' : `\nvariables (--set NAME=value)\n${variables.join('')}`}` +
      `\nfirst request\n${indentedJson(input)}\n`,
  )
}

async function endpointBody(
  name: string,
  worker: ReadyWorker,
  options: DeployOptions,
): Promise<Record<string, unknown>> {
  const { gpuCount = '1', gpuMemory, min = '0', max = '3', registry } = options
  const given = namedValues('--set', options.set ?? [])
  warnOfTypos(Object.keys(given), worker)
  const defaults = worker.env.flatMap(({ name: variable, default: value }) =>
    value === undefined ? [] : [[variable, value] as const],
  )
  const body = {
    name: options.name ?? name,
    type: 'QUEUE',
    image: options.image ?? worker.image,
    disk: worker.diskGb,
    env: { ...Object.fromEntries(defaults), ...given },
    timeout: worker.timeoutMs,
    workers: { min: wholeNumber('--min', min), max: wholeNumber('--max', max) },
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    gpu: {
      count: wholeNumber('--gpu-count', gpuCount),
      ...(gpuMemory === undefined ? {} : { memoryGb: parseGpuMemory('--gpu-memory', gpuMemory) }),
    },
    ...(registry === undefined ? {} : { registry: await findId(options, KINDS.registries, registry, '--registry') }),
  }
  return { ...(await withGpus(options, body, options.gpu ?? (await gpusFor(worker, options)))) }
}

/** The GPUs of the server's machine that have enough memory. @throws CliError where it has none */
async function gpusFor({ gpuMemoryGb, title }: ReadyWorker, options: DeployOptions): Promise<string> {
  if (gpuMemoryGb === 0) return 'none'
  const { gpus } = (await (await ask(options, '/v2/catalog/gpus')).json()) as {
    gpus: { id: string; name: string; memory: number; pool: string | null; maxCount: { secure: number } }[]
  }
  const localGpus = gpus.filter(({ maxCount, pool }) => maxCount.secure > 0 && pool !== null)
  const enough = localGpus.filter(({ memory }) => memory >= gpuMemoryGb)
  if (enough.length > 0) return enough.map(({ id }) => id).join(',')
  const has = localGpus.length === 0 ? 'no GPU' : localGpus.map(one => `${one.name} with ${one.memory} GB`).join(', ')
  const anyway = 'to deploy it anyway, name the GPUs of its workers (--gpu "RTX 4090"), or give --gpu none'
  throw new CliError(`${title} needs a GPU with ${gpuMemoryGb} GB, and this machine has ${has}; ${anyway}`, EXIT.data)
}

/** A variable that is not in the catalog may still be one of the image. */
function warnOfTypos(names: readonly string[], { env }: ReadyWorker): void {
  const knownNames = env.map(({ name }) => name)
  for (const name of names.filter(one => !knownNames.includes(one))) {
    const close = nearest(name, knownNames)
    if (close !== null) printText(`runyard: note: ${name} is set; did you mean ${close}?\n`, process.stderr)
  }
}

function deployedText(
  { id, name }: { id: string; name: string },
  worker: ReadyWorker,
  input: string,
  options: DeployOptions,
): string {
  const url = serverUrl(options)
  const openAi = worker.openAi ? `  OpenAI clients: base URL ${url}/openai/v1, model ${name}\n` : ''
  const first =
    input.length > 300
      ? `runyard deploy ... --run runs the first request\n`
      : `runyard run ${name} --input '${input}'\n`
  const image = options.image ?? worker.image
  return `Endpoint ${name} (${id}) runs ${image}\n  ${url}/v2/${id}/run\n${openAi}Try it (the first start downloads the image and the model):\n  ${first}`
}

function wholeNumber(flag: string, text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw new CliError(`${flag} takes a whole number, not '${text}'`, EXIT.usage)
}
