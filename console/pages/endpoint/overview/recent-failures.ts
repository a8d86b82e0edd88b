/** Failures of an endpoint in the last hour, in words. */
import type { Endpoint, EndpointMetricPoint } from '../../../client/api-types.d.ts'
import { count, percent, plural } from '../../../format.ts'

/** Requests that ended in the last hour, without cancelled ones, and those that failed, timed out or expired. */
export interface HourResults {
  readonly ended: number
  readonly failed: number
}

/** The sums of points. */
export function sumResults(points: readonly Pick<EndpointMetricPoint, 'requests'>[]): HourResults {
  let [ended, failed] = [0, 0]
  for (const { requests } of points) {
    const wrong = requests.failed + requests.timedOut + requests.expired
    failed += wrong
    ended += requests.completed + wrong
  }
  return { ended, failed }
}

/** A sentence about failures; null without any. */
export function failureSentence({ ended, failed }: HourResults, type: Endpoint['type']): string | null {
  if (failed === 0) return null
  const all = plural(ended, type === 'QUEUE' ? 'job' : 'request')
  return `${count(failed)} of ${all} failed in the last hour (${percent(failed / ended)}).`
}
