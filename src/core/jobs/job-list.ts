import { problemSentence } from '../field-problem.ts'
import { type PageRequest, pageProblems } from '../pages.ts'
import { JOB_STATUSES, type JobStatus } from './job.ts'

/** Which jobs of an endpoint are listed. */
export interface JobListing {
  /** Those in one of these states; all of them when it is empty. */
  readonly statuses: readonly JobStatus[]
  readonly page: PageRequest
}

/** Limit of jobs that one request reads: a page of some states may be short and yet not the last. */
export const MAX_JOBS_READ = 5_000

/** Default number of jobs of a page. */
const DEFAULT_LIMIT = 100

/** The parameters of a list as they came in a query. */
export interface JobListQuery {
  /** States with commas between them. */
  readonly status?: string | undefined
  readonly limit?: string | undefined
  readonly cursor?: string | undefined
}

/** What a query asks for, or everything wrong with it, one sentence each. */
export function readJobListing(query: JobListQuery): JobListing | { readonly failures: readonly string[] } {
  const names = query.status === undefined ? [] : query.status.split(',').map(name => name.trim())
  const statuses = JOB_STATUSES.filter(status => names.includes(status))
  const unknown = names.filter(name => !(JOB_STATUSES as readonly string[]).includes(name))
  const limit =
    query.limit === undefined ? DEFAULT_LIMIT : /^\d{1,6}$/.test(query.limit) ? Number(query.limit) : Number.NaN
  const page = { limit, ...(query.cursor === undefined ? {} : { cursor: query.cursor }) }
  const failures = [
    ...unknown.map(name => `status '${name.slice(0, 100)}' is not known; the states are ${JOB_STATUSES.join(', ')}`),
    ...pageProblems(page).map(problem => problemSentence(problem)),
  ]
  return failures.length > 0 ? { failures } : { statuses, page }
}
