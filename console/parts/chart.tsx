/**
 * Charts of numbers over time. All charts of a page share their cursor, and a drag over one
 * zooms the page to that time.
 */
import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks'
import { count, dateTime, duration, money } from '../format.ts'
import { isDark } from '../theme.ts'
import { Failure } from './basic.tsx'
import {
  type Look,
  middles,
  newest,
  type Series,
  stacked,
  summarize,
  type Times,
  totals,
  type Unit,
} from './chart-data.ts'
import type { Mark, Plot } from './plot.ts'

/** Charts that share their cursor. */
export interface ChartGroup {
  readonly name: string
  /** Index of the span at the cursor; null while it is over no chart. */
  readonly at: Signal<number | null>
}

/** A group for the charts of a page. */
export function useChartGroup(): ChartGroup {
  return { name: useId(), at: useSignal<number | null>(null) }
}

/** Number of the whole range that the legend shows. */
export type Summary = 'sum' | 'average' | 'max'

interface ChartProps {
  readonly title: string
  /** Bars are stacked. */
  readonly kind: 'bars' | 'lines'
  readonly unit: Unit
  readonly summary: Summary
  readonly times: Times
  readonly series: readonly Series[]
  readonly marks?: readonly Mark[]
  /** Height in pixels. */
  readonly height?: number
  readonly group: ChartGroup
  /** Called with the dragged range; a chart without it cannot be dragged. */
  readonly onZoom?: (fromMs: number, toMs: number) => void
}

const NO_MARKS: readonly Mark[] = []
const SUMMARIES: Readonly<Record<Summary, string>> = { sum: 'In all', average: 'Average', max: 'Highest' }

/** A chart and the table of its series. The table has the newest values, or those at the cursor. */
export function Chart(props: ChartProps) {
  return (
    <div class="chart">
      <Picture {...props} />
      <Legend {...props} />
    </div>
  )
}

function Picture({
  title,
  kind,
  unit,
  summary,
  times,
  series,
  marks = NO_MARKS,
  height = 168,
  group,
  onZoom,
}: ChartProps) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | null>(null)
  const [problem, setProblem] = useState<Error | null>(null)
  const [tries, setTries] = useState(0)
  const again = () => {
    setProblem(null)
    setTries(tries + 1)
  }
  const format = (value: number) => valueText(unit, value)
  const columns = useMemo(() => (kind === 'bars' ? stacked(series) : series.map(one => one.values)), [kind, series])
  const { fromMs, toMs } = times
  const drawing = { kind, unit, height, fromMs, toMs, atMs: middles(times), columns, series, marks, format }
  const latest = useRef({ drawing, onZoom })
  latest.current = { drawing, onZoom }
  const shape = `${kind} ${unit} ${series.map(({ id, color }) => id + color).join(' ')}`
  const draw = () => {
    let isGone = false
    const element = host.current!
    const sizes = new ResizeObserver(() => plot.current?.resize(element.clientWidth))
    import('./plot.ts').then(
      ({ plotInto }) => {
        if (isGone) return
        plot.current = plotInto(element, () => latest.current.drawing, {
          group: group.name,
          onCursor: index => (group.at.value = index),
          onZoom: onZoom === undefined ? null : (fromMs, toMs) => latest.current.onZoom?.(fromMs, toMs),
        })
        sizes.observe(element)
      },
      () => setProblem(new Error('The chart could not be loaded. The table has its numbers.')),
    )
    return () => {
      isGone = true
      sizes.disconnect()
      plot.current?.end()
      plot.current = null
    }
  }
  useEffect(draw, [shape, tries])
  useEffect(() => plot.current?.update(), [times, series, marks])
  useEffect(() => plot.current?.redraw(), [isDark.value])
  const sums = series.map(one => `${one.title} ${valueText(unit, summarize(one.values, summary))}`)
  const label = `${title} from ${dateTime(times.fromMs)} to ${dateTime(times.toMs)}. ${SUMMARIES[summary]}: ${sums.join(', ')}.`
  return (
    <div class="plot" style={{ minHeight: `${height}px` }}>
      {problem === null ? null : <Failure error={problem} retry={again} />}
      <div ref={host} role="img" aria-label={label} />
    </div>
  )
}

function Legend({ title, kind, unit, summary, times, series, group }: ChartProps) {
  const at = group.at.value
  const startMs = at === null ? undefined : times.atMs[at]
  const shownValue = (values: readonly (number | null)[]) =>
    at === null || startMs === undefined ? newest(values) : (values[at] ?? null)
  const row = (name: ComponentChildren, values: readonly (number | null)[]) => (
    <>
      <th scope="row">{name}</th>
      <td>{valueText(unit, shownValue(values))}</td>
      <td>{valueText(unit, summarize(values, summary))}</td>
    </>
  )
  return (
    <table class="legend">
      <caption class="sr">{title}</caption>
      <thead>
        <tr>
          <td />
          <th scope="col">{startMs === undefined ? 'Newest' : dateTime(startMs).slice(5)}</th>
          <th scope="col">{SUMMARIES[summary]}</th>
        </tr>
      </thead>
      <tbody>
        {series.map(one => (
          <tr key={one.id} title={one.title}>
            {row(
              <>
                <Key kind={kind} color={one.color} look={one.look} />
                {one.title}
              </>,
              one.values,
            )}
          </tr>
        ))}
        {kind === 'bars' && series.length > 1 ? <tr class="all">{row('All', totals(series))}</tr> : null}
      </tbody>
    </table>
  )
}

const KEY_DASHES: Readonly<Record<Look, string>> = { plain: '', up: '6 3', down: '2 2', level: '7 2 2 2' }
const KEY_HATCHES: Readonly<Record<Look, string>> = {
  plain: '',
  up: 'M-1 7 7-1M3 13 13 3',
  down: 'M-1 3 9 13M3-3 13 7',
  level: 'M0 3H12M0 8H12',
}

/** The mark of a series in the legend. */
function Key({ kind, color, look }: { readonly kind: 'bars' | 'lines'; readonly color: string; readonly look: Look }) {
  const paint = `var(${color})`
  return (
    <svg class="key" width={kind === 'bars' ? 11 : 20} height="11" aria-hidden="true">
      {kind === 'bars' ? (
        <>
          <rect width="11" height="11" style={{ fill: paint }} />
          <path d={KEY_HATCHES[look]} style={{ stroke: 'var(--card)', strokeWidth: 1.3 }} />
        </>
      ) : (
        <path d="M0 6H20" style={{ stroke: paint, strokeWidth: 2.4, strokeDasharray: KEY_DASHES[look] }} />
      )}
    </svg>
  )
}

/** A number of a chart for people. */
export function valueText(unit: Unit, value: number | null): string {
  if (value === null) return '–'
  if (unit === 'ms') return duration(value)
  if (unit === 'percent') return `${Math.round(value)}%`
  if (unit === 'money') return money(value)
  if (unit === 'count') return count(Math.round(value))
  if (unit === 'hours') return `${value >= 100 || value === 0 ? count(Math.round(value)) : value.toFixed(2)} h`
  return String(Number(value.toFixed(2)))
}
