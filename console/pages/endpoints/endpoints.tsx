/** The list of endpoints: the work of each, and its queue. */
import { useMemo } from 'preact/hooks'
import type { EndpointOverview, EndpointState } from '../../client/api-types.d.ts'
import { useOverview } from '../../client/overview.ts'
import { mayManage } from '../../client/session.ts'
import { count, percent, plural } from '../../format.ts'
import { Ago, Choice, Empty, Loaded, PageHead, State } from '../../parts/basic.tsx'
import { isPassing, sentence } from '../../parts/cause.ts'
import { Spark } from '../../parts/spark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { query, setQuery } from '../../router.ts'
import { serverNow } from '../../server-clock.ts'
import { byAttention, failingSentence, requestsOfHour, shownState } from './endpoint-states.ts'
import { WorkerDots } from './worker-dots.tsx'

const ATTENTION = 'attention'

/** Filters of the list by the states that they show. An endpoint may need attention in any state. */
const FILTERS: readonly (readonly [string, string, readonly EndpointState[] | null])[] = [
  ['', 'All', null],
  // The server explains the most urgent ones only; these states need attention also without a reason.
  [ATTENTION, 'Needs attention', ['PROBLEM', 'WAITING']],
  ['active', 'Active', ['READY', 'STARTING', 'ROLLING_OUT']],
  ['quiet', 'Quiet', ['SCALED_TO_ZERO', 'PAUSED']],
]

/** All endpoints of the account. */
export function Endpoints() {
  const overview = useOverview()
  const search = query.value.get('q') ?? ''
  const filter = query.value.get('show') ?? ''
  const endpoints = overview.data
  const rows = useMemo(() => filtered(endpoints ?? [], search, filter), [endpoints, search, filter])
  return (
    <>
      <PageHead title="Endpoints">
        {mayManage('write') ? (
          <a class="button main" href="/endpoints/new">
            New endpoint
          </a>
        ) : null}
      </PageHead>
      <div class="tools">
        <input
          data-search
          type="search"
          aria-label="Search endpoints"
          placeholder="Search by name, id or image ( / )"
          value={search}
          onInput={event => setQuery({ q: event.currentTarget.value })}
        />
        <Choice
          label="Show"
          value={filter}
          options={FILTERS.map(([id, title, states]) => [
            id,
            `${title} ${count((endpoints ?? []).filter(row => isIn(row, id, states)).length)}`,
          ])}
          onChange={show => setQuery({ show })}
        />
        <span class="faint" aria-live="polite">
          {endpoints === null || rows.length === endpoints.length ? '' : `${plural(rows.length, 'endpoint')} shown`}
        </span>
      </div>
      <Loaded of={overview}>
        {() => (
          <Table
            label="Endpoints"
            rows={rows}
            columns={COLUMNS}
            rowKey={({ id }) => id}
            href={({ id }) => `/endpoints/${id}`}
            line={reasonLine}
            empty={<NoEndpoints isFiltered={search !== '' || filter !== ''} />}
          />
        )}
      </Loaded>
    </>
  )
}

function NoEndpoints({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No endpoint matches" />
  return (
    <Empty title="No endpoint yet">
      <p>An endpoint takes jobs or requests and starts workers for them.</p>
      <p>
        {mayManage('write') ? <a href="/endpoints/new">Create one here</a> : 'Create one'}, or with{' '}
        <code>runyard serve --worker ./my-model</code>.
      </p>
    </Empty>
  )
}

function isIn(row: EndpointOverview, filter: string, states: readonly EndpointState[] | null): boolean {
  return states === null || states.includes(row.state) || (filter === ATTENTION && row.attention !== null)
}

function filtered(endpoints: readonly EndpointOverview[], search: string, filter: string): readonly EndpointOverview[] {
  const states = FILTERS.find(([id]) => id === filter)?.[2] ?? null
  const lowerCaseSearch = search.trim().toLowerCase()
  const matches = ({ id, name, image }: EndpointOverview) =>
    lowerCaseSearch === '' || [id, name, image ?? ''].some(text => text.toLowerCase().includes(lowerCaseSearch))
  // Problems first; equal ones as the server lists them.
  return endpoints.filter(row => isIn(row, filter, states) && matches(row)).sort(byAttention)
}

const COLUMNS: readonly Column<EndpointOverview>[] = [
  {
    id: 'name',
    title: 'Endpoint',
    width: 'minmax(150px, 1.3fr)',
    sort: ({ name }) => name.toLowerCase(),
    cell: ({ id, name, type }) => (
      <span title={name}>
        <a href={`/endpoints/${id}`} tabIndex={-1}>
          {name}
        </a>
        {type === 'LOAD_BALANCER' ? <span class="faint"> load balancing</span> : null}
      </span>
    ),
  },
  {
    id: 'state',
    title: 'State',
    width: '120px',
    isFixed: true,
    sort: row => shownState(row).rank,
    cell: row => {
      const { tone, title } = shownState(row)
      return <State tone={tone}>{title}</State>
    },
  },
  {
    id: 'workers',
    title: 'Workers',
    width: '110px',
    sort: ({ workers }) => workers.total,
    cell: ({ workers, workersMax }) => <WorkerDots workers={workers} max={workersMax} />,
  },
  {
    id: 'queue',
    title: 'Queue',
    width: '58px',
    isFixed: true,
    align: 'end',
    sort: ({ jobs }) => jobs.inQueue,
    cell: ({ jobs }) => count(jobs.inQueue),
  },
  {
    id: 'oldest',
    title: 'Oldest wait',
    width: '90px',
    align: 'end',
    isExtra: true,
    sort: ({ jobs }) => (jobs.oldestQueuedAt === null ? 0 : -Date.parse(jobs.oldestQueuedAt)),
    cell: ({ jobs }) => <Ago at={jobs.oldestQueuedAt} />,
  },
  {
    id: 'rate',
    title: 'Requests a minute',
    width: '146px',
    isExtra: true,
    sort: ({ rate }) => rate.perMinute,
    cell: row => (
      <>
        <Spark points={row.rate.points} label={`requests in the last hour: ${count(requestsOfHour(row))}`} />{' '}
        {row.rate.perMinute >= 10 ? Math.round(row.rate.perMinute) : Math.round(row.rate.perMinute * 10) / 10}
      </>
    ),
  },
  {
    id: 'errors',
    title: 'Errors',
    width: '64px',
    align: 'end',
    isExtra: true,
    sort: ({ rate }) => rate.errorShare ?? -1,
    cell: ({ rate }) => (
      <span class={rate.errorShare !== null && rate.errorShare > 0.05 ? 'bad-text' : ''}>
        {percent(rate.errorShare)}
      </span>
    ),
  },
]

/** Shorter waits have no line: rows below would jump with each start of a worker. In milliseconds. */
const SHORT_MS = 10_000

/** The reason why an endpoint waits, has a problem or fails its requests; null without one. */
function reasonLine(row: EndpointOverview) {
  const { why, attention } = row
  const isShown = why !== null && (attention === 'fix' || !isPassing(why, SHORT_MS, serverNow()))
  const reason = isShown ? sentence(why.summary) : row.rate.failingShare === null ? null : failingSentence(row)
  return reason === null ? null : <span title={reason}>{reason}</span>
}
