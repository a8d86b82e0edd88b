/** The right to run folders of the server's machine, which equals a shell as the server's user. */
import type { EndpointConfig } from '../endpoints/endpoint.ts'
import { isFolderImage, type Template } from '../endpoints/template.ts'
import { DEFAULT_OWNER, type OwnerId } from '../ids.ts'

/** All that decides what a worker of a folder does on the machine. */
export interface FolderRun {
  readonly template: Pick<Template, 'image' | 'args' | 'env'>
  /** Null where only the template is made or changed. */
  readonly config: Pick<EndpointConfig, 'type' | 'env' | 'networkVolumeIds'> | null
}

/** The refusal for another account. */
export const OPERATOR_FOLDERS =
  "folders of this machine (images dir:...) are run only for the operator's account; use the image of a container"

/** The refusal for a key with fewer rights. */
export const OPERATOR_KEYS =
  "what a folder of this machine (an image dir:...) runs is chosen only with a key of the operator's account that has all rights"

/** Whether workers of this image are not started for this account. */
export function isFolderReserved(owner: OwnerId, image: string): boolean {
  return isFolderImage(image) && owner !== DEFAULT_OWNER
}

/** Whether a change decides what is run of a folder: then it is the operator's. @param before null for what is new */
export function choosesFolderRun(after: FolderRun, before: FolderRun | null): boolean {
  if (!isFolderImage(after.template.image)) return false
  return before === null || JSON.stringify(decisive(after)) !== JSON.stringify(decisive(before))
}

function decisive({ template, config }: FolderRun): unknown[] {
  const { image, args, env } = template
  return [image, args, env, config && [config.type, config.env, config.networkVolumeIds]]
}
