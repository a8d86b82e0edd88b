/** The lines of a log: only those in sight are drawn, so that a frame costs the same for ten and for 100,000. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { bytes, clockTime } from '../../../format.ts'
import { useNarrow } from '../../../parts/table.tsx'
import type { LogLine } from './log-line.ts'
import type { LogSession } from './log-session.ts'
import { findRanges, MAX_SHOWN } from './log-view.ts'
import { splitSegments } from './segments.ts'

/** Height of a line of text in pixels, as in the style sheet. */
const LINE_PX = 19
/** Height in pixels above and below the visible area in which rows are drawn. */
const OVERSCAN_PX = 240
/** Padding at both sides of a row, in pixels. */
const PADDING_PX = 20

/** Options for the display of lines. */
export interface LineLook {
  readonly search: RegExp | null
  /** Number of the line with the selected match. */
  readonly current: number | null
  readonly isColored: boolean
  readonly isWrapped: boolean
  /** True if lines name their worker. */
  readonly hasWorkers: boolean
  /** Shows the hidden lines around one; undefined if no lines are hidden. */
  readonly onAround: ((number: number) => void) | undefined
  /** Shows the whole of a line that is too long for a row. */
  readonly onWhole: (line: LogLine) => void
}

/** The lines, at their end until somebody scrolls up. */
export function LogList({ session, look }: { readonly session: LogSession; readonly look: LineLook }) {
  const [{ top, width, height }, setPort] = useState({ top: 0, width: 0, height: 0 })
  const scroller = useRef<HTMLDivElement>(null)
  const probe = useRef<HTMLDivElement>(null)
  const scroll = useRef({ top: 0, isPausedByScroll: false })
  const isNarrow = useNarrow()
  const { view } = session
  const isFollowing = session.unseen.value === null
  const target = session.target.value
  // This read draws the list again when it changes.
  void session.changes.value
  useLayoutEffect(() => {
    const element = scroller.current!
    const observer = new ResizeObserver(() =>
      setPort(({ top }) => ({ top, width: element.clientWidth, height: element.clientHeight })),
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useLayoutEffect(() => {
    const head = probe.current!
    const room = width - head.offsetWidth - PADDING_PX
    session.wrap(
      look.isWrapped && width > 0
        ? Math.floor(room / (head.firstElementChild!.clientWidth / 100))
        : Number.POSITIVE_INFINITY,
    )
  }, [session, look.isWrapped, look.hasWorkers, width, isNarrow])
  useLayoutEffect(() => {
    const element = scroller.current!
    if (target !== null && view.seenUntil > target) {
      const row = Math.min(view.findRow(target), view.count - 1)
      element.scrollTop = view.heights.rowTop(Math.max(0, row)) * LINE_PX - element.clientHeight / 2
      session.target.value = null
    } else if (isFollowing) element.scrollTop = element.scrollHeight
    scroll.current.top = element.scrollTop
  })
  const onScroll = () => {
    const element = scroller.current!
    const isUp = element.scrollTop < scroll.current.top
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - LINE_PX
    scroll.current.top = element.scrollTop
    // New lines must not move the place of somebody who reads further up.
    if (isUp && !isAtEnd && session.unseen.value === null) {
      session.pause()
      scroll.current.isPausedByScroll = true
    } else if (!isUp && isAtEnd && scroll.current.isPausedByScroll && session.unseen.value !== null) session.resume()
    if (session.unseen.value === null) scroll.current.isPausedByScroll = false
    setPort(port => ({ ...port, top: element.scrollTop }))
  }
  const first = view.count === 0 ? 0 : view.heights.rowAt((top - OVERSCAN_PX) / LINE_PX)
  const last =
    view.count === 0 ? -1 : Math.min(view.count - 1, view.heights.rowAt((top + height + OVERSCAN_PX) / LINE_PX))
  session.top = view.numberAt(view.count === 0 ? 0 : view.heights.rowAt((top + height / 2) / LINE_PX)) ?? 0
  const rows = []
  for (let row = first; row <= last; row += 1) {
    const number = view.numberAt(row)!
    const line = session.buffer.get(number)
    if (line === undefined) continue
    rows.push(
      <Row
        key={number}
        line={line}
        number={number}
        look={look}
        isContext={view.isContext(number)}
        top={view.heights.rowTop(row)}
        height={view.heights.rowHeight(row)}
      />,
    )
  }
  return (
    <div
      class={`log${look.isWrapped ? ' wrapped' : ''}${look.hasWorkers ? ' workers' : ''}`}
      ref={scroller}
      onScroll={onScroll}
      role="region"
      aria-label="Lines"
      tabIndex={0}
    >
      <div class="log-head" ref={probe} aria-hidden="true">
        <span class="log-probe">{'0'.repeat(100)}</span>
      </div>
      <div
        class="log-lines"
        style={{
          height: `${view.heights.total * LINE_PX}px`,
          width: look.isWrapped ? '100%' : `max(100%, calc(${view.longest}ch + var(--log-head) + ${PADDING_PX}px))`,
        }}
      >
        {rows}
      </div>
      {view.count > 0 || session.stream.value.is !== 'open' ? null : (
        <p class="log-none">
          {session.buffer.end === 0 ? 'No output yet. Lines appear here as workers print them.' : 'No line matches.'}
        </p>
      )}
    </div>
  )
}

function Row({
  line,
  number,
  look,
  isContext,
  top,
  height,
}: {
  readonly line: LogLine
  readonly number: number
  readonly look: LineLook
  readonly isContext: boolean
  readonly top: number
  readonly height: number
}) {
  const { kind, level, workerId } = line
  const { hasWorkers, onAround } = look
  const classes = ['log-line', kind, level ?? '', isContext ? 'context' : '', number === look.current ? 'current' : '']
  const time = clockTime(line.atMs)
  return (
    <div
      class={classes.filter(one => one !== '').join(' ')}
      style={{ transform: `translateY(${top * LINE_PX}px)`, height: `${height * LINE_PX}px` }}
      aria-current={number === look.current ? 'true' : undefined}
    >
      {onAround === undefined ? (
        <time>{time}</time>
      ) : (
        <button
          type="button"
          class="log-time"
          tabIndex={-1}
          title="Show the lines around it"
          onClick={() => onAround(number)}
        >
          {time}
        </button>
      )}
      {hasWorkers ? (
        <span class="log-worker" title={workerId === null ? '' : `Worker ${workerId}`}>
          {workerId?.slice(0, 6)}
        </span>
      ) : null}
      <span class="log-level">{kind === 'output' ? (level ?? '') : kind === 'system' ? 'system' : ''}</span>
      <span class="log-text">
        <Text line={line} look={look} />
      </span>
    </div>
  )
}

function Text({ line, look }: { readonly line: LogLine; readonly look: LineLook }) {
  const isLong = line.text.length > MAX_SHOWN
  const text = isLong ? line.text.slice(0, MAX_SHOWN) : line.text
  const matches = look.search === null ? [] : findRanges(text, look.search)
  const styles = look.isColored ? (line.styles ?? []) : []
  return (
    <>
      {matches.length === 0 && styles.length === 0
        ? text
        : splitSegments(text, styles, matches).map(({ text: part, classes, isMatch }, at) =>
            isMatch ? (
              <mark key={at} class={classes}>
                {part}
              </mark>
            ) : (
              <span key={at} class={classes}>
                {part}
              </span>
            ),
          )}
      {isLong ? (
        <button type="button" class="log-more" onClick={() => look.onWhole(line)}>
          … {bytes(line.text.length - MAX_SHOWN)} more
        </button>
      ) : null}
    </>
  )
}
