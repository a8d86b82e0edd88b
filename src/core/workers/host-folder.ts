/**
 * The right to run processes of the server's machine, of its folders and of apps, which is equivalent to a shell as
 * the server's user.
 */
import type { EndpointConfig } from '../endpoints/endpoint.ts'
import type { Template } from '../endpoints/template.ts'
import { DEFAULT_OWNER, type OwnerId } from '../ids.ts'

/** The name of the driver whose workers are processes of this machine. */
export const PROCESS_DRIVER = 'process'

/** Everything that decides the program of a worker. */
export interface ChosenRun {
  readonly template: Pick<Template, 'image' | 'args' | 'env'>
  /** Null if only the template is created or changed. */
  readonly config: Pick<EndpointConfig, 'type' | 'env' | 'networkVolumeIds'> | null
}

/** Everything that decides the actions of a folder's worker on the machine. */
export interface FolderRun extends ChosenRun {
  /** True if its workers are processes of the machine. */
  readonly isOnMachine: boolean
}

/** The refusal for another account. */
export const OPERATOR_FOLDERS =
  "processes of this machine (images dir:..., and apps without containers) are run only for the operator's account; use the image of a container"

/** The refusal for a key with fewer rights. */
export const OPERATOR_KEYS =
  "only a key of the operator's account that has all rights may choose what a process of this machine (an image dir:..., or an app without containers) runs"

/**
 * True if workers are not started for this account.
 * @param isOnMachine true for workers that are processes of the machine
 */
export function isFolderReserved(owner: OwnerId, isOnMachine: boolean): boolean {
  return isOnMachine && owner !== DEFAULT_OWNER
}

/**
 * True if a change decides the program of a process of the machine, which only the operator may do.
 * @param previous null for a new object
 */
export function choosesFolderRun(after: FolderRun, previous: FolderRun | null): boolean {
  return after.isOnMachine && choosesRun(after, previous)
}

/** True if a change decides the program that workers run. @param previous null for a new object */
export function choosesRun(after: ChosenRun, previous: ChosenRun | null): boolean {
  return previous === null || JSON.stringify(decisive(after)) !== JSON.stringify(decisive(previous))
}

function decisive({ template, config }: ChosenRun): unknown[] {
  const { image, args, env } = template
  return [image, args, env, config && [config.type, config.env, config.networkVolumeIds]]
}
