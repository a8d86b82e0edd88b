/** States of jobs that moved after their row was read. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { JobStatus, JobSummary } from '../../../client/api-types.d.ts'
import { onLive } from '../../../client/live.ts'
import { ofJobs } from '../../../client/topics.ts'

/** Limit of moves that are kept; the oldest go first. */
const MAX_MOVES = 10_000
/** Events come in bursts; the list is drawn again this long after the first, in ms. */
const DRAW_AFTER_MS = 200

/** What an event says of a job. */
interface Move {
  readonly status: JobStatus
  readonly workerId: string | null
}

/** Rows with the states that events told since. @param fresh rows at the beginning that are read again by themselves */
export function useMoved(
  endpointId: string,
  rows: readonly JobSummary[] | null,
  fresh: number,
): readonly JobSummary[] | null {
  const moves = useRef(new Map<string, Move>())
  const [, redraw] = useState(0)
  useEffect(() => {
    moves.current.clear()
    let timer: ReturnType<typeof setTimeout> | null = null
    const isOfJobs = ofJobs(endpointId)
    const stop = onLive(event => {
      if (event === null || !isOfJobs(event) || event.type !== 'job.moved') return
      const id = String(event.jobId)
      moves.current.delete(id)
      moves.current.set(id, { status: event.to as JobStatus, workerId: (event.workerId as string | null) ?? null })
      if (moves.current.size > MAX_MOVES) moves.current.delete(moves.current.keys().next().value!)
      timer ??= setTimeout(() => {
        timer = null
        redraw(times => times + 1)
      }, DRAW_AFTER_MS)
    })
    return () => {
      stop()
      if (timer !== null) clearTimeout(timer)
    }
  }, [endpointId])
  if (rows === null || moves.current.size === 0 || rows.length <= fresh) return rows
  return rows.map((row, index) => {
    const move = index < fresh ? undefined : moves.current.get(row.id)
    return move === undefined || move.status === row.status
      ? row
      : { ...row, status: move.status, workerId: move.workerId ?? row.workerId }
  })
}
