/** Limits of one account, so that one account cannot use up an installation. */

import { AppError } from '../errors.ts'
import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import { DEFAULT_OWNER, type OwnerId } from '../ids.ts'

/** The names of all limits. */
export const ACCOUNT_LIMIT_NAMES = [
  'objects',
  'workersMin',
  'workers',
  'gpus',
  'queuedJobs',
  'queuedMb',
  'storedMb',
  'secretsMb',
  'logsMb',
] as const

/** One of {@link ACCOUNT_LIMIT_NAMES}. */
export type AccountLimitName = (typeof ACCOUNT_LIMIT_NAMES)[number]

/**
 * The limits of an account; null for none. `objects` counts each kind of them for itself, `workersMin` is the sum over its
 * endpoints, `workers` and `gpus` count workers until they have ended, megabytes are MiB.
 */
export type AccountLimits = Readonly<Record<AccountLimitName, number | null>>

/** Limits that an operator gave an account; what is left out is that of the installation. */
export type GivenLimits = Partial<AccountLimits>

/** Without any limit. */
export const NO_LIMITS: AccountLimits = {
  objects: null,
  workersMin: null,
  workers: null,
  gpus: null,
  queuedJobs: null,
  queuedMb: null,
  storedMb: null,
  secretsMb: null,
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
  logsMb: 512,
}

/** The largest number that a limit can have. */
export const MAX_LIMIT = 1_000_000_000

/** The limits that count for an account. The operator's has those that it gave itself, and else none. */
export function limitsFor(owner: OwnerId, given: GivenLimits, defaults: AccountLimits): AccountLimits {
  return { ...(owner === DEFAULT_OWNER ? NO_LIMITS : defaults), ...given }
}

/** Everything wrong with limits that somebody gave. */
export function limitProblems(limits: GivenLimits): FieldProblem[] {
  return Object.entries(limits).flatMap(([name, value]) => {
    if (!ACCOUNT_LIMIT_NAMES.some(known => known === name)) return [fieldProblem('limits', 'is not a limit', name)]
    const isNumber = Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= MAX_LIMIT
    if (value === null || isNumber) return []
    return [fieldProblem('limits', `must be null or a whole number up to ${MAX_LIMIT}`, name)]
  })
}

/** Kinds of objects that an account makes. */
export type ObjectKind = 'endpoints' | 'templates' | 'secrets' | 'registries' | 'volumes'

/** What an account has of objects. */
export type ObjectCounts = Readonly<Record<ObjectKind | 'workersMin', number>>

/** What the jobs of an account hold. Jobs of batches count from the draft on. */
export interface HeldJobs {
  readonly queuedJobs: number
  /** Bytes of the inputs that wait. */
  readonly queuedBytes: number
  /** Bytes of all inputs, outputs, chunks and payloads that are kept. */
  readonly storedBytes: number
}

/** No jobs. */
export const NOTHING_HELD: HeldJobs = { queuedJobs: 0, queuedBytes: 0, storedBytes: 0 }

/** The sum of two. */
export function addHeld(a: HeldJobs, b: HeldJobs): HeldJobs {
  return {
    queuedJobs: a.queuedJobs + b.queuedJobs,
    queuedBytes: a.queuedBytes + b.queuedBytes,
    storedBytes: a.storedBytes + b.storedBytes,
  }
}

const MIB = 1024 * 1024
const ASK = 'or ask the operator for a higher limit of the account'

/** Why an account cannot hold this much: `rate_limited`, with the limit, its value and what to do; null when it can. */
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

/** Why an account cannot have this number of objects of a kind: `conflict`; null when it can. */
export function objectProblem(kind: ObjectKind, count: number, { objects }: AccountLimits): AppError | null {
  if (objects === null || count <= objects) return null
  return new AppError('conflict', `the account's limit objects of ${objects} ${kind} is reached; delete some, ${ASK}`)
}

/**
 * Why an account cannot keep this many bytes of secrets: `conflict`; null when it can.
 * @param bytes of all its secrets as they are stored, sealed, with their descriptions
 */
export function secretsProblem(bytes: number, { secretsMb }: AccountLimits): AppError | null {
  if (secretsMb === null || bytes <= secretsMb * MIB) return null
  return new AppError(
    'conflict',
    `the account's limit secretsMb of ${secretsMb} MB of secrets would be passed; delete some, or make them smaller, ${ASK}`,
  )
}

/** Bytes of output of its workers that an account may have on the disk; null for any number. */
export function logBytesOf({ logsMb }: AccountLimits): number | null {
  return logsMb === null ? null : logsMb * MIB
}

/** Why the endpoints of an account cannot have this sum of workersMin: `conflict`; null when they can. */
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
