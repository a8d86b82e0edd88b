/** GPUs of endpoints in the words that people use. */
import { formatGpuIds } from '../../core/endpoints/endpoint.ts'
import { type GpuChoice, gpuChoice, type PooledType } from '../../core/hardware/gpu-choice.ts'
import { CliError, EXIT } from '../exit.ts'
import { ask, type ConnectionOptions } from './connection.ts'
import { type BodyOptions, objectMembers, plainValue } from './fields.ts'

/** The word for an endpoint that runs on the CPU. */
const NONE = 'none'
/** The default hardware of a worker without GPUs. */
const SMALL_CPU = { instanceIds: ['cpu3g-2-8'] }

type Body = Readonly<Record<string, unknown>>

/** @throws CliError for `--gpu-memory` beside the words, or the CPUs, of an endpoint without a GPU */
export function checkShare({ gpu, gpuMemory }: BodyOptions, { cpu }: Body): void {
  const without = gpu === undefined ? cpu !== undefined && '--cpu' : String(gpu).trim() === NONE && `--gpu ${NONE}`
  if (gpuMemory === undefined || without === false) return
  throw new CliError(
    `--gpu-memory is a share of a GPU, and ${without} gives its workers none; leave one of them out`,
    EXIT.usage,
  )
}

/**
 * A body for a new endpoint with the hardware of `--gpu`.
 * @param words null when nothing is asked for
 * @throws CliError with the known names, for words that name no GPU
 */
export async function withGpus(options: ConnectionOptions, body: Body, words: string | null): Promise<Body> {
  if (words === null) return body
  const { gpu, ...others } = body
  if (words.trim() === NONE) return { cpu: [{ id: 'cpu3g', vcpuCount: 2 }], ...others }
  const { pools, excludedTypes } = await chooseGpus(options, words)
  return { ...others, gpu: { ...objectMembers(gpu), pools, ...(excludedTypes.length === 0 ? {} : { excludedTypes }) } }
}

/**
 * The changes of an endpoint with the hardware of `--gpu`. REST keeps endpoints on GPUs or on CPUs, so an endpoint
 * that goes from one to the other is changed here, through GraphQL.
 * @returns the remaining changes through REST
 * @throws CliError as {@link withGpus}
 */
export async function changedGpus(
  options: ConnectionOptions,
  id: string,
  body: Body,
  words: string | null,
): Promise<Body> {
  if (words === null) return body
  const shown = (await (await ask(options, `/v2/serverless/${encodeURIComponent(id)}`)).json()) as Body
  const { gpu, ...others } = body
  const hasGpus = shown.gpu !== undefined && shown.gpu !== null
  if (words.trim() === NONE) {
    if (hasGpus) await save(options, { id: shown.id, name: shown.name, ...SMALL_CPU })
    return others
  }
  if (hasGpus) return withGpus(options, body, words)
  const choice = await chooseGpus(options, words)
  const count = Number(plainValue(objectMembers(gpu).count ?? 1))
  const limits = { count, allowedCudaVersions: [], minCudaVersion: null }
  const gpuIds = formatGpuIds({ kind: 'gpu', ...choice, ...limits })
  const memory = plainValue(objectMembers(gpu).memoryGb ?? null)
  const share = memory === 'auto' ? { gpuMemoryAuto: true } : memory === null ? {} : { gpuMemoryGb: memory }
  await save(options, { id: shown.id, name: shown.name, gpuIds, gpuCount: count, ...share })
  return others
}

async function chooseGpus(options: ConnectionOptions, words: string): Promise<GpuChoice> {
  const { gpus } = (await (await ask(options, '/v2/catalog/gpus')).json()) as {
    gpus: (PooledType & { maxCount: { secure: number } })[]
  }
  const choice = gpuChoice(
    words,
    gpus.filter(({ maxCount, pool }) => maxCount.secure > 0 && pool !== null),
  )
  if (typeof choice === 'string') throw new CliError(`--gpu ${choice}`, EXIT.data)
  return choice
}

async function save(options: ConnectionOptions, input: Body): Promise<void> {
  const query = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
  const answer = await ask(options, '/graphql', { method: 'POST', body: { query, variables: { input } } })
  const { errors = [] } = (await answer.json()) as { errors?: readonly { message: string }[] }
  if (errors.length > 0) throw new CliError(errors.map(({ message }) => message).join('\n'), EXIT.data)
}
