/** The jobs of all endpoints, the newest first, by the filters of the jobs of one endpoint. */
import { queryString, request } from '../../client/api.ts'
import type { JobSummary } from '../../client/api-types.d.ts'
import { anyJobTopic } from '../../client/topics.ts'
import { useEndpoints } from '../../client/uses.ts'
import { count } from '../../format.ts'
import { Button, Empty, Failure, PageHead } from '../../parts/basic.tsx'
import { useGrowingList } from '../../parts/more.ts'
import { type Column, Table } from '../../parts/table.tsx'
import { query } from '../../router.ts'
import { serverNow } from '../../server-clock.ts'
import { Filters } from '../endpoint/requests/filters.tsx'
import { JOB_COLUMNS } from '../endpoint/requests/job-columns.tsx'
import { filterFromQuery, isFiltered, jobQuery } from '../endpoint/requests/job-filter.ts'

/** A job of one of the endpoints. */
interface Row extends JobSummary {
  readonly endpointId: string
}

interface JobPage {
  readonly requests: readonly Row[]
  readonly pagination: { readonly nextCursor: string | null }
}

const PAGE = 100

/** The page. */
export function Jobs() {
  const filter = filterFromQuery(query.value)
  const names = new Map(useEndpoints().data?.map(({ id, name }) => [id, name]))
  const list = useGrowingList<Row>(
    `jobs of all ${JSON.stringify(filter)}`,
    async (cursor, signal) => {
      const parameters = { ...jobQuery(filter, serverNow()), limit: PAGE, cursor }
      const response = await request('GET', `/ops/jobs${queryString(parameters)}`, { signal })
      const { requests, pagination } = (await response.json()) as JobPage
      return { rows: requests, nextCursor: pagination.nextCursor }
    },
    ({ id }) => id,
    anyJobTopic,
  )
  const rows = list.data ?? []
  const columns: readonly Column<Row>[] = [
    {
      id: 'endpoint',
      title: 'Endpoint',
      width: 'minmax(90px, 0.7fr)',
      cell: ({ endpointId }) => (
        <a href={`/endpoints/${endpointId}/requests`} tabIndex={-1}>
          {names.get(endpointId) ?? endpointId}
        </a>
      ),
    },
    ...JOB_COLUMNS.filter(({ id }) => id !== 'id' && id !== 'attempts'),
  ]
  return (
    <>
      <PageHead title="Jobs">
        <span class="faint" aria-live="polite">
          {list.data === null ? '' : `${count(rows.length)}${list.hasMore ? ' so far' : ''}`}
        </span>
      </PageHead>
      <Filters filter={filter} />
      {list.error === null ? null : <Failure error={list.error} retry={list.reload} />}
      <Table
        label="Jobs of all endpoints"
        rows={rows}
        columns={columns}
        rowKey={({ id }) => id}
        href={jobPath}
        onEnd={list.more}
        empty={<NoJobs isLoading={list.data === null} isFiltered={isFiltered(filter)} hasMore={list.hasMore} />}
      />
      {list.hasMore ? (
        <div class="tools below">
          <Button onPress={list.more}>{list.isReading ? 'Searching…' : 'Search further'}</Button>
        </div>
      ) : null}
    </>
  )
}

function jobPath({ endpointId, id }: Row): string {
  return `/endpoints/${endpointId}/requests?job=${encodeURIComponent(id)}`
}

function NoJobs({
  isLoading,
  isFiltered: isSome,
  hasMore,
}: {
  readonly isLoading: boolean
  readonly isFiltered: boolean
  readonly hasMore: boolean
}) {
  if (isLoading) return <p class="faint loading">Loading…</p>
  if (hasMore) return <Empty title="No match so far" />
  return isSome ? (
    <Empty title="No job matches the filter" />
  ) : (
    <Empty title="No job yet">Jobs of all queue endpoints appear here, those of load-balancing ones have none.</Empty>
  )
}
