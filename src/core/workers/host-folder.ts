/** The right to run folders of the server's machine, which is equivalent to a shell as the server's user. */
import type { EndpointConfig } from '../endpoints/endpoint.ts'
import { isFolderImage, type Template } from '../endpoints/template.ts'
import { DEFAULT_OWNER, type OwnerId } from '../ids.ts'

/** Everything that decides the actions of a folder's worker on the machine. */
export interface FolderRun {
  readonly template: Pick<Template, 'image' | 'args' | 'env'>
  /** Null if only the template is created or changed. */
  readonly config: Pick<EndpointConfig, 'type' | 'env' | 'networkVolumeIds'> | null
}

/** The refusal for another account. */
export const OPERATOR_FOLDERS =
  "folders of this machine (images dir:...) are run only for the operator's account; use the image of a container"

/** The refusal for a key with fewer rights. */
export const OPERATOR_KEYS =
  "only a key of the operator's account that has all rights may choose what a folder of this machine (an image dir:...) runs"

/** True if workers of this image are not started for this account. */
export function isFolderReserved(owner: OwnerId, image: string): boolean {
  return isFolderImage(image) && owner !== DEFAULT_OWNER
}

/**
 * True if a change decides the program of a folder, which only the operator may do.
 * @param previous null for a new object
 */
export function choosesFolderRun(after: FolderRun, previous: FolderRun | null): boolean {
  if (!isFolderImage(after.template.image)) return false
  return previous === null || JSON.stringify(decisive(after)) !== JSON.stringify(decisive(previous))
}

function decisive({ template, config }: FolderRun): unknown[] {
  const { image, args, env } = template
  return [image, args, env, config && [config.type, config.env, config.networkVolumeIds]]
}
