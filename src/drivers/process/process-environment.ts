/** The environment of a process worker: built from a list, so that nothing of the server's own gets in by accident. */
import { homedir, platform } from 'node:os'
import { delimiter, join } from 'node:path'
import type { WorkerSpec } from '../../ports/driver.ts'
import { type HostEnvironment, WORKER_VARIABLE } from '../base/host-environment.ts'
import { cacheVariables } from '../base/worker-paths.ts'
import { cachePlaces } from './endpoint-caches.ts'

const INHERITED = /^(?:LANG|LC_\w+|TZ|LD_LIBRARY_PATH|PYTHONUSERBASE|CUDA_\w+|NVIDIA_\w+)$/
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Facts beside the worker itself that the environment depends on. */
export interface EnvironmentSources {
  readonly hostEnv: HostEnvironment
  /** The worker's own HOME and TMPDIR. */
  readonly home: string
  readonly tmp: string
  /** The folder of the programs of the image's own Python, which come first; null when it has none. */
  readonly pythonFolder: string | null
  /** The folder in which the worker sees its models. */
  readonly modelCache: string
  /** The cache of its endpoint. */
  readonly cache: string
}

/** Folder of the models that tools of Hugging Face have downloaded for the person who runs the server. */
export function hubFolder(hostEnv: HostEnvironment): string {
  const cache = hostEnv.XDG_CACHE_HOME || join(hostEnv.HOME || homedir(), '.cache')
  return hostEnv.HF_HUB_CACHE || join(hostEnv.HF_HOME || join(cache, 'huggingface'), 'hub')
}

/**
 * All variables of a worker. What is private to the person who runs the server stays out, above all its HOME: the
 * official worker SDK would take an API key from there and send it. Caches are those of its endpoint.
 */
export function buildEnvironment(spec: WorkerSpec, sources: EnvironmentSources): Record<string, string> {
  const { hostEnv, home, tmp, pythonFolder, modelCache, cache } = sources
  const hostHome = hostEnv.HOME || homedir()
  const path = hostEnv.PATH || DEFAULT_PATH
  // Elsewhere the place depends on the version of Python.
  const userBase = platform() === 'linux' ? { PYTHONUSERBASE: join(hostHome, '.local') } : {}
  const inherited = Object.entries(hostEnv).flatMap(([name, value]) =>
    INHERITED.test(name) && value !== undefined ? [[name, value] as const] : [],
  )
  return {
    ...userBase,
    ...Object.fromEntries(inherited),
    PATH: pythonFolder === null ? path : `${pythonFolder}${delimiter}${path}`,
    ...cachePlaces(cache),
    PYTHONUNBUFFERED: '1',
    // They measure the machine's disk and network, which say nothing about a process on it.
    RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true',
    ...cacheVariables(spec, modelCache),
    ...spec.env,
    ...visibleGpus(spec),
    HOME: home,
    TMPDIR: tmp,
    ...spec.protocolEnv,
    [WORKER_VARIABLE]: spec.workerId,
  }
}

/**
 * A worker sees the GPUs that it was given and no others, whatever its endpoint's variables say. ROCm counts those of
 * HIP among the ones that are left by ROCR.
 */
function visibleGpus({ placement: { gpus } }: WorkerSpec): Record<string, string> {
  const isAmd = gpus[0]?.type.startsWith('AMD ') === true
  const places = gpus.map((_, index) => index).join(',')
  return {
    CUDA_VISIBLE_DEVICES: isAmd ? places : gpus.map(({ uuid, index }) => uuid ?? String(index)).join(','),
    ROCR_VISIBLE_DEVICES: isAmd ? gpus.map(({ index }) => index).join(',') : '',
    HIP_VISIBLE_DEVICES: isAmd ? places : '',
  }
}
