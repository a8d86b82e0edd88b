/**
 * Tasks that a worker of an app starts with its token. A function is the code of somebody who may not even read the
 * account, so that its tasks get what its worker has, and nothing else.
 */
import type { BuildId } from '../ids.ts'
import { secretNames } from '../secrets/secret.ts'
import type { Endpoint } from './endpoint.ts'
import type { WantedVolume } from './mounts.ts'
import { devApp } from './runtime-image.ts'
import { savedEnv } from './saved-env.ts'
import { isFolderImage, type Template } from './template.ts'

/** Levels of tasks below an endpoint, or below a task that no worker started. */
export const MAX_NESTED_DEPTH = 3
/** Tasks of all these levels together that run or wait at a time. */
export const MAX_NESTED_TASKS = 20
/** Those that ended and that nobody deleted, besides: they are kept for a day. */
export const MAX_NESTED_ENDED = 200

/** Numbers of the tasks below one endpoint or task. */
export interface StartedTasks {
  readonly running: number
  readonly ended: number
}

/** A task that is asked for: its program, and its place. */
export interface WantedTask extends Pick<Template, 'image' | 'env' | 'registry'> {
  readonly volumes: readonly WantedVolume[]
  /** True for a process of the machine. */
  readonly isOnMachine: boolean
  /** The build of an app that it has on its disk; null for none. */
  readonly buildId: BuildId | null
}

/** The worker that asks: its program, and its place. */
export interface TaskStarter {
  readonly endpoint: Pick<Endpoint, 'name' | 'env' | 'networkVolumeIds' | 'starters'>
  readonly template: Pick<Template, 'image' | 'env' | 'registry'>
  /** As of the task. */
  readonly isOnMachine: boolean
  readonly buildId: BuildId | null
}

/** The sentence for a task that lies too deep; null for any other. */
export function depthProblem({ endpoint: { starters } }: TaskStarter): string | null {
  if (starters.length < MAX_NESTED_DEPTH) return null
  return `tasks start tasks up to ${MAX_NESTED_DEPTH} levels below the first function, and this one would be on level ${starters.length + 1}`
}

/** The sentence for one task too many; null where one more may start. */
export function breadthProblem({ running, ended }: StartedTasks): string | null {
  if (running >= MAX_NESTED_TASKS) {
    return `${running} tasks that functions started have not ended below the same endpoint or task, and more than ${MAX_NESTED_TASKS} at a time may not exist: wait for one of them`
  }
  if (ended < MAX_NESTED_ENDED) return null
  return `${ended} tasks that functions started below the same endpoint or task have ended and were not deleted, as their client does with the result: delete some, or wait for a day`
}

/** The sentence for a task that asks for something that its starter lacks; null for any other. */
export function gainProblem(starter: TaskStarter, task: WantedTask): string | null {
  const { endpoint, template } = starter
  const env = savedEnv(endpoint, template)
  if (task.isOnMachine !== starter.isOnMachine) {
    const place = (isOnMachine: boolean) => (isOnMachine ? 'a process of the machine' : 'a container')
    return `a task that a function starts runs where its worker does: the worker is ${place(starter.isOnMachine)}, and the task would be ${place(task.isOnMachine)}`
  }
  const lacks = (what: string) => `a task that a function starts has what its worker has, and no other ${what}`
  if (isFolderImage(task.image) && task.image !== template.image) return lacks(`folder (${task.image})`)
  const volume = task.volumes.find(({ id }) => !endpoint.networkVolumeIds.includes(id))
  if (volume !== undefined) return lacks(`volume (${volume.id})`)
  const known = new Set(secretNames(env))
  const secret = secretNames(task.env).find(name => !known.has(name))
  if (secret !== undefined) return lacks(`secret (${secret})`)
  if (task.registry !== null && task.registry !== template.registry) return lacks(`registry (${task.registry})`)
  const { buildId } = task
  if (buildId !== null && buildId !== starter.buildId) return lacks(`build (${buildId})`)
  const app = devApp(task.env)
  return app === null || app === devApp(env) ? null : lacks(`dev session (${app})`)
}
