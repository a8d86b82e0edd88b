/** Measures of an endpoint over time. */

import { useMemo, useRef } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { Endpoint, EndpointMetrics } from '../../../client/api-types.d.ts'
import { type Resource, useResource } from '../../../client/resource.ts'
import { releaseTopic, workerTopic } from '../../../client/topics.ts'
import { dateTime } from '../../../format.ts'
import { Button, Choice, Loaded, Section } from '../../../parts/basic.tsx'
import { Chart, useChartGroup, valueText } from '../../../parts/chart.tsx'
import { csv, download } from '../../../parts/csv.ts'
import type { Mark } from '../../../parts/plot.ts'
import { type Column, Table } from '../../../parts/table.tsx'
import { query, setQuery } from '../../../router.ts'
import { serverNow } from '../../../server-clock.ts'
import {
  csvRows,
  emptyReason,
  type Measure,
  measureHint,
  measuresFromSlots,
  type Slot,
  slotsFromPoints,
} from './measures.ts'
import { INTERVALS, moved, RANGES, type Range, type RangeId, rangeAddress, rangeFromQuery, scaled } from './range.ts'

/** One read: points, their range, and the instant. */
interface Read {
  readonly range: Range
  readonly points: EndpointMetrics['points']
  readonly atMs: number
}

/**
 * Interval after which numbers of longer intervals are read again, in milliseconds. Those of
 * minutes change with each event.
 */
const AGAIN_MS = 15_000

/** Charts of the requests, times, workers and GPUs of an endpoint. */
export function Metrics({ endpoint }: { readonly endpoint: Endpoint }) {
  const { id } = endpoint
  const params = query.value
  const isTable = params.get('view') === 'table'
  const series = useMetrics(id)
  const marks = useReleases(id)
  // The charts of the previous range stay until the next read ends.
  const last = useRef<Read | null>(null)
  if (series.data !== null) last.current = series.data
  const shownSeries = series.data ?? last.current
  const slots = useMemo(
    () =>
      shownSeries === null
        ? []
        : slotsFromPoints(shownSeries.points, shownSeries.range, Date.parse(endpoint.createdAt), shownSeries.atMs),
    [shownSeries, endpoint.createdAt],
  )
  const measures = useMemo(() => measuresFromSlots(slots), [slots])
  const range = shownSeries?.range ?? rangeFromQuery(params, serverNow())
  const inRange = useMemo(
    () => marks.filter(({ atMs }) => atMs >= range.fromMs && atMs < range.toMs),
    [marks, shownSeries],
  )
  return (
    <>
      <Tools range={range} isTable={isTable} onSave={() => save(id, slots, measures)} />
      <Shown id={id} marks={inRange} range={range} />
      <Loaded of={{ ...series, data: shownSeries }}>
        {() => (
          <div aria-busy={series.data === null}>
            {isTable ? (
              <Numbers slots={slots} measures={measures} range={range} />
            ) : (
              <Charts slots={slots} measures={measures} range={range} marks={inRange} />
            )}
          </div>
        )}
      </Loaded>
    </>
  )
}

function useMetrics(id: string): Resource<Read> {
  const params = query.value
  const name = ['range', 'from', 'to'].map(part => params.get(part) ?? '').join(' ')
  const range = rangeFromQuery(params, serverNow())
  const { isLive, interval } = range
  return useResource<Read>(
    `metrics ${id} ${name}`,
    async signal => {
      const atMs = serverNow()
      const now = rangeFromQuery(params, atMs)
      // The end is left out while it lies in the future: the server's clock may be behind.
      const to = now.isLive ? {} : { to: new Date(now.toMs).toISOString() }
      const { points } = await api('GET /v2/serverless/{id}/metrics', {
        path: { id },
        query: { interval: now.interval, from: new Date(now.fromMs).toISOString(), ...to },
        signal,
      })
      return { range: now, points, atMs }
    },
    isLive ? { everyMs: AGAIN_MS, ...(interval === '1m' ? { on: workerTopic(id) } : {}) } : {},
  )
}

/** Limit of lines in a chart, for the newest releases. */
const MAX_MARKS = 200
const NO_RELEASES: readonly Mark[] = []

function useReleases(id: string): readonly Mark[] {
  const releases = useResource(
    `releases ${id}`,
    signal => api('GET /v2/serverless/{id}/releases', { path: { id }, signal }),
    { on: releaseTopic(id) },
  )
  return useMemo(
    () =>
      releases.data?.releases
        .slice(0, MAX_MARKS)
        .map(({ version, createdAt }) => ({ atMs: Date.parse(createdAt), title: `v${version}` }))
        .sort((a, b) => a.atMs - b.atMs) ?? NO_RELEASES,
    [releases.data],
  )
}

const MOVES = [
  { title: 'Earlier', sign: '←', to: (range: Range, nowMs: number) => moved(range, -1, nowMs), isForward: false },
  {
    title: 'Shorter range',
    sign: '+',
    to: (range: Range, nowMs: number) => scaled(range, 'in', nowMs),
    isForward: false,
  },
  {
    title: 'Longer range',
    sign: '−',
    to: (range: Range, nowMs: number) => scaled(range, 'out', nowMs),
    isForward: false,
  },
  { title: 'Later', sign: '→', to: (range: Range, nowMs: number) => moved(range, 1, nowMs), isForward: true },
]

