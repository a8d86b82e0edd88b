/** What a container is made with. The rules are told in docs/guides/containers.md. */
import { AppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { WorkerSpec } from '../../ports/driver.ts'
import { parseContainerArgs } from '../command-line.ts'

/** How containers are connected. */
export interface ContainerConnection {
  /** The network's name or id. */
  readonly name: string
  /** Entries for the hosts file, as `name:address`. */
  readonly extraHosts: readonly string[]
}

/** What a container depends on besides its worker. */
export interface ContainerContext {
  /** The exact image. */
  readonly image: string
  readonly installation: string
  readonly connection: ContainerConnection
  /** What the machine has. */
  readonly cpus: number
  readonly memoryBytes: number
  /** Whether the engine can bound what a container writes. */
  readonly boundsDisk: boolean
}

/** Names of the labels of our containers. */
export const LABELS = {
  installation: 'dev.runyard.installation',
  worker: 'dev.runyard.worker',
  endpoint: 'dev.runyard.endpoint',
  /** How much it may write, where the engine does not see to it. */
  diskGb: 'dev.runyard.disk-gb',
} as const

/** Where containers find the files of their endpoint. */
const VOLUME_PATH = '/runpod-volume'
/** What servers need that start as root and go on as somebody else; of Docker's usual ones all that make devices, packets or new rights are left out. */
const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID']
const MAX_PROCESSES = 8_192
const SHARED_MEMORY_BYTES = 64 * 1024 * 1024
const MIB = 1024 * 1024

/** The name of a worker's container. */
export function containerName(worker: WorkerId): string {
  return `runyard-${worker}`
}

/** The body of the engine's create call. @throws AppError `invalid` when args cannot be read */
export function containerSpec(spec: WorkerSpec, context: ContainerContext): Record<string, unknown> {
  const { entrypoint, cmd } = parseContainerArgs(spec.args)
  return {
    Image: context.image,
    Hostname: spec.workerId,
    Env: Object.entries(environment(spec)).map(([name, value]) => `${name}=${value}`),
    ...(entrypoint === null ? {} : { Entrypoint: entrypoint }),
    ...(cmd === null ? {} : { Cmd: cmd }),
    Labels: {
      [LABELS.installation]: context.installation,
      [LABELS.worker]: spec.workerId,
      [LABELS.endpoint]: spec.endpointId,
      ...(spec.diskGb === null || context.boundsDisk ? {} : { [LABELS.diskGb]: String(spec.diskGb) }),
    },
    HostConfig: hostConfig(spec, context),
  }
}

/** The user's variables, and those that win over them. */
function environment(spec: WorkerSpec): Record<string, string> {
  const { placement, volume } = spec
  return {
    // The init hands signals on to the whole group, because shells do not.
    TINI_KILL_PROCESS_GROUP: '1',
    ...spec.env,
    ...spec.protocolEnv,
    ...(volume === null ? {} : { RUNPOD_VOLUME_PATH: VOLUME_PATH }),
    // Where the engine gives GPUs by this variable, an image or a user could ask for all of them.
    NVIDIA_VISIBLE_DEVICES: placement.gpus.length === 0 ? 'void' : deviceIds(spec).join(','),
  }
}

function deviceIds({ placement }: WorkerSpec): string[] {
  return placement.gpus.map(({ uuid, index }) => uuid ?? String(index))
}

function hostConfig(spec: WorkerSpec, context: ContainerContext): Record<string, unknown> {
  const { placement, volume, diskGb } = spec
  const memory = placement.memoryMb === null ? null : placement.memoryMb * MIB
  return {
    Init: true,
    NetworkMode: context.connection.name,
    ExtraHosts: context.connection.extraHosts,
    RestartPolicy: { Name: 'no' },
    SecurityOpt: ['no-new-privileges'],
    CapDrop: ['ALL'],
    CapAdd: CAPABILITIES,
    PidsLimit: MAX_PROCESSES,
    // As much as without swap, or a worker would get slow instead of being told.
    ...(memory === null ? {} : { Memory: memory, MemorySwap: memory }),
    ...(placement.vcpus === null ? {} : { NanoCpus: Math.round(Math.min(placement.vcpus, context.cpus) * 1e9) }),
    ShmSize: sharedMemory(spec, memory ?? context.memoryBytes),
    ...(diskGb !== null && context.boundsDisk ? { StorageOpt: { size: `${diskGb}G` } } : {}),
    LogConfig: { Type: 'json-file', Config: { 'max-size': '16m', 'max-file': '2' } },
    Mounts: volume === null ? [] : [{ Type: 'bind', Source: volume.path, Target: VOLUME_PATH }],
    ...gpus(spec),
  }
}

/** Programs that share a model between processes need much of it. It counts as memory of the container. */
function sharedMemory({ placement }: WorkerSpec, memoryBytes: number): number {
  if (placement.gpus.length === 0) return SHARED_MEMORY_BYTES
  return Math.max(SHARED_MEMORY_BYTES, Math.floor(memoryBytes / 2))
}

function gpus(spec: WorkerSpec): Record<string, unknown> {
  const { gpus: assigned } = spec.placement
  if (assigned.length === 0) return {}
  if (assigned.some(({ type }) => type.startsWith('AMD'))) {
    throw new AppError('invalid', 'GPUs of AMD cannot be given to containers by this version')
  }
  return {
    DeviceRequests: [{ Driver: '', Count: 0, DeviceIDs: deviceIds(spec), Capabilities: [['gpu']], Options: {} }],
    // Memory that GPUs read directly must not move.
    Ulimits: [{ Name: 'memlock', Soft: -1, Hard: -1 }],
  }
}
