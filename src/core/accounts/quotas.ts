/** Limits of one account, so that one account cannot use up an installation. */

import { AppError } from '../errors.ts'
import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import { DEFAULT_OWNER, type OwnerId } from '../ids.ts'

/** Names of all limits. */
export const ACCOUNT_LIMIT_NAMES = [
  'objects',
  'workersMin',
  'workers',
  'gpus',
  'queuedJobs',
  'queuedMb',
  'storedMb',
  'secretsMb',
  'buildsMb',
  'logsMb',
] as const

/** One of {@link ACCOUNT_LIMIT_NAMES}. */
export type AccountLimitName = (typeof ACCOUNT_LIMIT_NAMES)[number]

/**
 * Limits of an account; null for no limit. `objects` applies to each kind of object, `workersMin` is the sum over
 * its endpoints, `workers` and `gpus` count workers until they have ended, megabytes are MiB.
 */
export type AccountLimits = Readonly<Record<AccountLimitName, number | null>>

/** Limits that an operator gave an account; an omitted one is the default of the installation. */
export type GivenLimits = Partial<AccountLimits>

/** No limits. */
export const NO_LIMITS: AccountLimits = {
  objects: null,
  workersMin: null,
  workers: null,
  gpus: null,
  queuedJobs: null,
  queuedMb: null,
  storedMb: null,
  secretsMb: null,
  buildsMb: null,
  logsMb: null,
}

/** The default limits of accounts other than the operator's. */
export const ACCOUNT_LIMITS: AccountLimits = {
  objects: 1_000,
  workersMin: 8,
  workers: null,
  gpus: null,
  queuedJobs: 100_000,
  queuedMb: 256,
  storedMb: 1_024,
  secretsMb: 64,
  buildsMb: 4_096,
  logsMb: 512,
}

/** Maximum value of a limit. */
export const MAX_LIMIT = 1_000_000_000

/** Effective limits of an account. The operator's account has only the limits that it gave itself. */
export function limitsFor(owner: OwnerId, given: GivenLimits, defaults: AccountLimits): AccountLimits {
  return { ...(owner === DEFAULT_OWNER ? NO_LIMITS : defaults), ...given }
}

/** All problems of given limits. */
export function limitProblems(limits: GivenLimits): FieldProblem[] {
  return Object.entries(limits).flatMap(([name, value]) => {
    if (!ACCOUNT_LIMIT_NAMES.some(limit => limit === name)) return [fieldProblem('limits', 'is not a limit', name)]
    const isNumber = Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= MAX_LIMIT
    if (value === null || isNumber) return []
    return [fieldProblem('limits', `must be null or a whole number up to ${MAX_LIMIT}`, name)]
  })
}

/** Kinds of objects that an account creates. */
export type ObjectKind =
  | 'endpoints'
  | 'templates'
  | 'secrets'
  | 'registries'
  | 'volumes'
  | 'apps'
  | 'environments'
  | 'builds'

/** Numbers of objects of an account. */
export type ObjectCounts = Readonly<Record<ObjectKind | 'workersMin', number>>

/** Jobs and bytes that an account holds. Jobs of batches count from the draft on. */
export interface HeldJobs {
  readonly queuedJobs: number
  /** Bytes of the inputs that wait. */
  readonly queuedBytes: number
  /** Bytes of all stored inputs, outputs, chunks and payloads. */
  readonly storedBytes: number
}

/** No jobs. */
export const NOTHING_HELD: HeldJobs = { queuedJobs: 0, queuedBytes: 0, storedBytes: 0 }

/** The sum of both. */
export function addHeld(a: HeldJobs, b: HeldJobs): HeldJobs {
  return {
    queuedJobs: a.queuedJobs + b.queuedJobs,
    queuedBytes: a.queuedBytes + b.queuedBytes,
    storedBytes: a.storedBytes + b.storedBytes,
  }
}

const MIB = 1024 * 1024
const ASK = 'or ask the operator for a higher limit of the account'

/** `rate_limited` with the limit that was reached, its value and a remedy; null if the account may hold this much. */
export function heldProblem(held: HeldJobs, limits: AccountLimits): AppError | null {
  const { queuedJobs, queuedMb, storedMb } = limits
  if (queuedJobs !== null && held.queuedJobs > queuedJobs) {
    return tooMany(
      `queuedJobs of ${queuedJobs} waiting jobs`,
      `wait until some are done, purge a queue, cancel drafts of batches, ${ASK}`,
    )
  }
  if (queuedMb !== null && held.queuedBytes > queuedMb * MIB) {
    return tooMany(
      `queuedMb of ${queuedMb} MB of waiting inputs`,
      `wait until some are done, purge a queue, cancel drafts of batches, ${ASK}`,
    )
  }
  if (storedMb !== null && held.storedBytes > storedMb * MIB) {
    const help = `purge queues and delete endpoints that are done with, wait until results have expired, ${ASK}`
    return tooMany(`storedMb of ${storedMb} MB of kept inputs and results`, help)
  }
  return null
}

/** `conflict` if the account may not have this number of objects of a kind; else null. */
export function objectProblem(kind: ObjectKind, count: number, { objects }: AccountLimits): AppError | null {
  if (objects === null || count <= objects) return null
  return new AppError('conflict', `the account's limit objects of ${objects} ${kind} is reached; delete some, ${ASK}`)
}

/**
 * `conflict` if the account may not store this many bytes of secrets; else null.
 * @param bytes of all its secrets as they are stored: sealed, with their descriptions
 */
export function secretsProblem(bytes: number, { secretsMb }: AccountLimits): AppError | null {
  if (secretsMb === null || bytes <= secretsMb * MIB) return null
  return new AppError(
    'conflict',
    `the account's limit secretsMb of ${secretsMb} MB of secrets would be passed; delete some, or make them smaller, ${ASK}`,
  )
}

/**
 * `conflict` if the account may not keep this many bytes of archives of apps; else null.
 * @param bytes of all its archives, those that were announced among them
 */
export function buildsProblem(bytes: number, { buildsMb }: AccountLimits): AppError | null {
  if (buildsMb === null || bytes <= buildsMb * MIB) return null
  return new AppError(
    'conflict',
    `the account's limit buildsMb of ${buildsMb} MB of builds of apps would be passed; delete apps that are done with, ${ASK}`,
  )
}

/** Limit of bytes of the output of its workers on the disk; null for no limit. */
export function maxLogBytes({ logsMb }: AccountLimits): number | null {
  return logsMb === null ? null : logsMb * MIB
}

/** `conflict` if the endpoints of an account may not have this sum of workersMin; else null. */
export function workersMinProblem(sum: number, { workersMin }: AccountLimits): AppError | null {
  if (workersMin === null || sum <= workersMin) return null
  return new AppError(
    'conflict',
    `the account's limit workersMin of ${workersMin} for all endpoints together would be passed with ${sum}; ` +
      `lower workersMin of some endpoints, ${ASK}`,
  )
}

function tooMany(limit: string, help: string): AppError {
  return new AppError('rate_limited', `the account's limit ${limit} is reached; ${help}`, { retryAfterSeconds: 5 })
}
