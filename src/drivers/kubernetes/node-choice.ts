/**
 * The nodes that fit a worker: GPUs by the labels of NVIDIA's GPU feature discovery, and the names of their resources.
 */
import type { WorkerWish } from '../../core/workers/worker-wish.ts'

/** The label with the product of a node's GPUs. */
export const PRODUCT_LABEL = 'nvidia.com/gpu.product'
/** The labels with the CUDA version that the driver of a node supports. */
const CUDA = { major: 'nvidia.com/cuda.runtime.major', minor: 'nvidia.com/cuda.runtime.minor' }
/** The product of a GPU that is shared in turns (time slicing). */
const SHARED = '-SHARED'
const MIG_RESOURCE = 'nvidia.com/mig-'
const MAX_WEIGHT = 100

/** Names of GPUs in a cluster. */
export interface GpuNaming {
  /** The resource of a whole GPU, as `nvidia.com/gpu`. */
  readonly resource: string
  /** Values of the product label where they are not made from the type: by the type. */
  readonly products: ReadonlyMap<string, string>
}

/** A requirement of a label of a node. */
export interface NodeExpression {
  readonly key: string
  readonly operator: 'In' | 'Gt'
  readonly values: readonly string[]
}

/** The GPUs that a pod asks for. */
export interface GpuRequest {
  readonly resource: string
  readonly count: number
  /** The types that this resource stands for, the preferred first. */
  readonly types: readonly string[]
}

/**
 * The GPUs of a wish; null for none. Parts of GPUs (MIG) are another resource than whole ones, and a pod has one: that
 * of the first type.
 */
export function gpuRequest({ gpuTypes, gpuCount }: WorkerWish, naming: GpuNaming): GpuRequest | null {
  if (gpuCount === 0) return null
  const resource = gpuTypes[0] === undefined ? naming.resource : gpuResource(gpuTypes[0], naming)
  return { resource, count: gpuCount, types: gpuTypes.filter(type => gpuResource(type, naming) === resource) }
}

/** The affinity of a pod to nodes; null where any will do. */
export function nodeAffinity(wish: WorkerWish, naming: GpuNaming): Record<string, unknown> | null {
  const request = gpuRequest(wish, naming)
  if (request === null) return null
  const products = productExpression(request.types, naming)
  const versions = cudaExpressions(wish)
  if (products === null && versions.length === 0) return null
  // One of the terms has to hold, with all its expressions.
  const terms = (versions.length === 0 ? [[]] : versions).map(expressions => ({
    matchExpressions: [...(products === null ? [] : [products]), ...expressions],
  }))
  const preferred = request.types.length < 2 ? [] : request.types.map((type, place) => preference(type, place, naming))
  return {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms },
      ...(preferred.length === 0 ? {} : { preferredDuringSchedulingIgnoredDuringExecution: preferred }),
    },
  }
}

/** The type of a node's GPUs by its product label, of those that a worker wished; the label itself for another. */
export function gpuTypeFromProduct(label: string, types: readonly string[], naming: GpuNaming): string {
  return types.find(type => productLabels(type, naming).includes(label)) ?? label
}

function preference(type: string, place: number, naming: GpuNaming) {
  const expression = productExpression([type], naming)
  return { weight: Math.max(1, MAX_WEIGHT - place), preference: { matchExpressions: [expression] } }
}

function productExpression(types: readonly string[], naming: GpuNaming): NodeExpression | null {
  if (types.length === 0) return null
  return {
    key: PRODUCT_LABEL,
    operator: 'In',
    values: [...new Set(types.flatMap(type => productLabels(type, naming)))],
  }
}

function productLabels(type: string, { products }: GpuNaming): string[] {
  const configuredLabel = products.get(type)
  if (configuredLabel !== undefined) return [configuredLabel]
  const { whole } = splitType(type)
  const label = whole.trim().replaceAll(/\s+/g, '-')
  return [label, `${label}${SHARED}`]
}

function gpuResource(type: string, { resource, products }: GpuNaming): string {
  const { profile } = splitType(type)
  return profile === null || products.has(type) ? resource : `${MIG_RESOURCE}${profile}`
}

/** A type as the GPU that it is, and which part of it. */
function splitType(type: string): { whole: string; profile: string | null } {
  const groups = /^(?<whole>.+) MIG (?<profile>\d+g\.\d+gb\S*)$/.exec(type)?.groups
  // The plus of profiles with media engines is no letter of a resource.
  return { whole: groups?.whole ?? type, profile: groups?.profile?.replaceAll('+', '.') ?? null }
}

/** Alternatives, each a list of requirements; none where any version will do. */
function cudaExpressions({ minCuda, cudaVersions }: WorkerWish): NodeExpression[][] {
  const floor = minCuda === null ? null : parseVersion(minCuda)
  if (cudaVersions.length > 0) {
    const versions = cudaVersions.map(parseVersion).filter(version => floor === null || isAtLeast(version, floor))
    const majors = [...new Set(versions.map(({ major }) => major))]
    return majors.map(major => [
      oneOf(CUDA.major, [major]),
      oneOf(
        CUDA.minor,
        versions.filter(version => version.major === major).map(({ minor }) => minor),
      ),
    ])
  }
  if (floor === null) return []
  const { major, minor } = floor
  const sameMajor = [oneOf(CUDA.major, [major]), ...(minor === 0 ? [] : [above(CUDA.minor, minor - 1)])]
  return [[above(CUDA.major, major)], sameMajor]
}

interface Version {
  readonly major: number
  readonly minor: number
}

function parseVersion(text: string): Version {
  const [major = 0, minor = 0] = text.split('.').map(Number)
  return { major, minor }
}

function isAtLeast(version: Version, floor: Version): boolean {
  return version.major > floor.major || (version.major === floor.major && version.minor >= floor.minor)
}

function oneOf(key: string, values: readonly number[]): NodeExpression {
  return { key, operator: 'In', values: values.map(String) }
}

function above(key: string, value: number): NodeExpression {
  return { key, operator: 'Gt', values: [String(value)] }
}
