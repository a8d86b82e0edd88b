import { APP_KEY, runsApp } from './runtime-image.ts'

/**
 * The value of RUNPOD_API_KEY in the saved variables of an app whose workers get a key of their own. It replaces the
 * key of the person who deployed, and says that this key could use the jobs of the account.
 */
export const WORKER_KEY = '{{ RUNYARD_WORKER_KEY }}'

/** True if workers with this image and these saved variables get a key for the jobs of their account. */
export function givesWorkerKey(image: string, env: Readonly<Record<string, string>>): boolean {
  return env[APP_KEY] === WORKER_KEY && runsApp(image, env)
}
