/** The usage of the endpoints of the account, and its cost. */
import { useMemo, useRef } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { ListServerlessBillingResponse } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { count, money, percent } from '../../format.ts'
import { Button, Choice, Empty, Figure, Loaded, PageHead, Section } from '../../parts/basic.tsx'
import { Chart, useChartGroup, valueText } from '../../parts/chart.tsx'
import { csv, download } from '../../parts/csv.ts'
import { type Column, Table } from '../../parts/table.tsx'
import { query, setQuery } from '../../router.ts'
import { Quotas } from './quotas.tsx'
import {
  bounds,
  byEndpoint,
  byModel,
  costSeries,
  csvRows,
  type EndpointUse,
  endpointNames,
  type ModelUse,
  type Figure as Of,
  sumUses,
} from './usage-sums.ts'

/** Ranges that end now: number and size of their spans. */
const RANGES = {
  '24h': { title: '24 h', bucketSize: 'hour', lastN: 24 },
  '7d': { title: '7 d', bucketSize: 'day', lastN: 7 },
  '30d': { title: '30 d', bucketSize: 'day', lastN: 30 },
  '13w': { title: '13 weeks', bucketSize: 'week', lastN: 13 },
  '12m': { title: '12 months', bucketSize: 'month', lastN: 12 },
} as const
type RangeId = keyof typeof RANGES

/** The same ranges for tokens, which are summed by the day. */
const TOKEN_RANGES = { ...RANGES, '24h': { bucketSize: 'day', lastN: 2 } } as const

const AGAIN_MS = 20_000

/** The page. */
export function Usage() {
  if (!mayManage('read'))
    return (
      <>
        <PageHead title="Usage" />
        <Empty title="Your key may not see usage">
          It needs the right to read management, or one of all endpoints.
        </Empty>
      </>
    )
  return <AllUsage />
}

function AllUsage() {
  const rangeName = query.value.get('range') ?? ''
  const range: RangeId = Object.hasOwn(RANGES, rangeName) ? (rangeName as RangeId) : '30d'
  const { bucketSize, lastN } = RANGES[range]
  const bill = useResource(
    `billing ${range}`,
    signal => api('GET /v2/billing/serverless', { query: { bucketSize, lastN }, signal }),
    { everyMs: AGAIN_MS },
  )
  const last = useRef<ListServerlessBillingResponse | null>(null)
  if (bill.data !== null) last.current = bill.data
  const shownBill = bill.data ?? last.current
  const names = useNames()
  return (
    <>
      <PageHead title="Usage">
        <Choice<RangeId>
          label="Range"
          value={range}
          options={(Object.keys(RANGES) as RangeId[]).map(id => [id, RANGES[id].title])}
          onChange={id => setQuery({ range: id })}
        />
        {shownBill === null ? null : <Button onPress={() => save(shownBill, names)}>Download CSV</Button>}
      </PageHead>
      <Loaded of={{ ...bill, data: shownBill }}>
        {data => <Bill of={data} names={names} isOld={bill.data === null} />}
      </Loaded>
      <Tokens {...TOKEN_RANGES[range]} />
      <Quotas />
    </>
  )
}

/** Tokens of each model; nothing before the first. */
function Tokens({ bucketSize, lastN }: (typeof TOKEN_RANGES)[RangeId]) {
  const tokens = useResource(
    `tokens ${bucketSize} ${lastN}`,
    signal => api('GET /v2/billing/tokens', { query: { bucketSize, lastN }, signal }),
    { everyMs: AGAIN_MS },
  )
  const uses = useMemo(() => byModel(tokens.data?.records ?? []), [tokens.data])
  if (uses.length === 0) return null
  return (
    <Section title="Tokens by model" actions={<span class="faint">whole days of UTC, as workers report them</span>}>
      <Table
        label="Tokens by model"
        rows={uses}
        columns={TOKEN_COLUMNS}
        rowKey={({ model }) => model ?? ''}
        empty="No worker reported tokens in this time"
        height="content"
      />
    </Section>
  )
}

const tokenColumn = (id: Exclude<keyof ModelUse, 'model'>, title: string, isExtra = true): Column<ModelUse> => ({
  id,
  title,
  align: 'end',
  width: 'minmax(74px, 0.7fr)',
  cell: use => count(use[id]),
  sort: use => use[id],
  isExtra,
})

const TOKEN_COLUMNS: Column<ModelUse>[] = [
  {
    id: 'model',
    title: 'Model',
    width: 'minmax(110px, 1.2fr)',
    cell: ({ model }) => (model === null ? <span class="faint">not named</span> : <span title={model}>{model}</span>),
    sort: ({ model }) => model ?? '',
  },
  tokenColumn('promptTokens', 'Prompt', false),
  tokenColumn('completionTokens', 'Completion', false),
  tokenColumn('cachedTokens', 'Cached'),
  tokenColumn('requests', 'Requests'),
  tokenColumn('measuredRequests', 'With tokens'),
]

const PAGES = 10

/** Names of endpoints by their ids; null until they were read. */
type Names = ReadonlyMap<string, string> | null

/** The names of the existing endpoints and tasks. */
function useNames(): Names {
  const endpoints = useResource(
    'endpoint names',
    async signal => {
      const names = new Map<string, string>()
      let cursor: string | undefined
      for (let page = 0; page < PAGES; page += 1) {
        const { endpoints: rows, pagination } = await api('GET /v2/serverless', {
          query: { limit: 1_000, cursor },
          signal,
        })
        for (const { id, name } of rows) names.set(id, name)
        if (pagination.nextCursor === null) break
        cursor = pagination.nextCursor
      }
      // Ended tasks are kept for a day, so one page has all but those of the busiest accounts.
      for (const { id, name } of (await api('GET /v2/pods', { query: { limit: 1_000 }, signal })).pods)
        names.set(id, name)
      return names
    },
    { on: changeTopic(/Endpoint$/) },
  )
  return endpoints.data
}

