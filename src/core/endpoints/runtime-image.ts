/** Images of RunPod's SDK 2.0, which name a kind of worker and a version of Python instead of a program. */

/** The kind of a worker of the SDK: it takes jobs, serves requests, or runs one function and ends. */
export type RuntimeKind = 'queue' | 'api' | 'task'

/** The parts of such an image that decide what a worker runs. */
export interface RuntimeImage {
  readonly kind: RuntimeKind
  /** The version of Python, as `3.11`: packages of a build and pickled values fit this one alone. */
  readonly python: string
}

/** Versions of Python for which the SDK has images. */
export const RUNTIME_PYTHONS = ['3.10', '3.11', '3.12', '3.13', '3.14'] as const

const IMAGE = /^(?:docker\.io\/)?runpod\/(queue|api|task)(?:-gpu)?:py(3\.1[0-4])-[\w.-]{1,100}$/

/** The parts of an image of the SDK, such as `runpod/queue:py3.11-latest`; null for any other image. */
export function runtimeImage(image: string): RuntimeImage | null {
  const [, kind, python] = IMAGE.exec(image) ?? []
  return kind === undefined || python === undefined ? null : { kind: kind as RuntimeKind, python }
}

/** Variables by which the SDK marks workers of an app: of a deployment, and of a dev session. */
const DEPLOYED = 'FLASH_RESOURCE_NAME'
const DEV = 'RUNPOD_DEV_APP'
/** Another name of {@link DEPLOYED}. */
const RESOURCE = 'RUNPOD_RESOURCE_NAME'
/** The variable of a task with the token of its calls. */
export const TASK_TOKEN = 'RUNPOD_TASK_TOKEN'
/** The variable of a task with the port of its program. */
export const TASK_PORT = 'RUNPOD_TASK_PORT'
/** The variable with the key with which functions of an app call others. */
export const APP_KEY = 'RUNPOD_API_KEY'

type Environment = Readonly<Record<string, string>>

/** True if workers with this image and these variables belong to an app of the SDK, also in an image of their own. */
export function runsApp(image: string, env: Environment): boolean {
  return runtimeImage(image) !== null || [DEPLOYED, DEV, TASK_TOKEN].some(name => name in env)
}

/**
 * True for a worker of an app that runs the source that each call brings, since its variables name no resource. An
 * empty name is none.
 */
export function isLiveWorker(image: string, env: Environment): boolean {
  return runsApp(image, env) && [DEPLOYED, RESOURCE].every(name => (env[name] ?? '') === '')
}

/** The app of a dev session in the variables of its workers; null for others. */
export function devApp(env: Environment): string | null {
  return env[DEV] ?? null
}

/** The beginning of the names of all endpoints of a dev session, by which functions find each other. */
export function devNames(app: string): string {
  return `dev-${app}-`
}
