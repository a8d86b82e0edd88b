import { problemSentence } from '../field-problem.ts'
import { parseInstant } from '../instants.ts'
import { isJsonObject, readJson } from '../json/json-text.ts'
import { nearest } from '../nearest.ts'
import { type PageRequest, pageProblems } from '../pages.ts'
import { FINGERPRINT } from './error-fingerprint.ts'
import { JOB_STATUSES } from './job.ts'
import type { JobFilter } from './job-record.ts'

/** Filter and page of a list of jobs of an endpoint. */
export interface JobListing {
  readonly filter: JobFilter
  readonly page: PageRequest
}

/** Limit of jobs that one request reads: a filtered page may be short without being the last. */
export const MAX_JOBS_READ = 5_000

/** Default number of jobs of a page. */
const DEFAULT_LIMIT = 100

/** Maximum length of the searched part of an error. */
const MAX_ERROR_PART = 200

/** A filter in the texts of a query or a body. */
export interface JobFilterQuery {
  /** States with commas between them. */
  readonly status?: string | undefined
  readonly worker?: string | undefined
  /** A part of the error. */
  readonly error?: string | undefined
  readonly fingerprint?: string | undefined
  /** Instants: RFC 3339, or milliseconds since 1970. */
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** The parameters of a list in the texts of a query. */
export interface JobListQuery extends JobFilterQuery {
  readonly limit?: string | undefined
  readonly cursor?: string | undefined
}

/** The listing of a query, or all problems of it, one sentence each. */
export function readJobListing(query: JobListQuery): JobListing | { readonly failures: readonly string[] } {
  const filter = readJobFilter(query)
  const limit =
    query.limit === undefined ? DEFAULT_LIMIT : /^\d{1,6}$/.test(query.limit) ? Number(query.limit) : Number.NaN
  const page = { limit, ...(query.cursor === undefined ? {} : { cursor: query.cursor }) }
  const failures = [
    ...('failures' in filter ? filter.failures : []),
    ...pageProblems(page).map(problem => problemSentence(problem)),
  ]
  return failures.length > 0 || 'failures' in filter ? { failures } : { filter, page }
}

/** The filter of a query, or all problems of it, one sentence each. */
export function readJobFilter(query: JobFilterQuery): JobFilter | { readonly failures: readonly string[] } {
  const { status, worker, error, fingerprint, from, to } = query
  const names = status === undefined ? [] : status.split(',').map(name => name.trim())
  const unknown = names.filter(name => !(JOB_STATUSES as readonly string[]).includes(name))
  const failures = unknown.map(
    name => `status '${name.slice(0, 100)}' is not known; the states are ${JOB_STATUSES.join(', ')}`,
  )
  if (worker !== undefined && !/^[\w-]{1,64}$/.test(worker)) failures.push('"worker" must be the id of a worker')
  if (error !== undefined && (error === '' || error.length > MAX_ERROR_PART))
    failures.push(`"error" must have 1 to ${MAX_ERROR_PART} characters`)
  if (fingerprint !== undefined && !FINGERPRINT.test(fingerprint))
    failures.push('"fingerprint" must be the errorFingerprint of a job, 16 hexadecimal digits')
  const [fromMs, untilMs] = [readInstant(from), readInstant(to)]
  for (const [name, value] of Object.entries({ from: fromMs, to: untilMs })) {
    if (Number.isNaN(value))
      failures.push(`"${name}" must be a date and time as in 2026-01-31T12:00:00Z, or milliseconds since 1970`)
  }
  if (failures.length > 0) return { failures }
  return {
    statuses: JOB_STATUSES.filter(status => names.includes(status)),
    workerId: (worker ?? null) as JobFilter['workerId'],
    error: error?.toLowerCase() ?? null,
    fingerprint: fingerprint ?? null,
    fromMs,
    untilMs,
  }
}

/** Jobs that one call changes together. */
export interface ManyJobs {
  readonly filter: JobFilter
  /** Position at which an earlier call stopped. */
  readonly cursor: string | undefined
  /** True if nothing is changed and the response only states the changes. */
  readonly dryRun: boolean
}

const FILTER_MEMBERS = ['status', 'worker', 'error', 'fingerprint', 'from', 'to'] as const
const MANY_MEMBERS = [...FILTER_MEMBERS, 'cursor', 'dryRun'] as const

/**
 * Reads the body of a change of many jobs. It refuses an unknown member, and a body without any filter: a
 * misspelled filter must not mean all jobs.
 */
export function readManyJobs(body: string): ManyJobs | { readonly failures: readonly string[] } {
  const reading = readJson(body)
  if (!reading.ok) return { failures: [`the body is not JSON: ${reading.problem}`] }
  if (!isJsonObject(reading.value)) return { failures: ['the body must be a JSON object with a filter'] }
  const given = Object.entries(reading.value).filter(([, value]) => value !== undefined && value !== null)
  // One member more than the known ones is enough to include an unknown one.
  const failures = given.slice(0, MANY_MEMBERS.length + 1).flatMap(([name, value]) => memberProblems(name, value))
  const query: JobFilterQuery = Object.fromEntries(
    given
      .filter(([name]) => (FILTER_MEMBERS as readonly string[]).includes(name))
      .map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : String(value)]),
  )
  if (failures.length === 0 && Object.keys(query).length === 0)
    failures.push(`the body needs a filter, one or more of ${FILTER_MEMBERS.join(', ')}`)
  const filter = readJobFilter(query)
  const { cursor, dryRun } = reading.value
  const page = typeof cursor === 'string' ? pageProblems({ cursor }).map(problem => problemSentence(problem)) : []
  failures.push(...('failures' in filter ? filter.failures : []), ...page)
  if (failures.length > 0 || 'failures' in filter) return { failures }
  return { filter, cursor: typeof cursor === 'string' ? cursor : undefined, dryRun: dryRun === true }
}

/** Problems of a member's name and of the type of its value. */
function memberProblems(name: string, value: unknown): string[] {
  if (!(MANY_MEMBERS as readonly string[]).includes(name)) {
    const close = nearest(name, MANY_MEMBERS)
    const shown = name.slice(0, 100)
    return [
      `"${shown}" is not known; ${close === null ? `known are ${MANY_MEMBERS.join(', ')}` : `did you mean "${close}"?`}`,
    ]
  }
  if (name === 'dryRun') return typeof value === 'boolean' ? [] : ['"dryRun" must be true or false']
  const isText = typeof value === 'string'
  const isStatuses = name === 'status' && Array.isArray(value) && value.every(item => typeof item === 'string')
  const isInstant = (name === 'from' || name === 'to') && typeof value === 'number'
  return isText || isStatuses || isInstant ? [] : [`"${name}" must be a text`]
}

/** Null for no text, NaN for an invalid one. */
function readInstant(text: string | undefined): number | null {
  if (text === undefined) return null
  return /^\d{1,15}$/.test(text) ? Number(text) : (parseInstant(text) ?? Number.NaN)
}