function Bill({
  of: bill,
  names,
  isOld,
}: {
  readonly of: ListServerlessBillingResponse
  readonly names: Names
  readonly isOld: boolean
}) {
  const group = useChartGroup()
  const hasCost = bill.metadata.totals.totalAmount > 0
  const figureName = query.value.get('of')
  // Without prices, the chart of costs would be empty.
  const figure: Of = figureName === 'cost' || figureName === 'hours' ? figureName : hasCost ? 'cost' : 'hours'
  const uses = useMemo(() => byEndpoint(bill.records), [bill])
  const sum = sumUses(uses)
  const nameOf = useMemo(() => endpointNames(names, bill.records), [names, bill])
  const columns = useMemo(() => usageColumns(names, nameOf, sum), [names, uses])
  const { times, series } = useMemo(() => {
    const { startTime, endTime, bucketSize } = bill.metadata.query
    const all = bounds(Date.parse(startTime), Date.parse(endTime), bucketSize)
    const atMs = all.slice(0, -1)
    const toMs = all.at(-1)!
    return {
      times: { atMs, fromMs: Date.parse(startTime), toMs, lengthMs: toMs - atMs.at(-1)! },
      series: costSeries(bill.records, atMs, figure, id => nameOf(id) ?? id),
    }
  }, [bill, figure, names])
  return (
    <div aria-busy={isOld}>
      <div class="figures">
        <Figure name="Cost">{money(bill.metadata.totals.totalAmount)}</Figure>
        <Figure name="Worker hours">{valueText('hours', sum.hours)}</Figure>
        <Figure name="Running jobs" title="The part of the workers' time in which they ran jobs">
          {sum.hours === 0 ? '–' : percent(sum.runningHours / sum.hours)}
        </Figure>
        <Figure name="Completed">{count(sum.completed)}</Figure>
        <Figure name="Not done" title="Failed, timed out, cancelled or expired">
          {count(sum.others)}
        </Figure>
        <Figure name="Endpoints">{count(uses.length)}</Figure>
      </div>
      <Section
        title={figure === 'cost' ? 'Cost over time' : 'Worker hours over time'}
        actions={
          <Choice<Of>
            label="Figure of the chart"
            value={figure}
            options={[
              ['cost', 'Cost'],
              ['hours', 'Worker hours'],
            ]}
            onChange={of => setQuery({ of })}
          />
        }
      >
        {series.length === 0 ? (
          <Empty title="No worker existed in this time">
            Usage is counted from the first worker of an endpoint on.
          </Empty>
        ) : (
          <Chart
            title={figure === 'cost' ? 'Cost over time' : 'Worker hours over time'}
            kind="bars"
            unit={figure === 'cost' ? 'money' : 'hours'}
            summary="sum"
            times={times}
            series={series}
            group={group}
            height={250}
          />
        )}
      </Section>
      <Section title="By endpoint">
        <Table
          label="Usage by endpoint"
          rows={uses}
          columns={columns}
          rowKey={({ id }) => id}
          empty="Nothing was used in this time"
          height="content"
        />
      </Section>
    </div>
  )
}

/** Columns of the table, without those that are zero throughout. */
function usageColumns(
  names: Names,
  nameOf: (id: string) => string | undefined,
  sum: EndpointUse,
): Column<EndpointUse>[] {
  const number = (
    id: Exclude<keyof EndpointUse, 'id'>,
    title: string,
    text: (value: number) => string,
    isExtra = true,
  ) => ({
    id,
    title,
    align: 'end' as const,
    width: 'minmax(74px, 0.7fr)',
    cell: (use: EndpointUse) => text(use[id]),
    sort: (use: EndpointUse) => use[id],
    isExtra,
  })
  const hours = (value: number) => valueText('hours', value)
  return [
    {
      id: 'name',
      title: 'Endpoint',
      width: 'minmax(110px, 1.2fr)',
      cell: ({ id }) => <Name id={id} name={nameOf(id)} isDeleted={names?.has(id) === false} />,
      sort: ({ id }) => nameOf(id) ?? id,
    },
    ...(sum.cost > 0 ? [number('cost', 'Cost', money, false)] : []),
    ...(sum.gpuCost > 0 && sum.cpuCost > 0 ? [number('gpuCost', 'GPU', money), number('cpuCost', 'CPU', money)] : []),
    number('hours', 'Workers', hours, false),
    number('runningHours', 'Running', hours),
    number('idleHours', 'Idle', hours),
    number('startingHours', 'Starting', hours),
    ...(sum.frozenHours > 0 ? [number('frozenHours', 'Frozen', hours)] : []),
    number('completed', 'Completed', count),
    number('others', 'Not done', count),
  ]
}

/** The name of an endpoint in a bill. Usage outlives its endpoint. */
function Name({
  id,
  name,
  isDeleted,
}: {
  readonly id: string
  readonly name: string | undefined
  readonly isDeleted: boolean
}) {
  if (isDeleted)
    return (
      <span title={id}>
        {name ?? <code>{id}</code>} <span class="faint">deleted</span>
      </span>
    )
  return (
    <a href={`/endpoints/${id}`} title={name ?? id}>
      {name ?? id}
    </a>
  )
}

function save(bill: ListServerlessBillingResponse, names: Names): void {
  const nameOf = endpointNames(names, bill.records)
  const { startTime, endTime } = bill.metadata.query
  download(
    `usage-${startTime.slice(0, 10)}-${endTime.slice(0, 10)}.csv`,
    csv(csvRows(bill.records, id => nameOf(id) ?? '')),
  )
}
