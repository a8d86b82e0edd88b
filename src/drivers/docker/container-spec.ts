/** The configuration of a container. The rules are in docs/guides/containers.md. */
import type { WorkerId } from '../../core/ids.ts'
import { parseContainerArgs } from '../../core/workers/command-line.ts'
import type { ContainerServing } from '../../core/workers/container-reach.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import type { WorkerSpec } from '../../ports/driver.ts'
import { CACHE_PATH, cacheVariables, extraMounts, mountPoint, VOLUME_PATH } from '../base/worker-paths.ts'
import type { AppParts } from './app-parts.ts'
import { type GpuContext, gpuOptions, gpuVariables } from './container-gpus.ts'

/** Connection of containers to this server. */
export interface ContainerConnection {
  /** The network's name or id. */
  readonly name: string
  /** Entries for the hosts file, as `name:address`. */
  readonly extraHosts: readonly string[]
  /** The way in which this machine reaches their ports. */
  readonly serving: ContainerServing
}

/** A worker, and what its app needs. */
export interface ContainedWorker {
  readonly spec: WorkerSpec
  readonly app: AppParts | null
}

/** Facts beside the worker that the configuration depends on. */
export interface ContainerContext {
  /** The exact image. */
  readonly image: string
  /** Parts of a worker of an app; none by default. */
  readonly app?: AppParts | null
  readonly installation: string
  readonly connection: ContainerConnection
  /** The hardware of the machine. */
  readonly cpus: number
  readonly memoryBytes: number
  /** True if the engine can limit the writes of a container. */
  readonly boundsDisk: boolean
  readonly gpus: GpuContext
}

/** Names of the labels of our containers. */
export const LABELS = {
  installation: 'dev.runyard.installation',
  worker: 'dev.runyard.worker',
  endpoint: 'dev.runyard.endpoint',
  /** Its disk limit, where the engine does not enforce it. */
  diskGb: 'dev.runyard.disk-gb',
  /** Its ports for requests and for health checks, as `80,8080`. */
  serves: 'dev.runyard.serves',
} as const

/**
 * Capabilities of programs that start as root and change their user. Docker's defaults for devices, raw packets and
 * new rights are left out.
 */
const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID']
const MAX_PROCESSES = 8_192
const MAX_PORT = 65_535
const SHARED_MEMORY_BYTES = 64 * 1024 * 1024
const MIB = 1024 * 1024

/** The name of a worker's container. */
export function containerName(worker: WorkerId): string {
  return `runyard-${worker}`
}

/** The body of the engine's create call. @throws WorkerStartError when args cannot be read */
export function containerSpec(spec: WorkerSpec, context: ContainerContext): Record<string, unknown> {
  const { app = null } = context
  const { entrypoint, cmd } = app?.program == null ? parseContainerArgs(spec.args) : programOf(app.program.words)
  const folder = app?.program?.folder ?? null
  return {
    Image: context.image,
    Hostname: spec.workerId,
    Env: Object.entries(environment(spec, app)).map(([name, value]) => `${name}=${value}`),
    ...(entrypoint === null ? {} : { Entrypoint: entrypoint }),
    ...(cmd === null ? {} : { Cmd: cmd }),
    ...(folder === null ? {} : { WorkingDir: folder }),
    ...exposedPorts(spec),
    Labels: {
      [LABELS.installation]: context.installation,
      [LABELS.worker]: spec.workerId,
      [LABELS.endpoint]: spec.endpointId,
      ...(spec.serves === null ? {} : { [LABELS.serves]: `${spec.serves.port},${spec.serves.healthPort}` }),
      ...(spec.diskGb === null || context.boundsDisk ? {} : { [LABELS.diskGb]: String(spec.diskGb) }),
    },
    HostConfig: hostConfig(spec, context),
  }
}

/** A program in place of that of the image. */
function programOf([program, ...words]: readonly string[]) {
  return { entrypoint: [program!], cmd: words }
}

