/** Tables of any length: sorted by their heads, navigated with `j` and `k`, opened with Enter. */
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { takeRowKeys } from '../keyboard.ts'
import { navigate } from '../router.ts'
import { useVirtualRows } from './virtual.ts'

/** A column of a table. */
export interface Column<Row> {
  readonly id: string
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  /** Width as in `grid-template-columns`; default: an equal part. */
  readonly width?: string
  readonly align?: 'end'
  /** Sort key of a row; a column without it cannot be sorted. */
  readonly sort?: (row: Row) => string | number
  /** Left out on narrow screens. */
  readonly isExtra?: boolean
  /** True if its `width` also holds on narrow screens, where the others share the rest. */
  readonly isFixed?: boolean
}

const ROW_PX = 40
/** Height of a row with a line below its cells; on narrow screens the line has two lines of text. */
const TALL_ROW_PX = { wide: 62, narrow: 80 }
/** Number of rows from which a table fills the window. */
const MANY = 14
const NARROW = matchMedia('(max-width: 720px)')

/** A table that draws only the rows in sight. */
export function Table<Row>({
  label,
  rows,
  columns,
  rowKey,
  href,
  onOpen,
  selected,
  onSelect,
  empty,
  onEnd,
  line,
  height = rows.length > MANY ? 'fill' : 'content',
  initialSort,
}: {
  readonly label: string
  readonly rows: readonly Row[]
  readonly columns: readonly Column<Row>[]
  readonly rowKey: (row: Row) => string
  /** Address that a row opens. */
  readonly href?: (row: Row) => string
  /** Opens a row that has no address. */
  readonly onOpen?: (row: Row) => void
  /** Keys of the ticked rows; rows have no boxes without it. */
  readonly selected?: ReadonlySet<string>
  readonly onSelect?: (keys: ReadonlySet<string>) => void
  /** Content of a table without rows. */
  readonly empty: ComponentChildren
  /** Called when the end becomes visible, to read more. */
  readonly onEnd?: () => void
  /** A line below the cells of a row, as wide as the table; null for none. The same function for the same lines. */
  readonly line?: (row: Row) => ComponentChildren
  /** `fill`: the rest of the window; `content`: the height of its rows. Default: by the number of rows. */
  readonly height?: 'fill' | 'content'
  readonly initialSort?: { readonly column: string; readonly isDown: boolean }
}) {
  const [sort, setSort] = useState(initialSort ?? null)
  const isNarrow = useNarrow()
  const shownColumns = isNarrow ? columns.filter(({ isExtra }) => isExtra !== true) : columns
  const sorted = useMemo(() => sortedRows(rows, columns, sort), [rows, columns, sort])
  const lines = useMemo(() => sorted.map(row => line?.(row) ?? null), [sorted, line])
  const starts = useMemo(() => rowStarts(lines, isNarrow ? TALL_ROW_PX.narrow : TALL_ROW_PX.wide), [lines, isNarrow])
  const { scroller, items, height: rowsHeight, scrollTo, isAtEnd } = useVirtualRows(starts, ROW_PX)
  useFilledHeight(scroller, height === 'fill')
  const [place, setPlace] = useState<Place | null>(null)
  const at = useMemo(() => placeIndex(place, sorted, rowKey), [place, sorted])
  // Tab reaches a row that is drawn.
  const stop = items.some(({ index }) => index === at) ? at : (items[0]?.index ?? 0)
  const state = useRef({ sorted, at, rowKey })
  state.current = { sorted, at, rowKey }
  const open = (row: Row) => (href === undefined ? onOpen?.(row) : navigate(href(row)))
  useEffect(
    () =>
      takeRowKeys({
        move: by => {
          const { sorted, at, rowKey } = state.current
          const next = Math.min(Math.max(at + by, 0), sorted.length - 1)
          if (next < 0) return
          setPlace({ key: rowKey(sorted[next]!), index: next })
          scrollTo(next)
          const row = () => scroller.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)
          // A row out of sight is drawn first.
          if (row() == null) requestAnimationFrame(() => row()?.focus())
          else row()?.focus()
        },
      }),
    [],
  )
  const template = (selected === undefined ? '' : '28px ') + columnWidths(shownColumns, isNarrow)
  const areAllTicked = sorted.length > 0 && selected !== undefined && sorted.every(row => selected.has(rowKey(row)))
  const toggle = (key: string) => {
    const next = new Set(selected)
    if (!next.delete(key)) next.add(key)
    onSelect?.(next)
  }
  return (
    <div
      class={`table ${height}${rows.length > MANY ? ' many' : ''}`}
      role="table"
      aria-label={label}
      aria-rowcount={sorted.length + 1}
    >
      <div
        class="table-scroll"
        ref={scroller}
        onScroll={() => {
          if (onEnd !== undefined && isAtEnd()) onEnd()
        }}
      >
        <div role="row" class="row head" style={{ gridTemplateColumns: template }} aria-rowindex={1}>
          {selected === undefined ? null : (
            <span role="columnheader">
              <input
                type="checkbox"
                aria-label="Select all"
                checked={areAllTicked}
                onChange={() => onSelect?.(new Set(areAllTicked ? [] : sorted.map(rowKey)))}
              />
            </span>
          )}
          {shownColumns.map(column => (
            <Head key={column.id} column={column} sort={sort} onSort={setSort} />
          ))}
        </div>
        {sorted.length === 0 ? <div class="table-empty">{empty}</div> : null}
        <div role="rowgroup" class="rows" style={{ height: `${rowsHeight}px` }}>
          {items.map(({ index, start }) => {
            const row = sorted[index]
            if (row === undefined) return null
            const key = rowKey(row)
            return (
              <div
                key={key}
                role="row"
                data-row={index}
                aria-rowindex={index + 2}
                aria-selected={selected?.has(key)}
                class={`row${index === at ? ' at' : ''}${href === undefined && onOpen === undefined ? '' : ' opens'}`}
                tabIndex={index === stop ? 0 : -1}
                style={{
                  gridTemplateColumns: template,
                  height: `${starts[index + 1]! - start}px`,
                  transform: `translateY(${start}px)`,
                }}
                onFocus={() => setPlace({ key, index })}
                onClick={event => {
                  if (isControl(event.target, event.currentTarget)) return
                  open(row)
                }}
                onKeyDown={event => {
                  if (event.target !== event.currentTarget) return
                  if (event.key === 'Enter') open(row)
                  else if (event.key === 'x' && selected !== undefined) toggle(key)
                }}
              >
                {selected === undefined ? null : (
                  <span role="cell">
                    <input
                      type="checkbox"
                      aria-label={`Select ${key}`}
                      checked={selected.has(key)}
                      onChange={() => toggle(key)}
                    />
                  </span>
                )}
                {shownColumns.map(({ id, cell, align }) => (
                  <span key={id} role="cell" class={align}>
                    {cell(row)}
                  </span>
                ))}
                {lines[index] === null ? null : (
                  <span role="cell" class="line">
                    {lines[index]}
                  </span>
                )}
              </div>
            )
          })}
        </div>
      </div>
    </div>
  )
}

