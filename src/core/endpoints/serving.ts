/** How a worker of a load-balancing endpoint serves, as the variables of its environment say. */

import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import { secretNames } from '../secrets/secret.ts'
import { initTimeoutMs, isInitTimeout, MAX_INIT_S } from './init-timeout.ts'

/** What the program of a worker serves; the ports are those that its user named, drivers may give it others. */
export interface Serving {
  readonly port: number
  /** The same as `port` unless the user named another. */
  readonly healthPort: number
  /**
   * What is asked for to see whether it is well: begins with a slash, may have a query. Where it comes from a secret it is the
   * reference: it is kept and shown with each worker, which the value must not be.
   */
  readonly healthPath: string
  /** How long it may take from its start until it is well for the first time. */
  readonly initTimeoutMs: number
}

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
    healthPath: path !== undefined && (isPath(path) || secretNames({ path }).length > 0) ? path : DEFAULT_PATH,
    initTimeoutMs: initTimeoutMs(env, NEVER_HEALTHY_MS),
  }
}

/** The variables of an environment that say how a worker serves, and how long it may take to start. */
export function servingVariables(env: Environment): Record<string, string> {
  return Object.fromEntries(Object.keys(RULES).flatMap(name => (env[name] === undefined ? [] : [[name, env[name]]])))
}

/**
 * How a worker serves whose environment refers to secrets.
 * @param saved as it was saved
 * @param resolved with the values of secrets
 */
export function servingWithSecrets(saved: Environment, resolved: Environment): Serving {
  const { HEALTH_CHECK_PATH: path } = saved
  return servingOf({ ...resolved, ...(path === undefined ? {} : { HEALTH_CHECK_PATH: path }) })
}

/** Whether a text, with secrets resolved, can be asked for as the path of a health check. */
export function isHealthPath(text: string): boolean {
  return isPath(text) && secretNames({ text }).length === 0
}

/** The path of the health check as a part of an address that every caller may see: a secret in it stays a reference, encoded. */
export function shownHealthPath(env: Environment): string {
  const { healthPath } = servingOf(env)
  if (secretNames({ healthPath }).length === 0) return healthPath
  const encoded = encodeURI(healthPath)
  return encoded.startsWith('/') ? encoded : `/${encoded}`
}

/** Limit of concurrent requests of a worker with this environment, its RUNYARD_MAX_CONCURRENCY; null for no limit. */
export function maxConcurrencyOf(env: Environment): number | null {
  return integerIn(env.RUNYARD_MAX_CONCURRENCY, MAX_CONCURRENCY)
}

/**
 * What is wrong with the variables that say how a worker serves, as sentences; null when nothing is.
 * @param saved as they were saved: of one that refers to secrets these are named, and its value is not repeated
 */
export function servingProblem(env: Environment, saved: Environment = env): string | null {
  const problems = wrongIn(env).map(({ name, must, text }) => {
    const secrets = secretNames({ text: saved[name] ?? '' })
    const rule = `the variable ${name} must ${must}`
    if (secrets.length === 0) return `${rule}, not ${shown(text)}`
    return `${rule}, which the value of the secret ${secrets.join(', ')} is not`
  })
  return problems.length === 0 ? null : problems.join('; ')
}

/**
 * The same when variables are saved. A value that refers to a secret is checked when a worker is started. Values are not repeated:
 * they may be anything.
 * @param known variables from before, whose values are not judged again
 */
export function servingVariableProblems(env: Environment, known: Environment = {}): FieldProblem[] {
  const judged = wrongIn(env).filter(({ name, text }) => text !== known[name] && secretNames({ text }).length === 0)
  return judged.map(({ name, must }) => fieldProblem('env', `must ${must}`, `the variable ${name}`))
}

interface VariableRule {
  readonly holds: (text: string) => boolean
  readonly must: string
}

const PORT_RULE: VariableRule = {
  holds: text => integerIn(text, 65_535) !== null,
  must: 'be a port from 1 to 65535',
}

/** What must be true of each variable; see docs/guides/load-balancing.md. */
const RULES: Readonly<Record<string, VariableRule>> = {
  PORT: PORT_RULE,
  PORT_HEALTH: PORT_RULE,
  HEALTH_CHECK_PATH: { holds: isHealthPath, must: 'be a path that begins with a slash and has no blanks' },
  RUNYARD_MAX_CONCURRENCY: {
    holds: text => integerIn(text, MAX_CONCURRENCY) !== null,
    must: `be an integer from 1 to ${MAX_CONCURRENCY}`,
  },
  RUNPOD_INIT_TIMEOUT: { holds: isInitTimeout, must: `be a number of seconds from 1 to ${MAX_INIT_S}` },
}

interface Wrong {
  readonly name: string
  readonly text: string
  readonly must: string
}

function wrongIn(env: Environment): Wrong[] {
  return Object.entries(RULES).flatMap(([name, { holds, must }]) => {
    const text = env[name]
    return text === undefined || holds(text) ? [] : [{ name, text, must }]
  })
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
