/** Forms of new endpoints that are filled in: from a ready worker, and from another endpoint. */
import type { Endpoint, GpuType } from '../../client/api-types.d.ts'
import { type Draft, draftFromBody } from '../endpoint-form/draft.ts'

/** A public worker image with its requirements, as `GET /ops/ready-workers` lists them. */
export interface ReadyWorker {
  readonly name: string
  readonly title: string
  /** One sentence. */
  readonly about: string
  readonly image: string
  /** GPU memory that one worker needs, in GB; 0 for a worker without a GPU. */
  readonly gpuMemoryGb: number
  readonly diskGb: number
  readonly timeoutMs: number
  readonly env: readonly { readonly name: string; readonly about: string; readonly default?: string }[]
  /** True if OpenAI clients can call it. */
  readonly openAi: boolean
}

type Gpu = Pick<GpuType, 'id' | 'pool' | 'memory'> & { readonly maxCount: { readonly secure: number } }

/** Values of the form for a ready worker: on GPUs of this machine that have enough memory, if it has any. */
export function readyDraft(worker: ReadyWorker, gpus: readonly Gpu[]): Partial<Draft> {
  const { image, diskGb, timeoutMs, env, gpuMemoryGb } = worker
  const filled = {
    type: 'QUEUE',
    image,
    args: '',
    registry: '',
    ports: '',
    disk: String(diskGb),
    timeout: String(timeoutMs / 1_000),
    env: env.flatMap(({ name, default: value }) => (value === undefined ? [] : [{ name, value }])),
  } as const
  if (gpuMemoryGb === 0) return { ...filled, hardware: 'cpu' }
  const enough = fittingGpus(worker, gpus)
  const pools = [...new Set(enough.map(({ pool }) => pool!))]
  const excludedTypes = gpus
    .filter(({ pool, memory }) => pool !== null && pools.includes(pool) && memory < gpuMemoryGb)
    .map(({ id }) => id)
  return { ...filled, hardware: 'gpu', gpuCount: '1', gpuMemory: '', pools, excludedTypes }
}

/** The GPUs of this machine that have enough memory for a worker. */
export function fittingGpus({ gpuMemoryGb }: ReadyWorker, gpus: readonly Gpu[]): readonly Gpu[] {
  return gpus.filter(({ maxCount, pool, memory }) => maxCount.secure > 0 && pool !== null && memory >= gpuMemoryGb)
}

/** The form of an endpoint like another one: under another name, and without the domain, which one endpoint has. */
export function copiedDraft(endpoint: Endpoint): Draft {
  return { ...draftFromBody(endpoint), name: `${endpoint.name} copy`, domain: '', canary: '' }
}
