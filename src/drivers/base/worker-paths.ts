/**
 * Paths that workers of several drivers see: those of RunPod for volumes and models, which containers and cages have.
 */
import { isAbsolute, posix, relative, sep } from 'node:path'
import { VOLUME_PATH } from '../../core/endpoints/mounts.ts'
import type { MountedModel, VolumeMount, WorkerSpec } from '../../ports/driver.ts'

export { VOLUME_PATH }

/** The cache of models below the network volume. */
export const CACHE_FOLDER = 'huggingface-cache/hub'

/** The same as workers see it in containers and cages. */
export const CACHE_PATH = posix.join(VOLUME_PATH, CACHE_FOLDER)

/** Variables of a worker with which its owner chooses another cache. */
const CACHE_VARIABLES = ['HF_HUB_CACHE', 'HUGGINGFACE_HUB_CACHE', 'HF_HOME']

/** The volumes of a worker that it sees elsewhere than at {@link VOLUME_PATH}, in containers and cages. */
export function extraMounts({ mounts = [] }: Pick<WorkerSpec, 'mounts'>): VolumeMount[] {
  return mounts.filter(({ at }) => at !== VOLUME_PATH)
}

/** Path of a model in a container or cage. */
export function mountPoint({ folder }: MountedModel): string {
  return posix.join(CACHE_PATH, folder)
}

/**
 * The variable by which clients of Hugging Face find the models of a worker; none where it has no models, or a cache
 * of its own.
 */
export function cacheVariables(
  { models, env }: Pick<WorkerSpec, 'models' | 'env'>,
  cache: string,
): Record<string, string> {
  const isChosen = CACHE_VARIABLES.some(name => env[name] !== undefined)
  return models.length === 0 || isChosen ? {} : { HF_HUB_CACHE: cache }
}

/** True for a path that is this folder or lies in it. Both are real paths. */
export function contains(root: string, path: string): boolean {
  const way = relative(root, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
