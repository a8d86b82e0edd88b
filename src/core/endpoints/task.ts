/**
 * Tasks of RunPod's SDK 2.0: a worker that runs one function and ends. A task is stored as an endpoint that serves
 * requests with one worker and `runsOnce`, so that placement, logs, usage and adoption are those of any worker.
 */
import type { EndpointId } from '../ids.ts'
import { APP_KEY, TASK_PORT, TASK_TOKEN } from './runtime-image.ts'

/** The port of the program of a task, which clients put into the name of its host. */
export const USUAL_TASK_PORT = 8_080

/** Tail of the id of a task where a client makes a host name of it. */
const PROXY_TAIL = `-${USUAL_TASK_PORT}.proxy.runpod.net`

/** The path below which the program of a task is reached. */
export const TASKS_PATH = '/tasks/'

/** Time for which a task is shown after the end of its worker, in milliseconds: a day. */
export const TASK_RETENTION_MS = 24 * 3_600_000

/** Longest time from the start of its program until it answers, in seconds; a custom image installs packages first. */
const INIT_S = 900

/** The id that clients of a server get: they make the address of the program of it. @param host with its port */
export function clientTaskId(host: string, id: EndpointId): string {
  return `${host}${TASKS_PATH}${id}`
}

/** The id of a task in a text of a client, which may have a host before it. */
export function shortTaskId(text: string): string {
  return text.slice(text.lastIndexOf('/') + 1)
}

/** The id of a task in the first part of a path behind {@link TASKS_PATH}; null for a part without the tail. */
export function taskIdFromSegment(segment: string): string | null {
  return segment.endsWith(PROXY_TAIL) ? segment.slice(0, -PROXY_TAIL.length) : null
}

/** The variable with the time after which a task ends that nobody asks for, in seconds. */
const IDLE_TIMEOUT = 'RUNPOD_TASK_IDLE_TIMEOUT'
/** That time unless the variable has another one, in seconds. */
const IDLE_S = 600
/** Time beyond it for a program to end itself, in seconds. */
const IDLE_MARGIN_S = 60

/** Time without a request after which the server ends a task whose function does not run, in milliseconds. */
export function taskIdleMs(env: Readonly<Record<string, string>>): number {
  const asked = Number(env[IDLE_TIMEOUT] ?? IDLE_S)
  return (Number.isFinite(asked) && asked > 0 ? asked : IDLE_S) * 1_000 + IDLE_MARGIN_S * 1_000
}

/** True for the answer of the program of a task whose function runs. @param text null for none, or a large one */
export function saysRunning(text: string | null): boolean {
  try {
    return text !== null && Object(JSON.parse(text)).status === 'RUNNING'
  } catch {
    return false
  }
}

/** The variables of a task with those by which its program serves. */
export function taskEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  const port = /^\d{1,5}$/.test(env[TASK_PORT] ?? '') ? env[TASK_PORT]! : `${USUAL_TASK_PORT}`
  const usual = { RUNPOD_INIT_TIMEOUT: `${INIT_S}` }
  return { ...usual, ...env, [TASK_PORT]: port, PORT: port, PORT_HEALTH: port, HEALTH_CHECK_PATH: '/ping' }
}

/** The variables of a task that its owner may see. */
export function shownTaskEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  const hidden = new Set([TASK_TOKEN, APP_KEY])
  return Object.fromEntries(Object.entries(env).filter(([name]) => !hidden.has(name)))
}
