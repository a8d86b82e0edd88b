/** Errors by cause: their number and the time of the last. A choice of one filters the list. */

import { useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import { useResource } from '../../../client/resource.ts'
import { jobTopic } from '../../../client/topics.ts'
import { count, plural } from '../../../format.ts'
import { Ago, Failure } from '../../../parts/basic.tsx'
import { setQuery } from '../../../router.ts'
import { serverNow } from '../../../server-clock.ts'
import { firstLine } from './job-error.ts'
import { type JobFilter, jobQuery } from './job-filter.ts'

/** Number of groups that are shown before the button for more. */
const FEW = 1

/** The panel of error groups, within the time of the list; nothing without an error. */
export function ErrorGroups({ endpointId, filter }: { readonly endpointId: string; readonly filter: JobFilter }) {
  const { span, fromMs, toMs, fingerprint: chosen } = filter
  const [isLong, setLong] = useState(false)
  const errors = useResource(
    `errors ${endpointId} ${span} ${fromMs} ${toMs}`,
    signal => {
      const { from, to } = jobQuery(filter, serverNow())
      const query = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
      return api('GET /v2/{endpoint}/errors', { path: { endpoint: endpointId }, query, signal })
    },
    { on: event => jobTopic(endpointId)(event) && END.test(String(event.to)) },
  )
  if (errors.error !== null) return <Failure error={errors.error} retry={errors.reload} />
  const { groups, complete } = errors.data ?? { groups: [], complete: true }
  if (groups.length === 0 && chosen === null) return null
  const shownGroups = groups.filter(({ fingerprint }, at) => isLong || at < FEW || fingerprint === chosen)
  return (
    <section class="error-groups" aria-label="Errors by cause">
      {shownGroups.map(({ fingerprint, error, count: times, lastAt }) => (
        <button
          key={fingerprint}
          type="button"
          aria-pressed={fingerprint === chosen}
          onClick={() => setQuery({ fingerprint: fingerprint === chosen ? null : fingerprint })}
        >
          <b>
            {count(times)} <span aria-hidden="true">×</span>
            <span class="sr"> times</span>
          </b>
          <span class="what" title={error}>
            {firstLine(error)}
          </span>
          <span class="faint">
            <span class="wide-only">last </span>
            <Ago at={lastAt} suffix=" ago" />
          </span>
        </button>
      ))}
      {chosen === null || groups.some(({ fingerprint }) => fingerprint === chosen) ? null : (
        <button type="button" aria-pressed={true} onClick={() => setQuery({ fingerprint: null })}>
          <b>0</b>
          <span class="what">
            no error of the chosen cause <code>{chosen}</code> in this time
          </span>
        </button>
      )}
      {groups.length > FEW ? (
        <button type="button" class="more" aria-expanded={isLong} onClick={() => setLong(!isLong)}>
          {isLong ? 'Show few causes' : `Show ${complete ? 'all' : 'the newest'} ${plural(groups.length, 'cause')}`}
        </button>
      ) : null}
    </section>
  )
}

/** States of a job that has an error. */
const END = /^(?:FAILED|TIMED_OUT|IN_QUEUE)$/
