/** Only the rows of a long list that can be seen. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  Virtualizer,
} from '@tanstack/virtual-core'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** A list in an element that scrolls. */
export interface VirtualRows {
  /** The element that scrolls. */
  readonly scroller: { current: HTMLDivElement | null }
  readonly items: readonly VirtualItem[]
  /** Height of all rows together, in pixels. */
  readonly height: number
  readonly scrollTo: (index: number) => void
  readonly isAtEnd: () => boolean
}

/** Shows the rows of a list that can be seen. @param rowHeight height of each row in pixels */
export function useVirtualRows(count: number, rowHeight: number): VirtualRows {
  const scroller = useRef<HTMLDivElement>(null)
  const [, redraw] = useState(0)
  const made = useRef<Virtualizer<HTMLDivElement, Element> | null>(null)
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw(times => times + 1),
  }
  made.current ??= new Virtualizer(options)
  const virtualizer = made.current
  virtualizer.setOptions(options)
  useLayoutEffect(() => virtualizer._didMount(), [])
  useLayoutEffect(() => virtualizer._willUpdate())
  useEffect(() => virtualizer.measure(), [rowHeight])
  return {
    scroller,
    items: virtualizer.getVirtualItems(),
    height: virtualizer.getTotalSize(),
    scrollTo: index => virtualizer.scrollToIndex(index, { align: 'auto' }),
    isAtEnd: () => {
      const element = scroller.current
      return element === null || element.scrollTop + element.clientHeight >= element.scrollHeight - rowHeight * 2
    },
  }
}
