/** Where workers find models: at the places of RunPod in containers and cages, and by a variable everywhere. */
import { posix } from 'node:path'
import type { MountedModel, WorkerSpec } from '../ports/driver.ts'
import { VOLUME_PATH } from './process/volume-link.ts'

/** The cache of models below the network volume. */
export const CACHE_FOLDER = 'huggingface-cache/hub'

/** The same as workers see it in containers and cages. */
export const CACHE_PATH = posix.join(VOLUME_PATH, CACHE_FOLDER)

/** Any of these in the variables of a worker says that its owner wants another cache. */
const CACHE_VARIABLES = ['HF_HUB_CACHE', 'HUGGINGFACE_HUB_CACHE', 'HF_HOME']

/** Where a model is to be seen in a container or cage. */
export function mountPoint({ folder }: MountedModel): string {
  return posix.join(CACHE_PATH, folder)
}

/** The variable by which clients of Hugging Face find the models of a worker; none where it has no models, or a cache of its own. */
export function cacheVariables(
  { models, env }: Pick<WorkerSpec, 'models' | 'env'>,
  cache: string,
): Record<string, string> {
  const isChosen = CACHE_VARIABLES.some(name => env[name] !== undefined)
  return models.length === 0 || isChosen ? {} : { HF_HUB_CACHE: cache }
}
