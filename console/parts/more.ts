/** Lists that come in pages. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { LiveEvent } from '../client/live.ts'
import { type Resource, useResource } from '../client/resource.ts'

/** A page of a list. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  readonly nextCursor: string | null
}

/** A list of which more can be read. */
export interface GrowingList<Row> extends Resource<readonly Row[]> {
  readonly hasMore: boolean
  readonly isReading: boolean
  /** Reads the next page. */
  readonly more: () => void
}

/**
 * Reads a list page by page. Events read the first page again; rows of later pages stay as they were read.
 * @param rowKey tells rows apart, so that one that moves between pages is shown once
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
  const cursor = rest === null ? (first.data?.nextCursor ?? null) : rest.nextCursor
  const more = async () => {
    if (cursor === null || isReading) return
    setReading(true)
    try {
      const page = await read(cursor, new AbortController().signal)
      if (current.current !== key) return
      // Rows of the first page stay known: new ones push them out of it.
      const known = first.data?.rows ?? []
      setRest(before => ({ rows: [...(before?.rows ?? known), ...page.rows], nextCursor: page.nextCursor }))
    } catch (error) {
      setProblem(error as Error)
    } finally {
      setReading(false)
    }
  }
  return {
    data: first.data === null ? null : joined(first.data.rows, rest?.rows ?? [], rowKey),
    error: first.error ?? problem,
    reload: first.reload,
    hasMore: cursor !== null,
    isReading,
    more,
  }
}

function joined<Row>(first: readonly Row[], rest: readonly Row[], rowKey: (row: Row) => string): readonly Row[] {
  if (rest.length === 0) return first
  const known = new Set(first.map(rowKey))
  return [...first, ...rest.filter(row => !known.has(rowKey(row)))]
}
