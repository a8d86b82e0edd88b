import { nearest } from '../nearest.ts'
import { GPU_POOLS } from './catalog-data.ts'
import { GPU_TYPES, type GpuType } from './catalog-types.ts'

/** The GPUs of an endpoint: pools, and excluded types of these pools. */
export interface GpuChoice {
  readonly pools: readonly string[]
  readonly excludedTypes: readonly string[]
}

/** A GPU type that endpoints can have. */
export type PooledType = Pick<GpuType, 'id' | 'name'> & { readonly pool: string }

/** Maximum characters of a choice: each of its words is compared with the names of all types. */
const MAX_CHARACTERS = 1_000

/** The word for all GPUs of a machine. */
export const ANY_GPU = 'any'

/**
 * GPUs in the words of a user, separated by commas: `any` for the GPUs of this machine, a pool such as ADA_24, or a
 * type such as "RTX 4090", "NVIDIA GeForce RTX 4090" or "A100", which stands for all of its kinds.
 * @param here GPU types of the machine
 * @returns the choice; a string with the problem of the words, as the rest of a sentence
 */
export function gpuChoice(words: string, here: readonly PooledType[]): GpuChoice | string {
  if (words.length > MAX_CHARACTERS) return `must have at most ${MAX_CHARACTERS} characters`
  const whole = new Set<string>()
  const types = new Map<string, PooledType>()
  const choosableTypes = choosable(here)
  for (const word of words.split(',').map(word => word.trim())) {
    if (word.toLowerCase() === ANY_GPU) {
      if (here.length === 0) return `is '${word}', and this machine has no GPU`
      for (const { pool } of here) whole.add(pool)
      continue
    }
    const pool = GPU_POOLS.find(({ id }) => id.toLowerCase() === word.toLowerCase())
    const named = pool === undefined ? typesNamed(word, choosableTypes) : []
    if (pool !== undefined) whole.add(pool.id)
    else if (named.length === 0) return unknownGpu(word, choosableTypes)
    for (const type of named) types.set(type.id, type)
  }
  const pools = new Set([...whole, ...[...types.values()].map(({ pool }) => pool)])
  const isWanted = ({ id, pool }: PooledType) => whole.has(pool) || types.has(id)
  const excludedTypes = choosableTypes.filter(type => pools.has(type.pool) && !isWanted(type)).map(({ id }) => id)
  return { pools: [...pools], excludedTypes }
}

function choosable(here: readonly PooledType[]): PooledType[] {
  const own = new Set(here.map(({ id }) => id))
  const others = GPU_TYPES.filter((type): type is GpuType & PooledType => type.pool !== null && !own.has(type.id))
  return [...here, ...others]
}

/** The type with this name; else all types whose names contain all words of it. */
function typesNamed(word: string, types: readonly PooledType[]): PooledType[] {
  const wantedWords = typeWords(word)
  if (wantedWords.length === 0) return []
  const isSame = (text: string) => typeWords(text).join(' ') === wantedWords.join(' ')
  const same = types.filter(({ id, name }) => isSame(id) || isSame(name))
  if (same.length > 0) return same
  return types.filter(({ id, name }) => {
    const words = new Set([...typeWords(id), ...typeWords(name)])
    return wantedWords.every(wantedWord => words.has(wantedWord))
  })
}

/** The words that distinguish types. */
function typeWords(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(word => word !== '' && !['nvidia', 'amd', 'geforce', 'generation'].includes(word))
}

function unknownGpu(word: string, types: readonly PooledType[]): string {
  const names = [...types.map(({ name }) => name), ...GPU_POOLS.map(({ id }) => id)]
  const close = nearest(word, names)
  const hint = close === null ? `known are ${names.join(', ')}` : `did you mean ${close}?`
  return `names '${word}', which is not a GPU for endpoints; ${hint}`
}
