/** Ports, health check and hooks of a worker of a load-balancing endpoint, from the variables of its environment. */

import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import { secretNames } from '../secrets/secret.ts'
import { comparablePath, hookTarget, type SleepHooks } from './sleep-hooks.ts'

/**
 * Ports, health check and hooks of a worker. The ports are those that its user named; drivers may map them to
 * others.
 */
export interface Serving {
  readonly port: number
  /** Equal to `port` unless the user named another. */
  readonly healthPort: number
  /**
   * Path of the health check: begins with a slash, may have a query. If it comes from a secret it is the
   * reference: it is stored and shown with each worker, and the value must not be.
   */
  readonly healthPath: string
  /** Longest time from its start until it is healthy for the first time. */
  readonly initTimeoutMs: number
  /**
   * Requests that free its GPU memory before it is frozen and load it again; omitted if its variables define none.
   */
  readonly sleepHooks?: SleepHooks
  /** True for the worker of a task: once healthy it ends by itself or by request alone; omitted for others. */
  readonly once?: true
}

/** Maximum value of `RUNPOD_INIT_TIMEOUT`, in seconds. */
export const MAX_INIT_S = 86_400
const DEFAULT_PORT = 80
const DEFAULT_PATH = '/ping'
/** Default of the longest time until a worker is healthy for the first time; `RUNPOD_INIT_TIMEOUT` overrides it. */
export const NEVER_HEALTHY_MS = 8 * 60_000
const MAX_PATH = 2_000
const MAX_CONCURRENCY = 1_000_000

type Environment = Readonly<Record<string, string>>

/**
 * Serving parameters of an environment: PORT is 80 by default, PORT_HEALTH the same as PORT, HEALTH_CHECK_PATH
 * `/ping`; `RUNPOD_INIT_TIMEOUT` as for workers of queues. A value that {@link servingProblem} refuses counts as
 * missing.
 */
export function readServing(env: Environment): Serving {
  const port = integerIn(env.PORT, 65_535) ?? DEFAULT_PORT
  const path = env.HEALTH_CHECK_PATH
  const sleepHooks = readSleepHooks(env)
  return {
    port,
    healthPort: integerIn(env.PORT_HEALTH, 65_535) ?? port,
    healthPath: path !== undefined && (isPath(path) || secretNames({ path }).length > 0) ? path : DEFAULT_PATH,
    initTimeoutMs: initTimeoutMs(env, NEVER_HEALTHY_MS),
    ...(sleepHooks === null ? {} : { sleepHooks }),
  }
}

function readSleepHooks(env: Environment): SleepHooks | null {
  const { RUNYARD_SLEEP_URL: sleepUrl, RUNYARD_WAKE_URL: wakeUrl } = env
  if (sleepUrl === undefined || wakeUrl === undefined) return null
  const isHook = (text: string) => hookTarget(text) !== null || secretNames({ text }).length > 0
  return isHook(sleepUrl) && isHook(wakeUrl) ? { sleepUrl, wakeUrl } : null
}

/**
 * Paths of an environment, with secrets resolved, that only the server may request from a worker, in the form of
 * {@link comparablePath}: its sleep and wake hooks.
 */
export function reservedPaths(env: Environment): string[] {
  return [env.RUNYARD_SLEEP_URL, env.RUNYARD_WAKE_URL].flatMap(text => {
    const target = text === undefined ? null : hookTarget(text)
    return target === null ? [] : [comparablePath(target.path)]
  })
}

/** The variables of an environment that define how a worker serves, and how long it may take to start. */
export function servingVariables(env: Environment): Record<string, string> {
  return Object.fromEntries(Object.keys(RULES).flatMap(name => (env[name] === undefined ? [] : [[name, env[name]]])))
}

/**
 * Serving parameters of a worker whose environment refers to secrets.
 * @param saved as it was saved
 * @param resolved with the values of secrets
 */
export function servingWithSecrets(saved: Environment, resolved: Environment): Serving {
  const { HEALTH_CHECK_PATH, RUNYARD_SLEEP_URL, RUNYARD_WAKE_URL } = saved
  const shown = Object.entries({ HEALTH_CHECK_PATH, RUNYARD_SLEEP_URL, RUNYARD_WAKE_URL })
  const references = shown.filter((entry): entry is [string, string] => entry[1] !== undefined)
  return readServing({ ...resolved, ...Object.fromEntries(references) })
}

/** True if a text, with secrets resolved, can be the path of a health check. */
export function isHealthPath(text: string): boolean {
  return isPath(text) && secretNames({ text }).length === 0
}

/**
 * Path of the health check as a part of an address that every caller may see: a secret in it stays a reference,
 * encoded.
 */
export function shownHealthPath(env: Environment): string {
  const { healthPath } = readServing(env)
  if (secretNames({ healthPath }).length === 0) return healthPath
  const encoded = encodeURI(healthPath)
  return encoded.startsWith('/') ? encoded : `/${encoded}`
}

/** Limit of concurrent requests of a worker with this environment, its RUNYARD_MAX_CONCURRENCY; null for no limit. */
export function readMaxConcurrency(env: Environment): number | null {
  return integerIn(env.RUNYARD_MAX_CONCURRENCY, MAX_CONCURRENCY)
}

