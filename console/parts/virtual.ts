/** Lists that draw only the rows in sight. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

/** A drawn row, and its start in pixels. */
interface DrawnRow {
  readonly index: number
  readonly start: number
}

/** A list in an element that scrolls. */
export interface VirtualRows {
  /** The element that scrolls. */
  readonly scroller: { current: HTMLDivElement | null }
  readonly items: readonly DrawnRow[]
  /** Height of all rows together, in pixels. */
  readonly height: number
  /** Brings a row into sight, by as little as that takes. */
  readonly scrollTo: (index: number) => void
  readonly isAtEnd: () => boolean
}

/** Number of rows that are drawn before and after those in sight, so that keys and fast scrolling find them. */
const OVERSCAN = 14
/** Number of rows after which the list is drawn again. */
const STEP = 4

/**
 * Draws the rows of a list that are in sight.
 * @param starts top of each row in pixels, and at last the height of all rows
 * @param rowHeight height of the lowest row in pixels
 */
export function useVirtualRows(starts: readonly number[], rowHeight: number): VirtualRows {
  const count = starts.length - 1
  const height = starts.at(-1)!
  const scroller = useRef<HTMLDivElement>(null)
  const [visibleRows, setVisibleRows] = useState({ first: 0, rows: 0 })
  useLayoutEffect(() => {
    const element = scroller.current!
    const look = () => {
      const first = Math.floor(rowAt(starts, element.scrollTop) / STEP) * STEP
      const rows = Math.ceil(element.clientHeight / rowHeight) + STEP
      setVisibleRows(previous => (previous.first === first && previous.rows === rows ? previous : { first, rows }))
    }
    look()
    const observer = new ResizeObserver(look)
    observer.observe(element)
    element.addEventListener('scroll', look, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [starts, rowHeight])
  const end = Math.min(count, visibleRows.first + visibleRows.rows + OVERSCAN)
  // A list that became shorter is drawn before the browser has scrolled back.
  const from = Math.max(0, Math.min(visibleRows.first, count - visibleRows.rows) - OVERSCAN)
  const items = Array.from({ length: Math.max(0, end - from) }, (_, at) => ({
    index: from + at,
    start: starts[from + at]!,
  }))
  return {
    scroller,
    items,
    height,
    scrollTo: index => {
      const element = scroller.current
      if (element === null) return
      const start = starts[index]!
      // The head covers the top of the rows.
      const lowest = starts[index + 1]! + (element.scrollHeight - height) - element.clientHeight
      element.scrollTop = Math.max(lowest, Math.min(element.scrollTop, start))
    },
    isAtEnd: () => {
      const element = scroller.current
      return element === null || element.scrollTop + element.clientHeight >= element.scrollHeight - rowHeight * 2
    },
  }
}

/** The row at a height; the last one below all. */
function rowAt(starts: readonly number[], top: number): number {
  let [low, high] = [0, Math.max(0, starts.length - 2)]
  while (low < high) {
    const middle = (low + high) >> 1
    if (starts[middle + 1]! > top) high = middle
    else low = middle + 1
  }
  return low
}
