/** The device files of the AMD GPUs of this machine, from the kernel. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { AssignedGpu } from '../../core/workers/placement.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'

/** Devices and groups by which a container uses GPUs of AMD. */
export interface AmdDevices {
  /** Paths of devices: the one that all GPUs share, and one for each. */
  readonly paths: readonly string[]
  /** Numbers of the groups that may use them. */
  readonly groups: readonly number[]
}

/** A GPU in the kernel's list. */
interface Node {
  /** Its id, which tools write as `GPU-` and hexadecimal digits; null where it has none. */
  readonly uniqueId: bigint | null
  /** The number of its file `/dev/dri/renderD...`. */
  readonly renderMinor: number
}

const TOPOLOGY = 'sys/class/kfd/kfd/topology/nodes'
const SHARED = 'dev/kfd'
/** The number of the first GPU's file, where the kernel's list cannot be read. */
const FIRST_RENDER_MINOR = 128

/**
 * The devices of GPUs: found by their id where the tool that counted them reported one, else by their place in the
 * kernel's list.
 * @param root of the file system
 * @throws WorkerStartError for a GPU that the kernel does not list
 */
export function amdDevices(gpus: readonly AssignedGpu[], root = '/'): AmdDevices {
  const nodes = readNodes(join(root, TOPOLOGY))
  const minors = gpus.map(gpu => findRenderMinor(gpu, nodes))
  const paths = [SHARED, ...minors.map(minor => `dev/dri/renderD${minor}`)]
  const groups = paths.flatMap(path => statSync(join(root, path), { throwIfNoEntry: false })?.gid ?? [])
  return { paths: paths.map(path => `/${path}`), groups: [...new Set(groups)] }
}

function findRenderMinor({ uuid, index }: AssignedGpu, nodes: readonly Node[]): number {
  if (nodes.length === 0) return FIRST_RENDER_MINOR + index
  const digits = /^GPU-([0-9a-f]{1,16})$/i.exec(uuid ?? '')?.[1]
  const id = digits === undefined ? null : BigInt(`0x${digits}`)
  const node = nodes.find(({ uniqueId }) => uniqueId !== null && uniqueId === id) ?? nodes[index]
  if (node !== undefined) return node.renderMinor
  throw new WorkerStartError({ kind: 'gpu_not_listed', index, count: nodes.length, folder: TOPOLOGY })
}

function readNodes(folder: string): Node[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  return names.sort((a, b) => Number(a) - Number(b)).flatMap(name => readNode(join(folder, name, 'properties')))
}

/** None for a processor, which is in the list too, and for a GPU that this process may not read. */
function readNode(file: string): Node[] {
  let text: string
  try {
    text = readFileSync(file, 'latin1')
  } catch {
    return []
  }
  const properties = new Map(text.split('\n').map(line => line.split(' ') as [string, string]))
  const renderMinor = Number(properties.get('drm_render_minor') ?? 0)
  if (Number(properties.get('simd_count') ?? 0) === 0 || !(renderMinor > 0)) return []
  const id = properties.get('unique_id') ?? '0'
  return [{ renderMinor, uniqueId: /^[1-9]\d*$/.test(id) ? BigInt(id) : null }]
}
