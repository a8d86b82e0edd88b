/** Lists that are read page by page. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { LiveEvent } from '../client/live.ts'
import { type Resource, useResource } from '../client/resource.ts'

/** A page of a list. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly nextCursor: string | null
}

/** A list with further pages. */
export interface GrowingList<Row> extends Resource<readonly Row[]> {
  readonly hasMore: boolean
  readonly isReading: boolean
  /** Reads the next page. */
  readonly more: () => void
}

/**
 * Reads a list page by page. Events read the first page again; rows of later pages stay as they were read.
 * @param rowKey identifies a row, so that one that moves between pages is shown once
 */
export function useGrowingList<Row>(
  key: string | null,
  read: (cursor: string | null, signal: AbortSignal) => Promise<Page<Row>>,
  rowKey: (row: Row) => string,
  on?: (event: LiveEvent) => boolean,
): GrowingList<Row> {
  const first = useResource(key, signal => read(null, signal), on === undefined ? {} : { on })
  const [rest, setRest] = useState<Page<Row> | null>(null)
  const [isReading, setReading] = useState(false)
  const [problem, setProblem] = useState<Error | null>(null)
  const current = useRef(key)
  current.current = key
  useEffect(() => {
    setRest(null)
    setProblem(null)
  }, [key])
  const { rows, nextCursor: cursor } = joinedPages(first.data, rest, rowKey)
  const readNextPage = async () => {
    if (cursor === null || isReading) return
    setReading(true)
    setProblem(null)
    try {
      const page = await read(cursor, new AbortController().signal)
      if (current.current !== key) return
      // Rows of the first page are stored too: new rows push them out of it.
      setRest({ rows: [...rows, ...page.rows], nextCursor: page.nextCursor })
    } catch (error) {
      if (current.current === key) setProblem(error as Error)
    } finally {
      setReading(false)
    }
  }
  return {
    data: first.data === null ? null : rows,
    error: first.error ?? problem,
    reload: first.reload,
    hasMore: cursor !== null,
    isReading,
    more: readNextPage,
  }
}

/**
 * The newest first page, with the rows that were read before. If the first page has none of those, more new rows
 * arrived than a page holds: the rows between are unknown, so the later pages are read again.
 */
export function joinedPages<Row>(
  first: Page<Row> | null,
  rest: Page<Row> | null,
  rowKey: (row: Row) => string,
): Page<Row> {
  if (first === null || rest === null) return first ?? { rows: [], nextCursor: null }
  const firstKeys = new Set(first.rows.map(rowKey))
  const laterRows = rest.rows.filter(row => !firstKeys.has(rowKey(row)))
  return laterRows.length === rest.rows.length
    ? first
    : { rows: [...first.rows, ...laterRows], nextCursor: rest.nextCursor }
}
