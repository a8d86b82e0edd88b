/**
 * The hardware of a machine for workers, and the mapping of its GPUs to the catalog. A card that the catalog lacks is
 * a type of its own name; its pool, like that of known types without a pool, is derived from its memory.
 */
import { GPU_POOLS } from './catalog-data.ts'
import { GPU_TYPES, type GpuType } from './catalog-types.ts'

/** A GPU, or a part of a card that acts as a GPU (MIG). */
export interface MachineGpu {
  /** Index of the vendor's tool; for a part of a card, the index of the card. */
  readonly index: number
  /** The vendor's id, which is stable when other cards are added or fail; null without an id. */
  readonly uuid: string | null
  /** Name from the vendor's tool. */
  readonly name: string
  readonly vendor: GpuType['manufacturer']
  readonly memoryGb: number
  /** Version of its driver; null if unknown. */
  readonly driver: string | null
  /** The newest CUDA version of its driver, as `12.4`; null if unknown. */
  readonly cuda: string | null
  /** Profile of a part of a card, as `3g.40gb`; null for a whole card. */
  readonly mig: string | null
  /** Reason why no new worker gets it, as a clause such as "its memory has failed"; null without a problem. */
  readonly problem: string | null
}

/** The hardware of a machine. */
export interface MachineParts {
  readonly vcpus: number
  readonly memoryGb: number
  readonly gpus: readonly MachineGpu[]
  /** True if a GPU was found since the server started, even if no GPU can be read now. */
  readonly hadGpus: boolean
  /** Reason why GPUs cannot be read, as a sentence; null if they can be read, or without a vendor's tool. */
  readonly problem: string | null
}

/** A GPU as the catalog sees it. */
export interface CatalogedGpu {
  readonly gpu: MachineGpu
  /** The catalog's id of its type; its own name if the catalog has no such type. */
  readonly type: string
  readonly pool: string
}

/** Tolerance below the memory of a pool: drivers reserve a part of a card's memory. */
const SHORT_OF = 0.9

/** The key of a GPU on its machine. */
export function gpuKey({ uuid, index }: Pick<MachineGpu, 'uuid' | 'index'>): string {
  return uuid ?? `index ${index}`
}

/** The type and the pool of a GPU. */
export function cataloged(gpu: MachineGpu): CatalogedGpu {
  const catalogType = typeNamed(gpu.name)
  return { gpu, type: catalogType?.id ?? tidyName(gpu.name), pool: catalogType?.pool ?? poolFromMemory(gpu.memoryGb) }
}

/**
 * The pool for an amount of memory: the first pool in the catalog of the largest class that fits the card, with a
 * tolerance of a tenth; the smallest class for smaller cards.
 */
export function poolFromMemory(memoryGb: number): string {
  const fitting = GPU_POOLS.filter(pool => pool.memoryGb * SHORT_OF <= memoryGb)
  const largest = Math.max(...fitting.map(pool => pool.memoryGb))
  return (fitting.find(pool => pool.memoryGb === largest) ?? GPU_POOLS[0]!).id
}

/** GPU types of this machine with their pools, each type once; the pool of the catalog wins. */
export function typesHere({ gpus }: MachineParts): (GpuType & { readonly pool: string })[] {
  const types = new Map<string, GpuType & { readonly pool: string }>()
  for (const gpu of gpus) {
    const { type, pool } = cataloged(gpu)
    const name = typeNamed(gpu.name)?.name ?? type.replace(/^(NVIDIA|AMD) /, '')
    if (!types.has(type)) types.set(type, { id: type, name, pool, memoryGb: gpu.memoryGb, manufacturer: gpu.vendor })
  }
  return [...types.values()]
}

/** The GPUs in a few words: "2 x NVIDIA L4 (pool AMPERE_24), 1 x ..."; "none" if the list is empty. */
export function gpuSummary(gpus: readonly MachineGpu[]): string {
  const counts = new Map<string, number>()
  for (const gpu of gpus) {
    const { type, pool } = cataloged(gpu)
    const name = `${type} (pool ${pool})`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts.size === 0 ? 'none' : [...counts].map(([name, count]) => `${count} x ${name}`).join(', ')
}

/** Below zero if version `a`, as `12.4`, comes before `b`. */
export function compareVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split('.').map(Number)
  const [majorB = 0, minorB = 0] = b.split('.').map(Number)
  return majorA - majorB || minorA - minorB
}

const TYPE_BY_NAME = new Map(GPU_TYPES.map(type => [type.id.toLowerCase(), type]))

/** Older drivers leave the vendor out, and some names had two blanks. */
function typeNamed(name: string): GpuType | null {
  const tidy = tidyName(name).toLowerCase()
  const names = [tidy, `nvidia ${tidy}`, `amd ${tidy}`, `${tidy} oam`]
  return names.flatMap(candidate => TYPE_BY_NAME.get(candidate) ?? [])[0] ?? null
}

function tidyName(name: string): string {
  return name.replace(/\s+/g, ' ').trim()
}
