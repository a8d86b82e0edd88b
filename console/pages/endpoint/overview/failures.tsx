/** Recent failures of an endpoint, with the most frequent error. */
import { api } from '../../../client/api.ts'
import type { Endpoint } from '../../../client/api-types.d.ts'
import { type Resource, useResource } from '../../../client/resource.ts'
import { jobTopic } from '../../../client/topics.ts'
import { count } from '../../../format.ts'
import { State } from '../../../parts/basic.tsx'
import { serverNow } from '../../../server-clock.ts'
import { firstLine } from '../requests/job-error.ts'
import { failureSentence, type HourResults, sumResults } from './recent-failures.ts'

const MINUTE_MS = 60_000
/** Minutes of the last hour, including the present one, as lists of endpoints count them. */
const MINUTES = 60
/** Interval after which results are read again: those of requests have no event. */
const RESULTS_MS = 15_000
/** Interval after which errors are read again. */
const ERRORS_MS = 30_000

/** A sentence about the failures of the last hour; nothing without any. */
export function Failures({ endpoint: { id, type } }: { readonly endpoint: Endpoint }) {
  const { data } = useHourResults(id)
  const says = data === null ? null : failureSentence(data, type)
  if (says === null) return null
  const isQueue = type === 'QUEUE'
  return (
    <section class="failures" aria-label="Failures of the last hour">
      <p>
        <State tone="bad">{says}</State>
        {isQueue ? null : ' Their status was 500 or higher, or the response broke off.'}
      </p>
      {isQueue ? <MostFrequentError id={id} /> : null}
      <p>
        {isQueue ? (
          <a href={`/endpoints/${id}/requests?status=FAILED,TIMED_OUT&span=1h`}>Failed jobs of the last hour</a>
        ) : (
          <>
            <a href={`/endpoints/${id}/metrics`}>When they failed</a>,{' '}
            <a href={`/endpoints/${id}/logs`}>output of the workers</a>
          </>
        )}
      </p>
    </section>
  )
}

function useHourResults(id: string): Resource<HourResults> {
  return useResource(
    `results of the hour ${id}`,
    async signal => {
      const from = new Date(serverNow() - (MINUTES - 1) * MINUTE_MS).toISOString()
      return sumResults(
        (await api('GET /v2/serverless/{id}/metrics', { path: { id }, query: { from }, signal })).points,
      )
    },
    { on: event => jobTopic(id)(event) && END.test(String(event.to)), everyMs: RESULTS_MS },
  )
}

/** States of a job that ended. */
const END = /^(?:COMPLETED|FAILED|TIMED_OUT)$/

/** The most frequent error of the jobs of the last hour, with a link to them; nothing without one. */
export function MostFrequentError({ id }: { readonly id: string }) {
  const { data } = useResource(
    `errors of the hour ${id}`,
    signal => {
      const from = new Date(serverNow() - MINUTES * MINUTE_MS).toISOString()
      return api('GET /v2/{endpoint}/errors', { path: { endpoint: id }, query: { from }, signal })
    },
    { everyMs: ERRORS_MS },
  )
  const [most] = [...(data?.groups ?? [])].sort((a, b) => b.count - a.count)
  if (most === undefined) return null
  return (
    <p>
      Most often ({count(most.count)} times):{' '}
      <a href={`/endpoints/${id}/requests?fingerprint=${encodeURIComponent(most.fingerprint)}`}>
        <code>{firstLine(most.error)}</code>
      </a>
    </p>
  )
}
