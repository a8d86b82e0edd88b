/** The requests of an endpoint: a runner, the list of its jobs, and one job in a drawer. */

import { useEffect, useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { Endpoint, JobSummary } from '../../../client/api-types.d.ts'
import { mayUseJobs, who } from '../../../client/session.ts'
import { jobTopic } from '../../../client/topics.ts'
import { plural } from '../../../format.ts'
import { Button, Code, Empty, Failure, Section } from '../../../parts/basic.tsx'
import { type GrowingList, useGrowingList } from '../../../parts/more.ts'
import { Table } from '../../../parts/table.tsx'
import { query, setQuery } from '../../../router.ts'
import { serverNow } from '../../../server-clock.ts'
import { Bulk } from './bulk.tsx'
import { ErrorGroups } from './error-groups.tsx'
import { Filters } from './filters.tsx'
import { JOB_COLUMNS } from './job-columns.tsx'
import { JobDrawer } from './job-drawer.tsx'
import { filterFromQuery, isFiltered, type JobFilter, jobQuery, mayHave } from './job-filter.ts'
import { useMoved } from './moved-jobs.ts'
import { quoted } from './run-call.ts'
import { findMode, Runner } from './runner.tsx'

/** The tab with the requests of an endpoint. */
export function Requests({ endpoint }: { readonly endpoint: Endpoint }) {
  if (endpoint.type === 'LOAD_BALANCER') return <HowToCall endpoint={endpoint} />
  if (!mayUseJobs('read', endpoint.id)) return <Empty title="This key may not read the jobs of this endpoint" />
  return <Jobs endpoint={endpoint} />
}

function Jobs({ endpoint }: { readonly endpoint: Endpoint }) {
  const filter = filterFromQuery(query.value)
  const mayWrite = mayUseJobs('write', endpoint.id)
  const mode = mayWrite ? findMode(query.value.get('run')) : null
  const open = query.value.get('job')
  const list = useJobs(endpoint.id, filter)
  const [selected, select] = useState<ReadonlySet<string>>(new Set())
  const rows = list.data ?? []
  // Otherwise ticked rows of another filter would be changed out of sight.
  const filterKey = JSON.stringify(filter)
  useEffect(() => select(new Set()), [filterKey])
  return (
    <>
      {mode === null ? null : <Runner endpoint={endpoint} mode={mode} />}
      <h2 class="sr">Jobs</h2>
      <Filters filter={filter}>
        <span class="faint to-end" aria-live="polite">
          {list.data === null ? '' : `${plural(rows.length, 'job')}${list.hasMore ? ' so far' : ''}`}
        </span>
        {mayWrite && mode === null ? (
          <Button kind="main" onPress={() => setQuery({ run: 'run' })}>
            New request
          </Button>
        ) : null}
        {mayWrite ? (
          <Bulk
            endpointId={endpoint.id}
            filter={filter}
            ticked={rows.filter(({ id }) => selected.has(id))}
            onDone={() => select(new Set())}
          />
        ) : null}
      </Filters>
      <ErrorGroups endpointId={endpoint.id} filter={filter} />
      {list.error === null ? null : <Failure error={list.error} retry={list.reload} />}
      <Table
        label="Jobs"
        rows={rows}
        columns={JOB_COLUMNS}
        rowKey={row => row.id}
        onOpen={row => setQuery({ job: row.id }, { replace: false })}
        {...(mayWrite ? { selected, onSelect: select } : {})}
        onEnd={list.more}
        empty={<NoJobs endpoint={endpoint} filter={filter} list={list} />}
      />
      {list.hasMore && rows.length > 0 && rows.length < FULL_SCREEN ? (
        <div class="tools below">
          <More list={list} />
        </div>
      ) : null}
      {open === null ? null : <JobDrawer key={open} endpointId={endpoint.id} jobId={open} />}
    </>
  )
}

/** Number of rows on the first page, which each change reads again, and on the others. */
const FIRST_PAGE = 100
const OTHER_PAGE = 1_000
/** Limit of pages that are read to fill the screen. A page of a filter can be short and yet not the last. */
const MAX_EMPTY_PAGES = 40
const FULL_SCREEN = 30

function useJobs(endpoint: string, filter: JobFilter): GrowingList<JobSummary> {
  const key = `requests ${endpoint} ${JSON.stringify(filter)}`
  const list = useGrowingList(
    key,
    async (cursor, signal) => {
      const limit = cursor === null ? FIRST_PAGE : OTHER_PAGE
      const query = { ...jobQuery(filter, serverNow()), limit, ...(cursor === null ? {} : { cursor }) }
      const { requests, pagination } = await api('GET /v2/{endpoint}/requests', { path: { endpoint }, query, signal })
      return { rows: requests, nextCursor: pagination.nextCursor }
    },
    ({ id }) => id,
    jobTopic(endpoint),
  )
  const [pages, setPages] = useState({ key, read: 0 })
  const read = pages.key === key ? pages.read : 0
  const rowCount = list.data?.length ?? 0
  const wantsMore =
    list.data !== null && rowCount < FULL_SCREEN && list.hasMore && !list.isReading && list.error === null
  useEffect(() => {
    if (!wantsMore || read >= MAX_EMPTY_PAGES) return
    setPages({ key, read: read + 1 })
    list.more()
  }, [wantsMore, read, key])
  return { ...list, data: useMoved(endpoint, list.data, ({ status }) => mayHave(filter, status)) }
}

function More({ list }: { readonly list: GrowingList<JobSummary> }) {
  return <Button onPress={list.more}>{list.isReading ? 'Searching…' : 'Search further'}</Button>
}

function NoJobs({
  endpoint,
  filter,
  list,
}: {
  readonly endpoint: Endpoint
  readonly filter: JobFilter
  readonly list: GrowingList<JobSummary>
}) {
  if (list.data === null) return list.error === null ? <p class="faint loading">Loading…</p> : null
  if (list.hasMore)
    return (
      <Empty title={list.isReading ? 'Searching…' : 'No match so far'}>
        <More list={list} />
      </Empty>
    )
  if (isFiltered(filter)) return <Empty title="No job matches the filter" />
  return (
    <Empty title="No job yet">
      <p>Send one from here, or from a program:</p>
      <Code text={(endpoint.requestUrls as { run?: string }).run ?? ''} what="address" />
    </Empty>
  )
}

/** Commands that call a load-balancing endpoint. */
function HowToCall({ endpoint }: { readonly endpoint: Endpoint }) {
  const { base } = endpoint.requestUrls as { readonly base: string }
  // The path of health that workers answer is for probes; people ask for the counts.
  const health = `${who.value!.server.queueUrl}/v2/${endpoint.id}/health`
  const authorization = `-H "Authorization: Bearer $RUNYARD_API_KEY"`
  const root = base.replace(/(?<!\/)\/+$/, '')
  const post = [
    `curl -sS ${quoted(`${root}/`)}`,
    authorization,
    "-H 'Content-Type: application/json'",
    `-d '{"prompt": "Hello"}'`,
  ]
  return (
    <Section title="How to call this endpoint">
      <p>
        Requests go straight to the workers of this endpoint, so it has no list of jobs. Its paths and responses are
        those of the server in its workers.
      </p>
      <h3>Get a page</h3>
      <Code text={`curl -sS ${quoted(`${root}/`)} \\\n  ${authorization}`} />
      <h3>Send JSON</h3>
      <Code text={post.join(' \\\n  ')} />
      <h3>Numbers of requests and workers</h3>
      <Code text={`curl -sS ${quoted(health)} \\\n  ${authorization}`} />
    </Section>
  )
}
