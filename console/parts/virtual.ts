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

/** Draws the rows of a list that are in sight. @param rowHeight height of each row in pixels */
export function useVirtualRows(count: number, rowHeight: number): VirtualRows {
  const scroller = useRef<HTMLDivElement>(null)
  const [visibleRows, setVisibleRows] = useState({ first: 0, rows: 0 })
  useLayoutEffect(() => {
    const element = scroller.current!
    const look = () => {
      const first = Math.floor(element.scrollTop / rowHeight / STEP) * STEP
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
  }, [rowHeight])
  const end = Math.min(count, visibleRows.first + visibleRows.rows + OVERSCAN)
  // A list that became shorter is drawn before the browser has scrolled back.
  const from = Math.max(0, Math.min(visibleRows.first, count - visibleRows.rows) - OVERSCAN)
  const items = Array.from({ length: Math.max(0, end - from) }, (_, at) => ({
    index: from + at,
    start: (from + at) * rowHeight,
  }))
  const height = count * rowHeight
  return {
    scroller,
    items,
    height,
    scrollTo: index => {
      const element = scroller.current
      if (element === null) return
      const start = index * rowHeight
      // The head covers the top of the rows.
      const lowest = start + rowHeight + (element.scrollHeight - height) - element.clientHeight
      element.scrollTop = Math.max(lowest, Math.min(element.scrollTop, start))
    },
    isAtEnd: () => {
      const element = scroller.current
      return element === null || element.scrollTop + element.clientHeight >= element.scrollHeight - rowHeight * 2
    },
  }
}
