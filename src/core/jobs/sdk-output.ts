/**
 * Messages of the Python SDK about a result that it could not send. It prints the same line for a chunk or a
 * progress update, after which the job continues; the result is lost only if it also reports that the job is
 * finished.
 */

/** Report about a job in a line of a worker's output. */
export type SdkOutputReport =
  | { readonly kind: 'finished' }
  /** `unusable`: another attempt would have the same end. `undelivered`: it was lost on its way to us. */
  | {
      readonly kind: 'unsent'
      readonly why: 'unusable' | 'undelivered'
      readonly reason: string
      readonly over: boolean
    }

const MAX_REASON = 1_000
const UNSENT =
  /^ERROR (?:\[batchId=[^\]]{0,200}\] )?(?:(Failed to return job results\.)|(Error while returning job result\.)|(Error handling job:))(?: \|)? ?(.*)$/
const FINISHED = /^INFO (?:\[batchId=[^\]]{0,200}\] )?Finished\.$/
/** Refusals that each attempt would get. Not among them: unauthorized, too slow, too frequent. */
const REFUSED = /^4(?!01|08|29)\d\d, message=/
const BROKEN_LOOP = /^(?:Session|Event loop|Connector) is closed/

/** Reads one line, as people see it; null for a line without a report. */
export function readSdkOutput(line: string): SdkOutputReport | null {
  if (FINISHED.test(line)) return { kind: 'finished' }
  const [match, failed, wrong, escaped, text = ''] = UNSENT.exec(line) ?? []
  if (match === undefined) return null
  const detail = text.trim().slice(0, MAX_REASON)
  const usable =
    (failed !== undefined && !REFUSED.test(detail)) ||
    (wrong !== undefined && BROKEN_LOOP.test(detail)) ||
    (escaped !== undefined && detail === '')
  const reason = `the worker could not send its result: ${detail === '' ? 'no answer in time' : detail}`
  return { kind: 'unsent', why: usable ? 'undelivered' : 'unusable', reason, over: escaped !== undefined }
}
