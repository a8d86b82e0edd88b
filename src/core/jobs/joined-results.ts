import { AppError } from '../errors.ts'
import { isJobId, type JobId } from '../ids.ts'

/**
 * Limits of one call with the results of several jobs: its results, and the bytes of its body, which is read in the
 * event loop.
 */
export const JOINED_RESULTS = { count: 100, bytes: 131_071 } as const

/** The result of one job in a call with several. */
export interface JoinedResult {
  readonly jobId: JobId
  /** The text that its worker would post alone. */
  readonly text: string
}

/**
 * Reads the body of job-done-batch: for each job a line with its id, then a line with its result, which is JSON
 * without a line break.
 * @throws AppError `invalid` for another text, and for more results than {@link JOINED_RESULTS}
 */
export function readJoinedResults(text: string): JoinedResult[] {
  const lines = text.split('\n')
  const results: JoinedResult[] = []
  for (let at = 0; at + 1 < lines.length; at += 2) {
    const jobId = lines[at]!
    if (!isJobId(jobId)) throw new AppError('invalid', `line ${at + 1} of the results is not the id of a job`)
    results.push({ jobId, text: lines[at + 1]! })
  }
  if (results.length === 0 || lines.length % 2 !== 0)
    throw new AppError('invalid', 'the results are not pairs of lines, each an id and a result')
  if (results.length > JOINED_RESULTS.count)
    throw new AppError('invalid', `a call has at most ${JOINED_RESULTS.count} results, this one has ${results.length}`)
  return results
}
