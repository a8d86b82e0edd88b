import { fractionVariable } from '../endpoints/ready-workers.ts'
import type { EndpointId, VolumeId, WorkerId } from '../ids.ts'
import { type AssignedGpu, countGpus, type Placement } from './placement.ts'
import { PING_MS } from './worker-liveness.ts'

/** Identity and resources of a worker. */
export interface WorkerIdentity {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
  /** Eight hexadecimal digits that make the host name unique. */
  readonly hostSuffix: string
  /** Resources that the worker may know: GPUs, vCPUs and memory. */
  readonly placement: Placement
  /** The network volume of its endpoint; null for none. */
  readonly volume: { readonly id: VolumeId; readonly path: string } | null
}

/** Sources of the variables of the worker protocol. */
export interface WorkerEnvironment extends WorkerIdentity {
  readonly token: string
  /** The variables of its endpoint, by name. */
  readonly env: Readonly<Record<string, string>>
  /** Origin of the worker surface, without a trailing slash. */
  readonly baseUrl: string
}

/**
 * The variables with the identity and resources of a worker: all of them for one that serves requests and takes no
 * jobs.
 */
export function identityEnv({
  endpointId,
  workerId,
  hostSuffix,
  placement,
  volume,
}: WorkerIdentity): Record<string, string> {
  const { gpus } = placement
  const { vcpus, memoryMb } = placement.asked?.cpu ?? placement
  return {
    RUNPOD_POD_ID: workerId,
    RUNPOD_POD_HOSTNAME: `${workerId}-${hostSuffix}`,
    RUNPOD_ENDPOINT_ID: endpointId,
    RUNPOD_GPU_COUNT: String(countGpus(placement)),
    ...(gpus[0] === undefined ? {} : { RUNPOD_GPU_NAME: encodeURIComponent(gpus[0].type).replaceAll('%20', '+') }),
    ...shareEnv(gpus[0]),
    ...(vcpus === null ? {} : { RUNPOD_CPU_COUNT: String(vcpus) }),
    ...(memoryMb === null ? {} : { RUNPOD_MEM_GB: String(Math.floor(memoryMb / 1024)) }),
    ...(volume === null ? {} : { RUNPOD_VOLUME_ID: volume.id, RUNPOD_VOLUME_PATH: volume.path }),
  }
}

/** The share of a GPU; nothing for whole GPUs. */
function shareEnv(gpu: AssignedGpu | undefined): Record<string, string> {
  const fraction = gpu === undefined ? null : fractionText(gpu)
  if (gpu?.shareMb === undefined || fraction === null) return {}
  return { RUNYARD_GPU_MEMORY_MB: String(gpu.shareMb), RUNYARD_GPU_MEMORY_FRACTION: fraction }
}

/** The share of a worker in the variable that its image of the catalog reads. A value of the user wins. */
export function fractionEnv(image: string, { gpus: [gpu] }: Placement): Record<string, string> {
  const name = fractionVariable(image)
  const fraction = gpu === undefined ? null : fractionText(gpu)
  return name === null || fraction === null ? {} : { [name]: fraction }
}

/** The part of the memory of a GPU that a worker may use, rounded down, as `0.333`; null for a whole GPU. */
function fractionText({ memoryGb, shareMb }: AssignedGpu): string | null {
  return shareMb === undefined ? null : String(Math.floor(Math.min(1, shareMb / (memoryGb * 1024)) * 1_000) / 1_000)
}

/**
 * The variables with the URLs of jobs and the identity of a worker. Each URL already has a query, because the SDK
 * appends `&name=value` without a check; `$ID` stays, since it means the worker in one URL and the job in the
 * others.
 */
export function protocolEnv(worker: WorkerEnvironment): Record<string, string> {
  const base = `${worker.baseUrl}/v2/${worker.endpointId}`
  const hasGpu = countGpus(worker.placement) > 0
  const query = `?gpu=${hasGpu ? 'GPU' : 'CPU'}`
  return {
    ...identityEnv(worker),
    RUNPOD_AI_API_KEY: worker.token,
    RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID${query}`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID${query}`,
    RUNYARD_WEBHOOK_POST_OUTPUTS: `${base}/job-done-batch/$RUNPOD_POD_ID${query}`,
    RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID${query}`,
    RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID${query}`,
    RUNPOD_PING_INTERVAL: String(PING_MS),
    // Without one, the SDK prints every take and ping.
    ...('RUNPOD_LOG_LEVEL' in worker.env || 'RUNPOD_DEBUG_LEVEL' in worker.env ? {} : { RUNPOD_LOG_LEVEL: 'INFO' }),
    // The SDK would look for a GPU on the machine, and fail on one that it may not use.
    ...(hasGpu ? {} : { RUNPOD_SKIP_GPU_CHECK: 'true' }),
    NO_PROXY: new URL(worker.baseUrl).hostname,
  }
}
