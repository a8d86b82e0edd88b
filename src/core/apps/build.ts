/** The variables that bind a release to its build. */
import type { BuildId } from '../ids.ts'

/** The variable of a release that names its build. */
export const BUILD_VARIABLE = 'RUNPOD_BUILD_ID'

/** The variable of a release that names its function in the build. */
export const RESOURCE_VARIABLE = 'FLASH_RESOURCE_NAME'

/** True for a text in the form of an id of a build. */
export function isBuildId(text: string): text is BuildId {
  return /^[a-z0-9]{1,63}$/.test(text)
}

/**
 * The build that the variables of a release name; null for a release without one. The SDK names it beside the function
 * of the endpoint; alone the variable means nothing here.
 */
export function buildIdFromEnv(env: Readonly<Record<string, string>>): BuildId | null {
  const id = env[RESOURCE_VARIABLE] === undefined ? undefined : env[BUILD_VARIABLE]
  return id !== undefined && isBuildId(id) ? id : null
}