function Tools({
  range,
  isTable,
  onSave,
}: {
  readonly range: Range
  readonly isTable: boolean
  readonly onSave: () => void
}) {
  const go = (address: Readonly<Record<string, string | null>>) => setQuery(address, { replace: false })
  return (
    <div class="tools">
      <Choice<RangeId | ''>
        label="Range"
        value={range.id ?? ''}
        options={(Object.keys(RANGES) as RangeId[]).map(id => [id, RANGES[id].title])}
        onChange={id => go({ range: id, from: null, to: null })}
      />
      <div class="choice" role="group" aria-label="Move in time">
        {MOVES.map(({ title, sign, to, isForward }) => (
          <button
            key={title}
            type="button"
            aria-label={title}
            title={title}
            disabled={isForward && range.isLive}
            onClick={() => go(to(range, serverNow()))}
          >
            {sign}
          </button>
        ))}
      </div>
      <span class="push" />
      <Choice<'charts' | 'table'>
        label="View"
        value={isTable ? 'table' : 'charts'}
        options={[
          ['charts', 'Charts'],
          ['table', 'Table'],
        ]}
        onChange={view => setQuery({ view: view === 'table' ? 'table' : null })}
      />
      <Button onPress={onSave}>Download CSV</Button>
    </div>
  )
}

const NAMES = { '1m': 'minute', '1h': 'hour', '1d': 'day of UTC' } as const
const MAX_LINKS = 6

/** The shown time, and the releases at the lines in the charts. */
function Shown({ id, marks, range }: { readonly id: string; readonly marks: readonly Mark[]; readonly range: Range }) {
  const isLong = range.toMs - range.fromMs > 86_400_000
  return (
    <p class="faint range-text">
      {dateTime(range.fromMs)} to {range.isLive ? 'now' : dateTime(range.toMs)}, by the {NAMES[range.interval]}
      {marks.length === 0 ? null : ' · releases '}
      {marks.slice(-MAX_LINKS).map(({ atMs, title }, at) => (
        <span key={title}>
          {at === 0 ? '' : ', '}
          <a href={`/endpoints/${id}/releases`}>{title}</a> {isLong ? dateTime(atMs) : dateTime(atMs).slice(11)}
        </span>
      ))}
      {marks.length > MAX_LINKS ? ` and ${marks.length - MAX_LINKS} before` : ''}
    </p>
  )
}

function Charts({
  slots,
  measures,
  range,
  marks,
}: {
  readonly slots: readonly Slot[]
  readonly measures: readonly Measure[]
  readonly range: Range
  readonly marks: readonly Mark[]
}) {
  const group = useChartGroup()
  const times = useMemo(
    () => ({
      atMs: slots.map(({ atMs }) => atMs),
      fromMs: range.fromMs,
      toMs: range.toMs,
      lengthMs: INTERVALS[range.interval].lengthMs,
    }),
    [slots],
  )
  return (
    <>
      {measures.map(({ id, ...measure }) => (
        <Section key={id} title={measure.title} actions={<Hint of={id} />}>
          {emptyReason({ id, series: measure.series }) === null ? (
            <Chart
              {...measure}
              times={times}
              marks={marks}
              group={group}
              onZoom={(fromMs, toMs) => setQuery(rangeAddress(fromMs, toMs, serverNow()), { replace: false })}
            />
          ) : (
            <p class="faint">{emptyReason({ id, series: measure.series })}</p>
          )}
        </Section>
      ))}
      <p class="hint">Drag over a chart to zoom all charts to that time. The table has the same numbers.</p>
    </>
  )
}

function Hint({ of }: { readonly of: string }) {
  const text = measureHint(of)
  return text === undefined ? null : <span class="hint">{text}</span>
}

/** The start of an interval, as short as it is unambiguous. */
function sinceText(atMs: number, { interval, fromMs, toMs }: Range): string {
  const text = dateTime(atMs).slice(5)
  if (interval === '1d') return text.slice(0, 5)
  return toMs - fromMs <= 86_400_000 ? text.slice(6) : interval === '1h' ? `${text.slice(0, 8)}h` : text
}

function Numbers({
  slots,
  measures,
  range,
}: {
  readonly slots: readonly Slot[]
  readonly measures: readonly Measure[]
  readonly range: Range
}) {
  const rows = useMemo(() => slots.map((slot, index) => ({ ...slot, index })).reverse(), [slots])
  return (
    <>
      {measures.map(({ id, title, unit, series }) => {
        const columns: Column<(typeof rows)[number]>[] = [
          {
            id: 'at',
            title: 'Since',
            width: '92px',
            cell: row => <time title={dateTime(row.atMs)}>{sinceText(row.atMs, range)}</time>,
            sort: row => row.atMs,
          },
          ...series.map((one, at) => ({
            id: one.id,
            title: one.title,
            align: 'end' as const,
            isExtra: at >= (unit === 'ms' ? 3 : 2),
            cell: (row: (typeof rows)[number]) => valueText(unit, one.values[row.index] ?? null),
            sort: (row: (typeof rows)[number]) => one.values[row.index] ?? -1,
          })),
        ]
        return (
          <Section key={id} title={title} actions={<Hint of={id} />}>
            <Table
              label={title}
              rows={rows}
              columns={columns}
              rowKey={row => String(row.atMs)}
              empty="Nothing in this time"
              height="content"
            />
          </Section>
        )
      })}
    </>
  )
}

function save(id: string, slots: readonly Slot[], measures: readonly Measure[]): void {
  const since =
    slots[0] === undefined ? '' : `-${new Date(slots[0].atMs).toISOString().slice(0, 16).replaceAll(':', '')}`
  download(`metrics-${id}${since}.csv`, csv(csvRows(slots, measures)))
}
