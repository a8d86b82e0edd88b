/** Errors by their causes: how often each came, and when last. Choosing one filters the list. */
import { request } from '../../../client/api.ts'
import { useResource } from '../../../client/resource.ts'
import { ofJobs } from '../../../client/topics.ts'
import { count } from '../../../format.ts'
import { Ago, Button, Failure } from '../../../parts/basic.tsx'
import { setQuery } from '../../../router.ts'
import { firstLine } from './job-error.ts'
import type { JobFilter } from './job-filter.ts'

/** A group of `GET /v2/{endpoint}/errors`. */
interface ErrorGroup {
  readonly fingerprint: string
  readonly count: number
  readonly error: string
  readonly lastAt: string
}

/** Groups that are shown; the page is about jobs. */
const MAX_SHOWN = 5

/** The panel of error groups; nothing where there was no error. */
export function ErrorGroups({ endpointId, filter }: { readonly endpointId: string; readonly filter: JobFilter }) {
  const groups = useResource(
    `errors ${endpointId}`,
    async signal => {
      const response = await request('GET', `/v2/${encodeURIComponent(endpointId)}/errors`, { signal })
      return ((await response.json()) as { errors: readonly ErrorGroup[] }).errors
    },
    { on: ofJobs(endpointId) },
  )
  if (groups.error !== null) return <Failure error={groups.error} retry={groups.reload} />
  if (groups.data === null || groups.data.length === 0) return null
  const shown = groups.data.filter(({ fingerprint }, at) => at < MAX_SHOWN || fingerprint === filter.fingerprint)
  return (
    <section class="error-groups" aria-label="Errors by cause">
      {shown.map(group => {
        const isOn = group.fingerprint === filter.fingerprint
        return (
          <button
            key={group.fingerprint}
            type="button"
            aria-pressed={isOn}
            onClick={() => setQuery({ fingerprint: isOn ? null : group.fingerprint })}
          >
            <b>{count(group.count)} ×</b>
            <span class="what" title={group.error.slice(0, 500)}>
              {firstLine(group.error)}
            </span>
            <span class="faint">
              last <Ago at={group.lastAt} suffix=" ago" />
            </span>
          </button>
        )
      })}
      {filter.fingerprint === null || shown.some(({ fingerprint }) => fingerprint === filter.fingerprint) ? null : (
        <Button onPress={() => setQuery({ fingerprint: null })}>Not only the errors of one cause</Button>
      )}
    </section>
  )
}