/** The top of each row in pixels, and at last the height of all. @param lines null for a row without one */
function rowStarts(lines: readonly ComponentChildren[], tallPx: number): readonly number[] {
  const starts = [0]
  for (const line of lines) starts.push(starts.at(-1)! + (line === null ? ROW_PX : tallPx))
  return starts
}

/** The row that has the keyboard focus. */
interface Place {
  readonly key: string
  readonly index: number
}

/**
 * The present index of that row: rows are added, removed and reordered. A removed row leaves its place to the next.
 */
function placeIndex<Row>(place: Place | null, rows: readonly Row[], rowKey: (row: Row) => string): number {
  if (place === null) return -1
  const row = rows[place.index]
  if (row !== undefined && rowKey(row) === place.key) return place.index
  const index = rows.findIndex(row => rowKey(row) === place.key)
  return index >= 0 ? index : Math.min(place.index, rows.length - 1)
}

const USUAL_PX = 140

/** The widths of columns. On a narrow screen those that are not fixed share what is left. */
function columnWidths<Row>(columns: readonly Column<Row>[], isNarrow: boolean): string {
  const widths = columns.map(({ width, isFixed }) => {
    if (!isNarrow || isFixed === true) return width ?? 'minmax(0, 1fr)'
    return `minmax(0, ${/(?<!\d)(\d+)px/.exec(width ?? '')?.[1] ?? USUAL_PX}fr)`
  })
  return widths.join(' ')
}

type Sort = { readonly column: string; readonly isDown: boolean } | null

function Head<Row>({
  column,
  sort,
  onSort,
}: {
  readonly column: Column<Row>
  readonly sort: Sort
  readonly onSort: (sort: Sort) => void
}) {
  const isSorted = sort?.column === column.id
  const direction = !isSorted ? undefined : sort.isDown ? 'descending' : 'ascending'
  return (
    <span role="columnheader" class={column.align} aria-sort={direction}>
      {column.sort === undefined ? (
        column.title
      ) : (
        <button type="button" onClick={() => onSort({ column: column.id, isDown: isSorted && !sort.isDown })}>
          {column.title}
          <span aria-hidden="true">{isSorted ? (sort.isDown ? ' ↓' : ' ↑') : ''}</span>
        </button>
      )}
    </span>
  )
}

function sortedRows<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: Sort): readonly Row[] {
  const by = columns.find(({ id }) => id === sort?.column)?.sort
  if (by === undefined || sort === null) return rows
  const factor = sort.isDown ? -1 : 1
  return [...rows].sort((a, b) => {
    const [left, right] = [by(a), by(b)]
    return factor * (left < right ? -1 : left > right ? 1 : 0)
  })
}

/** True if a press was meant for a control inside a row. */
function isControl(target: EventTarget | null, row: HTMLElement): boolean {
  const control = (target as Element | null)?.closest?.('a, button, input, label, select')
  return control != null && row.contains(control)
}

/** Space below a table that fills the window, and the minimum height of the table, in pixels. */
const BELOW_PX = 26
const LEAST_PX = 240

/** Gives an element the rest of the window below its top. */
function useFilledHeight(element: { readonly current: HTMLElement | null }, isFilling: boolean): void {
  useLayoutEffect(() => {
    if (!isFilling) return
    const fill = () => {
      const filled = element.current
      if (filled === null) return
      const top = filled.getBoundingClientRect().top + scrollY
      filled.style.height = `${Math.max(LEAST_PX, innerHeight - top - BELOW_PX)}px`
    }
    fill()
    // Content above may grow, such as a new notice.
    const observer = new ResizeObserver(fill)
    observer.observe(document.body)
    addEventListener('resize', fill)
    return () => {
      observer.disconnect()
      removeEventListener('resize', fill)
      element.current?.style.removeProperty('height')
    }
  }, [isFilling])
}

/** True while the screen is narrow, also after it turns. */
export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(NARROW.matches)
  useEffect(() => {
    const change = () => setNarrow(NARROW.matches)
    NARROW.addEventListener('change', change)
    return () => NARROW.removeEventListener('change', change)
  }, [])
  return isNarrow
}
