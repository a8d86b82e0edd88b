/** Charts as uPlot draws them, in the colors of the theme. It is loaded, with uPlot, when the first chart is shown. */
import uPlot from 'uplot'
import { axisTime, axisTop, TIME_STEPS, valueSteps } from './axes.ts'
import type { Look, Series, Unit } from './chart-data.ts'

/** A vertical line with a title. */
export interface Mark {
  readonly atMs: number
  readonly title: string
}

/** Content of a plot. */
export interface Drawing {
  readonly kind: 'bars' | 'lines'
  readonly unit: Unit
  /** In pixels. */
  readonly height: number
  readonly fromMs: number
  readonly toMs: number
  /** Position of each value on the time axis. */
  readonly atMs: readonly number[]
  /** Drawn values of each series: sums up to the series for stacked bars. */
  readonly columns: readonly (readonly (number | null)[])[]
  readonly series: readonly Series[]
  readonly marks: readonly Mark[]
  /** A number for people. */
  readonly format: (value: number) => string
}

/** Actions of a person on a plot. */
export interface PlotEvents {
  /** Charts with the same name share the cursor. */
  readonly group: string
  /** Index of the span at the cursor. */
  readonly onCursor: (index: number | null) => void
  /** Called with the dragged range. */
  readonly onZoom: ((fromMs: number, toMs: number) => void) | null
}

/** A plot in the page. */
export interface Plot {
  /** Shows other numbers of the same series. */
  readonly update: () => void
  /** Draws again, after the colors changed. */
  readonly redraw: () => void
  readonly resize: (width: number) => void
  readonly end: () => void
}

const AXIS_PX = 66
const FONT = '11px system-ui, sans-serif'
const DASHES: Readonly<Record<Look, number[]>> = { plain: [], up: [7, 4], down: [2, 3], level: [10, 3, 2, 3] }
/** Distance in pixels below which the title of a mark is left out. */
const MARK_GAP_PX = 34

/** Draws into an element. @param drawing returns the present content */
export function plotInto(host: HTMLElement, drawing: () => Drawing, events: PlotEvents): Plot {
  const plot = new uPlot(plotOptions(host.clientWidth, drawing, events), plotData(drawing()), host)
  let width = host.clientWidth
  return {
    update: () => plot.setData(plotData(drawing())),
    redraw: () => plot.redraw(false, true),
    resize: next => {
      if (next === width || next === 0) return
      width = next
      plot.setSize({ width, height: drawing().height })
    },
    end: () => plot.destroy(),
  }
}

function plotData({ kind, atMs, columns }: Drawing): uPlot.AlignedData {
  const copies = columns.map(column => [...column])
  return [[...atMs], ...(kind === 'bars' ? copies.reverse() : copies)]
}

function plotOptions(width: number, drawing: () => Drawing, { group, onCursor, onZoom }: PlotEvents): uPlot.Options {
  const { kind, unit, series, height } = drawing()
  const grid = { stroke: () => color('--line'), width: 1 }
  const axis = { stroke: () => color('--faint'), font: FONT, grid, ticks: { ...grid, size: 4 } }
  return {
    width,
    height,
    ms: 1,
    padding: [14, 26, 0, 0],
    legend: { show: false },
    series: [{}, ...(kind === 'bars' ? bars(series) : lines(series))],
    // Each bar begins at the end of the one below it, so that none shows through at the sides.
    bands: kind === 'bars' ? series.slice(1).map((_, at) => ({ series: [at + 1, at + 2] })) : [],
    scales: {
      x: { range: () => [drawing().fromMs, drawing().toMs] },
      y: { range: (_, __, max) => [0, axisTop(unit, max)] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        incrs: [...TIME_STEPS],
        space: 64,
        values: (_, splits, __, ___, step) => splits.map(at => axisTime(at, step)),
      },
      {
        ...axis,
        size: AXIS_PX,
        incrs: valueSteps(unit),
        values: (_, splits) => splits.map(value => drawing().format(value)),
      },
    ],
    cursor: {
      y: false,
      points: { show: kind === 'lines', size: 7 },
      drag: { x: onZoom !== null, y: false, setScale: false, dist: 6 },
      // Without it, each chart would zoom the page.
      sync: {
        key: group,
        scales: ['x', null],
        setSeries: false,
        filters: { pub: type => /^mouse(?:move|leave)$/.test(type) },
      },
      bind: { dblclick: () => null },
    },
    hooks: {
      setCursor: [plot => onCursor(plot.cursor.idx ?? null)],
      setSelect: [
        plot => {
          const { left, width: wide } = plot.select
          if (wide === 0 || onZoom === null) return
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          onZoom(plot.posToVal(left, 'x'), plot.posToVal(left + wide, 'x'))
        },
      ],
      draw: [plot => drawMarks(plot, drawing().marks)],
    },
  }
}