/**
 * Longest time until a worker with these variables asks for its first job or is healthy for the first time, in
 * milliseconds: its `RUNPOD_INIT_TIMEOUT`.
 * @param usualMs the time without that variable
 */
export function initTimeoutMs(env: Readonly<Record<string, string>>, usualMs: number): number {
  const text = env.RUNPOD_INIT_TIMEOUT
  return text !== undefined && isInitTimeout(text) ? Number(text) * 1000 : usualMs
}

/** True for a valid value of `RUNPOD_INIT_TIMEOUT`. */
export function isInitTimeout(text: string): boolean {
  return /^\d{1,6}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_INIT_S
}

/**
 * Problems of the variables by which a worker serves, as sentences; null without any.
 * @param saved as they were saved: if one refers to secrets, the problem names these and does not repeat its value
 */
export function servingProblem(env: Environment, saved: Environment = env): string | null {
  const problems = [...wrongIn(env), ...wrongTogether(env)].map(({ name, must, text }) => {
    const secrets = secretNames({ text: saved[name] ?? '' })
    const rule = `the variable ${name} must ${must}`
    if (env[name] === undefined) return rule
    if (secrets.length === 0) return `${rule}, not ${shown(text)}`
    return `${rule}, which the value of the secret ${secrets.join(', ')} is not`
  })
  return problems.length === 0 ? null : problems.join('; ')
}

/**
 * Problems of these variables when they are saved. A value that refers to a secret is checked when a worker is
 * started. Values are not repeated, since they may be anything.
 * @param present previous variables, whose values are not checked again
 */
export function servingVariableProblems(env: Environment, present: Environment = {}): FieldProblem[] {
  const isSame = (name: string) => env[name] === present[name]
  const together = ['RUNYARD_SLEEP_URL', 'RUNYARD_WAKE_URL', 'PORT'].every(isSame) ? [] : wrongTogether(env)
  return [...servingValueProblems(env, present), ...together.map(envProblem)]
}

/**
 * Problems of each variable by itself, for an environment whose other variables may come from elsewhere; else as
 * {@link servingVariableProblems}.
 */
export function servingValueProblems(env: Environment, present: Environment = {}): FieldProblem[] {
  const judged = wrongIn(env).filter(({ name, text }) => text !== present[name] && secretNames({ text }).length === 0)
  return judged.map(envProblem)
}

function envProblem({ name, must }: WrongVariable): FieldProblem {
  return fieldProblem('env', `must ${must}`, `the variable ${name}`)
}

interface VariableRule {
  readonly holds: (text: string) => boolean
  readonly must: string
}

const PORT_RULE: VariableRule = {
  holds: text => integerIn(text, 65_535) !== null,
  must: 'be a port from 1 to 65535',
}

const HOOK_RULE: VariableRule = {
  holds: text => hookTarget(text) !== null,
  must: 'be a path that begins with a slash, or http://127.0.0.1:<PORT>/<path>',
}

/** Rule of each variable; see docs/guides/load-balancing.md. */
const RULES: Readonly<Record<string, VariableRule>> = {
  PORT: PORT_RULE,
  PORT_HEALTH: PORT_RULE,
  HEALTH_CHECK_PATH: { holds: isHealthPath, must: 'be a path that begins with a slash and has no blanks' },
  RUNYARD_MAX_CONCURRENCY: {
    holds: text => integerIn(text, MAX_CONCURRENCY) !== null,
    must: `be an integer from 1 to ${MAX_CONCURRENCY}`,
  },
  RUNYARD_SLEEP_URL: HOOK_RULE,
  RUNYARD_WAKE_URL: HOOK_RULE,
  RUNPOD_INIT_TIMEOUT: { holds: isInitTimeout, must: `be a number of seconds from 1 to ${MAX_INIT_S}` },
}

interface WrongVariable {
  readonly name: string
  readonly text: string
  readonly must: string
}

function wrongIn(env: Environment): WrongVariable[] {
  return Object.entries(RULES).flatMap(([name, { holds, must }]) => {
    const text = env[name]
    return text === undefined || holds(text) ? [] : [{ name, text, must }]
  })
}

/** Problems between variables that are each valid. */
function wrongTogether(env: Environment): WrongVariable[] {
  const pair = ['RUNYARD_SLEEP_URL', 'RUNYARD_WAKE_URL'] as const
  const given = pair.filter(name => env[name] !== undefined)
  const alone = given.length === 1 ? pair.filter(name => env[name] === undefined) : []
  const port = integerIn(env.PORT ?? `${DEFAULT_PORT}`, 65_535)
  const elsewhere = given.flatMap(name => {
    const text = env[name] ?? ''
    const named = hookTarget(text)?.port ?? port
    return port === null || named === port
      ? []
      : [{ name, text, must: `name the port of the worker, its PORT ${port}` }]
  })
  return [...alone.map(name => ({ name, text: '', must: `be given where ${given.join('')} is` })), ...elsewhere]
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
