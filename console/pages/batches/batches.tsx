/** Batches of an endpoint: many requests that are submitted, run and read together. */
import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { api, queryString, request } from '../../client/api.ts'
import type { Batch } from '../../client/api-types.d.ts'
import { useOverview } from '../../client/overview.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage, mayUseJobs } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { count } from '../../format.ts'
import { Ago, Button, Empty, Loaded, State } from '../../parts/basic.tsx'
import { causeTitle, causeTone, sentence } from '../../parts/cause.ts'
import { type EndpointNames, EndpointPage } from '../../parts/endpoint-choice.tsx'
import { useGrowingList } from '../../parts/more.ts'
import { Pager } from '../../parts/pager.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { query, setQuery } from '../../router.ts'
import { BatchDetail } from './batch-detail.tsx'
import { freshness, Progress } from './batch-parts.tsx'
import { batchState, isStuck } from './batch-state.ts'
import { CALL } from './json-lines.ts'
import { NewRequests } from './new-requests.tsx'

const PAGE = 100
const PURPOSE = `A batch takes up to ${count(CALL.requests)} requests, runs them when the workers have time, and keeps all results for a day.`

/** The page of batches. */
export function Batches() {
  return (
    <EndpointPage
      title="Batches"
      purpose={PURPOSE}
      all={(chooser, names) => <ListOfAll chooser={chooser} names={names} />}
    >
      {(id, chooser) => <List key={id} endpoint={id} chooser={chooser} />}
    </EndpointPage>
  )
}

/** Lines below batches of which no request runs: the reason that their endpoint has. */
function useReasons(batches: readonly Batch[]): (batch: Batch) => ComponentChildren {
  const isAnyStuck = batches.some(isStuck)
  const { data } = useOverview(isAnyStuck && mayManage('read'))
  return useMemo(() => {
    const rows = new Map((data ?? []).flatMap(row => (row.attention === null ? [] : [[row.id, row]])))
    return batch => {
      const row = isStuck(batch) ? rows.get(batch.endpointId) : undefined
      if (row?.why == null) return null
      const { cause, summary } = row.why
      return (
        <span title={sentence(summary)}>
          <State tone={causeTone(cause) === 'bad' ? 'bad' : 'wait'}>{causeTitle(cause)}</State>{' '}
          <a href={`/endpoints/${row.id}`}>{row.name}</a>: {summary}
        </span>
      )
    }
  }, [data])
}

function BatchName({ batch: { id, name } }: { readonly batch: Batch }) {
  return name === null ? <code>{id}</code> : <span title={name}>{name}</span>
}

const COLUMNS: readonly Column<Batch>[] = [
  { id: 'name', title: 'Batch', cell: batch => <BatchName batch={batch} /> },
  {
    id: 'state',
    title: 'State',
    width: '104px',
    isFixed: true,
    cell: batch => {
      const { tone, word } = batchState(batch)
      return <State tone={tone}>{word}</State>
    },
  },
  { id: 'progress', title: 'Requests', width: 'minmax(0, 1.4fr)', cell: batch => <Progress batch={batch} /> },
  {
    id: 'made',
    title: 'Made',
    width: '130px',
    cell: ({ createdAt }) => <Ago at={createdAt} suffix=" ago" />,
    isExtra: true,
  },
]

/** The batches of all endpoints, the newest first. */
function ListOfAll({ chooser, names }: { readonly chooser: ComponentChildren; readonly names: EndpointNames }) {
  const batches = useGrowingList<Batch>(
    'batches of all',
    async (cursor, signal) => {
      const response = await request('GET', `/ops/batches${queryString({ limit: PAGE, cursor })}`, { signal })
      const { batches: rows, pagination } = (await response.json()) as BatchPage
      return { rows, nextCursor: pagination.nextCursor }
    },
    ({ id }) => id,
    changeTopic(/^batch/),
  )
  const reasons = useReasons(batches.data ?? [])
  const endpointName = ({ endpointId }: Batch) => names.get(endpointId) ?? endpointId
  const [, ...others] = COLUMNS
  const columns: readonly Column<Batch>[] = [
    { id: 'endpoint', title: 'Endpoint', cell: endpointName, isExtra: true },
    {
      id: 'name',
      title: 'Batch',
      cell: batch => (
        <>
          <BatchName batch={batch} />
          <small class="narrow-only faint">{endpointName(batch)}</small>
        </>
      ),
    },
    ...others,
  ]
  return (
    <>
      <div class="tools">{chooser}</div>
      <Loaded of={batches}>
        {rows => (
          <Table
            label="Batches"
            rows={rows}
            columns={columns}
            rowKey={({ id }) => id}
            onOpen={({ id, endpointId }) => setQuery({ endpoint: endpointId, id }, { replace: false })}
            onEnd={batches.more}
            line={reasons}
            empty={
              <Empty title="No batches yet">
                <p>{PURPOSE} Choose an endpoint to make one.</p>
              </Empty>
            }
          />
        )}
      </Loaded>
    </>
  )
}

/** A page of the batches of all endpoints. */
interface BatchPage {
  readonly batches: readonly Batch[]
  readonly pagination: { readonly nextCursor: string | null }
}

function List({ endpoint, chooser }: { readonly endpoint: string; readonly chooser: ComponentChildren }) {
  const [offset, setOffset] = useState(0)
  const [isNew, setNew] = useState(false)
  const batches = useResource(
    `batches ${endpoint} ${offset}`,
    signal => api('GET /v2/{endpoint}/batch', { path: { endpoint }, query: { offset, limit: PAGE }, signal }),
    freshness(endpoint),
  )
  const reasons = useReasons(batches.data?.batches ?? [])
  const opened = query.value.get('id')
  const open = (id: string) => setQuery({ endpoint, id }, { replace: false })
  return (
    <>
      <div class="tools">
        {chooser}
        {mayUseJobs('write', endpoint) ? (
          <Button kind="main" onPress={() => setNew(true)}>
            New batch
          </Button>
        ) : null}
      </div>
      <Loaded of={batches}>
        {({ batches: rows, total }) => (
          <>
            <Table
              label="Batches"
              rows={rows}
              columns={COLUMNS}
              rowKey={({ id }) => id}
              onOpen={({ id }) => open(id)}
              line={reasons}
              empty={
                <Empty title="No batches yet">
                  <p>{PURPOSE}</p>
                </Empty>
              }
            />
            <Pager offset={offset} shown={rows.length} total={total} size={PAGE} onMove={setOffset} />
          </>
        )}
      </Loaded>
      {isNew ? (
        <NewRequests
          endpoint={endpoint}
          onClose={() => setNew(false)}
          onDone={id => {
            batches.reload()
            open(id)
          }}
        />
      ) : null}
      {opened === null ? null : <BatchDetail key={opened} endpoint={endpoint} id={opened} onChange={batches.reload} />}
    </>
  )
}