/** The series of stacked bars, the uppermost part first. */
function bars(series: readonly Series[]): uPlot.Series[] {
  const paths = uPlot.paths.bars!({ size: [0.88] })
  return series
    .map(({ color: name, look }) => ({
      paths,
      width: 0,
      fill: (plot: uPlot) => (look === 'plain' ? color(name) : hatch(plot.ctx, look, color(name), uPlot.pxRatio)),
      points: { show: false },
    }))
    .reverse()
}

function lines(series: readonly Series[]): uPlot.Series[] {
  return series.map(({ color: name, look }) => ({
    stroke: () => color(name),
    width: 1.6,
    dash: DASHES[look],
    spanGaps: false,
    points: {
      size: 5,
      fill: () => color(name),
      // Points too close to each other are not drawn, so a single point between gaps would be invisible.
      filter: (plot: uPlot, at: number, areShown: boolean) => (areShown ? null : findSinglePoints([...plot.data[at]!])),
    },
  }))
}

function findSinglePoints(values: readonly (number | null | undefined)[]): number[] {
  return values.flatMap((value, at) => (value != null && values[at - 1] == null && values[at + 1] == null ? [at] : []))
}

function drawMarks({ ctx, bbox, valToPos, scales }: uPlot, marks: readonly Mark[]): void {
  const px = uPlot.pxRatio
  const [min = 0, max = 0] = [scales.x?.min, scales.x?.max]
  ctx.save()
  ctx.strokeStyle = ctx.fillStyle = color('--text')
  ctx.lineWidth = px
  ctx.setLineDash([3 * px, 3 * px])
  ctx.font = FONT.replace('11', String(10.5 * px))
  ctx.textAlign = 'center'
  ctx.textBaseline = 'bottom'
  let lastTitle = Number.NEGATIVE_INFINITY
  for (const { atMs, title } of marks) {
    if (atMs < min || atMs > max) continue
    const x = Math.round(valToPos(atMs, 'x', true)) + 0.5
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    if (x - lastTitle < MARK_GAP_PX * px) continue
    lastTitle = x
    ctx.fillText(title, x, bbox.top - px)
  }
  ctx.restore()
}

/** The value of a CSS variable of the shown theme. */
function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

const TILE_PX = 6

/** A color with stripes in the color of the card. */
function hatch(ctx: CanvasRenderingContext2D, look: Look, fill: string, px: number): CanvasPattern | string {
  const size = Math.round(TILE_PX * px)
  const tile = new OffscreenCanvas(size, size)
  const draw = tile.getContext('2d')!
  draw.fillStyle = fill
  draw.fillRect(0, 0, size, size)
  draw.strokeStyle = color('--card')
  draw.lineWidth = px
  draw.beginPath()
  const [from, to] = look === 'up' ? [size, 0] : look === 'down' ? [0, size] : [size / 2, size / 2]
  // The adjacent tiles are drawn too, so that stripes have no gaps in the corners.
  for (const shift of look === 'level' ? [0] : [-size, 0, size]) {
    draw.moveTo(shift - 1, from + Math.sign(from - to))
    draw.lineTo(shift + size + 1, to + Math.sign(to - from))
  }
  draw.stroke()
  return ctx.createPattern(tile, 'repeat') ?? fill
}
