/** States of jobs that moved after their row was read: only the first page of a list is read again by itself. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { JobStatus, JobSummary } from '../../../client/api-types.d.ts'
import { type LiveEvent, onLive } from '../../../client/live.ts'
import { isFinal } from './job-story.ts'

/** Limit of stored moves; the oldest are dropped first. */
const MAX_MOVES = 10_000
/** Time from an event until the list is drawn again, in milliseconds, since events arrive in bursts. */
const DRAW_AFTER_MS = 200

/** The state of a job in an event. */
export interface Move {
  readonly status: JobStatus
  readonly atMs: number
  readonly workerId: string | null
}

/** Rows with the states of newer events, without those that no longer pass the filter. */
export function useMoved(
  endpointId: string,
  rows: readonly JobSummary[] | null,
  isMeant: (row: JobSummary) => boolean,
): readonly JobSummary[] | null {
  const moves = useRef(new Map<string, Move>())
  const [, redraw] = useState(0)
  useEffect(() => {
    moves.current.clear()
    let timer: ReturnType<typeof setTimeout> | null = null
    const stop = onLive(event => {
      // Moves may be missing: the next read is newer.
      if (event === null) return moves.current.clear()
      if (event.endpointId !== endpointId || event.type !== 'job.moved') return
      keep(moves.current, event)
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
  if (rows === null || moves.current.size === 0) return rows
  const moved = rows.map(row => movedRow(row, moves.current.get(row.id)))
  return moved.filter((row, at) => row === rows[at] || isMeant(row))
}

function keep(moves: Map<string, Move>, event: LiveEvent): void {
  const id = String(event.jobId)
  moves.delete(id)
  const workerId = typeof event.workerId === 'string' ? event.workerId : null
  moves.set(id, { status: event.to as JobStatus, atMs: Date.parse(String(event.at)), workerId })
  if (moves.size > MAX_MOVES) moves.delete(moves.keys().next().value!)
}

/** A row after a move; the same row if it was read since then. */
export function movedRow(row: JobSummary, move: Move | undefined): JobSummary {
  if (move === undefined || move.status === row.status) return row
  const { status, atMs } = move
  const workerId = move.workerId ?? row.workerId
  if (status === 'IN_PROGRESS') return { ...row, status, workerId, startedAt: atMs, delayTime: atMs - row.createdAt }
  if (!isFinal(status)) return { ...row, status, startedAt: null }
  const executionTime = row.startedAt === null ? 0 : atMs - row.startedAt
  return { ...row, status, workerId, completedAt: atMs, executionTime }
}