/** The user's variables, and the server's, which win. */
function environment(spec: WorkerSpec, app: AppParts | null): Record<string, string> {
  const { placement, volume, serves } = spec
  return {
    // The init forwards signals to the whole group, because shells do not.
    TINI_KILL_PROCESS_GROUP: '1',
    ...cacheVariables(spec, CACHE_PATH),
    ...app?.usual,
    ...spec.env,
    ...app?.env,
    ...spec.protocolEnv,
    ...(serves === null ? {} : { PORT: String(serves.port), PORT_HEALTH: String(serves.healthPort) }),
    ...(volume === null ? {} : { RUNPOD_VOLUME_PATH: VOLUME_PATH }),
    ...gpuVariables(placement.gpus),
  }
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
    // No swap: a worker without memory has to fail instead of getting slow.
    ...(memory === null ? {} : { Memory: memory, MemorySwap: memory }),
    ...(placement.vcpus === null ? {} : { NanoCpus: Math.round(Math.min(placement.vcpus, context.cpus) * 1e9) }),
    ShmSize: sharedMemory(spec, memory ?? context.memoryBytes),
    ...(diskGb !== null && context.boundsDisk ? { StorageOpt: { size: `${diskGb}G` } } : {}),
    LogConfig: { Type: 'json-file', Config: { 'max-size': '16m', 'max-file': '2' } },
    ...publishedPorts(spec, context.connection),
    Mounts: [
      ...(volume === null ? [] : [{ Type: 'bind', Source: volume.path, Target: VOLUME_PATH }]),
      ...extraMounts(spec).map(({ path, at }) => ({ Type: 'bind', Source: path, Target: at })),
      ...(context.app?.mounts ?? []).map(({ source, target }) => ({
        Type: 'bind',
        Source: source,
        Target: target,
        ReadOnly: true,
      })),
      ...spec.models.map(model => ({
        Type: 'bind',
        Source: model.path,
        Target: mountPoint(model),
        ReadOnly: true,
      })),
    ],
    ...gpuOptions(placement.gpus, context.gpus),
  }
}

/** The ports of its program in the engine's notation. */
function servedPorts({ serves }: WorkerSpec): string[] {
  return serves === null ? [] : [...new Set([serves.port, serves.healthPort])].map(port => `${port}/tcp`)
}

/** Declares ports to the engine, which opens none of them. */
function exposedPorts(spec: WorkerSpec): Record<string, unknown> {
  const namedPorts = spec.ports
    .map(text => text.split('/') as [string, string])
    .filter(([port]) => Number(port) >= 1 && Number(port) <= MAX_PORT)
    .map(([port, protocol]) => `${Number(port)}/${protocol === 'udp' ? 'udp' : 'tcp'}`)
  const ports = [...new Set([...servedPorts(spec), ...namedPorts])]
  return ports.length === 0 ? {} : { ExposedPorts: Object.fromEntries(ports.map(port => [port, {}])) }
}

/** Ports of this machine that the engine chooses, where it has no route to containers. */
function publishedPorts(spec: WorkerSpec, { serving }: ContainerConnection): Record<string, unknown> {
  if (spec.serves === null || serving === 'direct') return {}
  if (serving === 'none') throw new WorkerStartError({ kind: 'engine_elsewhere' })
  const binding = [{ HostIp: '127.0.0.1', HostPort: '' }]
  return { PortBindings: Object.fromEntries(servedPorts(spec).map(port => [port, binding])) }
}

/**
 * Size of shared memory, which programs need to share a model between processes. It counts as memory of the container.
 */
function sharedMemory({ placement }: WorkerSpec, memoryBytes: number): number {
  if (placement.gpus.length === 0) return SHARED_MEMORY_BYTES
  return Math.max(SHARED_MEMORY_BYTES, Math.floor(memoryBytes / 2))
}
