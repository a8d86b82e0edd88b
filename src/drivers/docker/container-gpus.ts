/** The GPUs of a container, in the words of an engine: its own and no others. */
import type { AssignedGpu } from '../../core/workers/placement.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import type { AmdDevices } from '../base/amd-devices.ts'

/** Abilities of an engine with GPUs. */
export interface GpuContext {
  /** The version of Podman; null for Docker. */
  readonly podman: string | null
  /** The devices of GPUs of AMD. @throws WorkerStartError */
  readonly amdDevices: (gpus: readonly AssignedGpu[]) => AmdDevices
}

/** Older ones make the container without a word and without the GPU. */
const PODMAN_WITH_REQUESTS = { major: 5, minor: 4 }

/**
 * The part of the engine's create call that gives a container its GPUs.
 * @throws WorkerStartError when it cannot have them
 */
export function gpuOptions(gpus: readonly AssignedGpu[], context: GpuContext): Record<string, unknown> {
  if (gpus.length === 0) return {}
  const amd = gpus.filter(isAmd)
  const nvidia = gpus.filter(gpu => !isAmd(gpu))
  return {
    ...(nvidia.length === 0 ? {} : { DeviceRequests: [nvidiaRequest(nvidia, context.podman)] }),
    ...(amd.length === 0 ? {} : amdOptions(context.amdDevices(amd))),
    // Memory that GPUs read directly must not move.
    Ulimits: [{ Name: 'memlock', Soft: -1, Hard: -1 }],
  }
}

/**
 * The variables that name a container's GPUs to programs. Where the engine gives GPUs of NVIDIA by one of them, an
 * image or a user could ask for all. Of AMD's a container sees none but its own, counted from 0.
 */
export function gpuVariables(gpus: readonly AssignedGpu[]): Record<string, string> {
  const nvidia = gpus.filter(gpu => !isAmd(gpu))
  const NVIDIA_VISIBLE_DEVICES = nvidia.length === 0 ? 'void' : nvidia.map(nvidiaId).join(',')
  const places = gpus
    .filter(isAmd)
    .map((_, place) => place)
    .join(',')
  if (places === '') return { NVIDIA_VISIBLE_DEVICES }
  const amdVariables = { ROCR_VISIBLE_DEVICES: places, HIP_VISIBLE_DEVICES: places }
  // Programs built for HIP read CUDA's variable as well.
  return { NVIDIA_VISIBLE_DEVICES, ...amdVariables, ...(nvidia.length === 0 ? { CUDA_VISIBLE_DEVICES: places } : {}) }
}

function isAmd({ type }: AssignedGpu): boolean {
  return type.startsWith('AMD ')
}

function nvidiaId({ uuid, index }: AssignedGpu): string {
  return uuid ?? String(index)
}

function nvidiaRequest(gpus: readonly AssignedGpu[], podman: string | null): Record<string, unknown> {
  const common = { Count: 0, Capabilities: [['gpu']], Options: {} }
  const ids = gpus.map(nvidiaId)
  if (podman === null) return { ...common, Driver: '', DeviceIDs: ids }
  const [major = 0, minor = 0] = podman.split('.').map(Number)
  const { major: leastMajor, minor: leastMinor } = PODMAN_WITH_REQUESTS
  if (major < leastMajor || (major === leastMajor && minor < leastMinor)) {
    throw new WorkerStartError({ kind: 'podman_without_gpus', version: podman, needed: `${leastMajor}.${leastMinor}` })
  }
  return { ...common, Driver: 'cdi', DeviceIDs: ids.map(id => `nvidia.com/gpu=${id}`) }
}

function amdOptions({ paths, groups }: AmdDevices): Record<string, unknown> {
  return {
    Devices: paths.map(path => ({ PathOnHost: path, PathInContainer: path, CgroupPermissions: 'rw' })),
    // A program that is not root uses them as one of their group, whose number differs from machine to machine.
    GroupAdd: groups.map(String),
  }
}
