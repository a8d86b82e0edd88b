/** How a worker of a load-balancing endpoint serves, as the variables of its environment say. */

import { initTimeoutMs } from './init-timeout.ts'

/** What the program of a worker serves; the ports are those that its user named, drivers may give it others. */
export interface Serving {
  readonly port: number
  /** The same as `port` unless the user named another. */
  readonly healthPort: number
  /** What is asked for to see whether it is well: begins with a slash, may have a query. */
  readonly healthPath: string
  /** How long it may take from its start until it is well for the first time. */
  readonly initTimeoutMs: number
}

/** What of the environment is read; see docs/guides/load-balancing.md. */
export const SERVING_VARIABLES = ['PORT', 'PORT_HEALTH', 'HEALTH_CHECK_PATH', 'RUNYARD_MAX_CONCURRENCY'] as const

const DEFAULT_PORT = 80
const DEFAULT_PATH = '/ping'
/** How long a worker may take until it is well for the first time, unless `RUNPOD_INIT_TIMEOUT` says something else. */
export const NEVER_HEALTHY_MS = 8 * 60_000
const MAX_PATH = 2_000
const MAX_CONCURRENCY = 1_000_000

type Environment = Readonly<Record<string, string>>

/**
 * How a worker with this environment serves: PORT is 80 unless given, PORT_HEALTH the same as PORT, HEALTH_CHECK_PATH `/ping`;
 * `RUNPOD_INIT_TIMEOUT` as for workers of queues.
 * What {@link servingProblem} finds fault with counts as not given.
 */
export function servingOf(env: Environment): Serving {
  const port = integerIn(env.PORT, 65_535) ?? DEFAULT_PORT
  const path = env.HEALTH_CHECK_PATH
  return {
    port,
    healthPort: integerIn(env.PORT_HEALTH, 65_535) ?? port,
    healthPath: path !== undefined && isPath(path) ? path : DEFAULT_PATH,
    initTimeoutMs: initTimeoutMs(env, NEVER_HEALTHY_MS),
  }
}

/** Most requests at once that a worker of this environment may have, its RUNYARD_MAX_CONCURRENCY; null for no limit. */
export function maxConcurrencyOf(env: Environment): number | null {
  return integerIn(env.RUNYARD_MAX_CONCURRENCY, MAX_CONCURRENCY)
}

/** What is wrong with the variables that say how a worker serves, as a sentence; null when nothing is. */
export function servingProblem(env: Environment): string | null {
  for (const name of ['PORT', 'PORT_HEALTH'] as const) {
    const text = env[name]
    if (text !== undefined && integerIn(text, 65_535) === null)
      return `the variable ${name} must be a port from 1 to 65535, not ${shown(text)}`
  }
  const path = env.HEALTH_CHECK_PATH
  if (path !== undefined && !isPath(path))
    return `the variable HEALTH_CHECK_PATH must be a path that begins with a slash and has no blanks, not ${shown(path)}`
  const most = env.RUNYARD_MAX_CONCURRENCY
  if (most !== undefined && maxConcurrencyOf(env) === null)
    return `the variable RUNYARD_MAX_CONCURRENCY must be an integer from 1 to ${MAX_CONCURRENCY}, not ${shown(most)}`
  return null
}

function integerIn(text: string | undefined, max: number): number | null {
  if (text === undefined || !/^\d{1,7}$/.test(text)) return null
  const value = Number(text)
  return value >= 1 && value <= max ? value : null
}

function isPath(text: string): boolean {
  return text.length <= MAX_PATH && /^\/[!-~]*$/.test(text) && !text.includes('#')
}

function shown(text: string): string {
  return `'${text.length > 40 ? `${text.slice(0, 40)}…` : text}'`
}
