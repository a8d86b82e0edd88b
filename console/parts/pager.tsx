/** Pages of a list whose rows are counted. */
import { count } from '../format.ts'
import { Button } from './basic.tsx'

/** Range of the shown rows, with links to the others; nothing if all are shown. */
export function Pager({
  offset,
  shown,
  total,
  size,
  onMove,
}: {
  readonly offset: number
  /** Number of rows on this page. */
  readonly shown: number
  readonly total: number
  /** Number of rows on a full page. */
  readonly size: number
  readonly onMove: (offset: number) => void
}) {
  if (offset === 0 && shown >= total) return null
  return (
    <div class="tools pager">
      <span class="faint">
        {count(Math.min(offset + 1, total))}–{count(offset + shown)} of {count(total)}
      </span>
      <Button disabled={offset === 0} onPress={() => onMove(Math.max(0, offset - size))}>
        Previous
      </Button>
      <Button disabled={offset + shown >= total} onPress={() => onMove(offset + shown)}>
        Next
      </Button>
    </div>
  )
}
