import type { EndpointId, JobId } from '../../../core/ids.ts'
import type { QueuePart } from '../../../ports/store/store.ts'
import { guard } from '../../tables/guards.ts'
import { purgeJobs } from '../../tables/job-outcomes.ts'
import type { EndedRow } from '../../tables/jobs.ts'
import { query, queryOne, type Steps } from '../operation.ts'
import { lengthWithin } from './removed-jobs.ts'

const firstQueue = (behind: string) => `
    SELECT * FROM (SELECT queue, low_priority FROM jobs WHERE endpoint_id = $1 AND ${guard('purge')} AND ${behind}
      ORDER BY queue, low_priority LIMIT 1)`

/**
 * $1 endpoint, $2 and $3 the queue and the priority behind which it stands. The next queue in which a job waits. As
 * one comparison of both columns SQLite would read all jobs of the queue before.
 */
export const nextQueue = `
  SELECT queue, low_priority FROM (${firstQueue('queue = $2 AND low_priority > $3')} AS same
    UNION ALL${firstQueue('queue > $2')} AS next) AS queues
  ORDER BY queue, low_priority LIMIT 1`

/** $1 endpoint, $2 queue, $3 priority. The place of the last job of a queue. */
export const tailOfPart = `
  SELECT position, id FROM jobs
  WHERE endpoint_id = $1 AND ${guard('purge')} AND queue = $2 AND low_priority = $3
  ORDER BY position DESC, id DESC LIMIT 1`

/**
 * $1 endpoint, $2 queue, $3 priority, $4 and $5 the place behind which they stand, $6 and $7 the last place, $8
 * limit.
 */
export const waitingJobs = `
  SELECT id, position, expires_at_ms, input_bytes AS bytes FROM jobs
  WHERE endpoint_id = $1 AND ${guard('purge')} AND queue = $2 AND low_priority = $3
    AND (position, id) > ($4, $5) AND (position, id) <= ($6, $7)
    AND EXISTS (SELECT 1 FROM endpoints WHERE id = $1)
  ORDER BY position, id LIMIT $8 {{skip_locked}}`

/** Approximate bytes of inputs that one step of a purge takes, at least one job. */
const PURGED_BYTES = 8 * 1024 * 1024

/** The parts of the queue of an endpoint in which jobs wait now. */
export function* waitingParts(endpointId: EndpointId): Steps<QueuePart[]> {
  const parts: QueuePart[] = []
  let previous: { queue: string; low_priority: number } = { queue: '', low_priority: -1 }
  for (;;) {
    const next = yield* queryOne<{ queue: QueuePart['queue']; low_priority: number }>(nextQueue, [
      ...[endpointId, previous.queue, previous.low_priority],
    ])
    if (next === null) return parts
    const { queue, low_priority: priority } = next
    const tail = yield* queryOne<Place>(tailOfPart, [endpointId, queue, priority])
    if (tail !== null) parts.push({ queue, priority, after: FRONT, last: { position: tail.position, id: tail.id } })
    previous = next
  }
}

/**
 * CANCELLED for the first jobs of parts of a queue; those past their expiry are left to expire.
 * @returns their rows, and the parts that are left
 */
export function* cancelWaiting(
  endpointId: EndpointId,
  nowMs: number,
  limit: number,
  parts: readonly QueuePart[],
): Steps<{ rows: readonly EndedRow[]; left: QueuePart[] }> {
  const waiting: WaitingRow[] = []
  const left = [...parts]
  for (let room = PURGED_BYTES; left.length > 0 && waiting.length < limit && room > 0; ) {
    const { queue, priority, after, last } = left[0]!
    const most = limit - waiting.length
    const places = [after.position, after.id, last.position, last.id]
    const rows = yield* query<WaitingRow>(waitingJobs, [endpointId, queue, priority, ...places, most])
    const sizes = rows.map(({ bytes }) => bytes)
    const fitting = rows.slice(0, lengthWithin(sizes, room))
    waiting.push(...fitting)
    for (const { bytes } of fitting) room -= bytes
    const lastRow = fitting.at(-1)
    if (fitting.length < rows.length) room = 0
    if (rows.length < most && fitting.length === rows.length) left.shift()
    else if (lastRow !== undefined)
      left[0] = { queue, priority, last, after: { position: lastRow.position, id: lastRow.id } }
  }
  const ids = waiting.filter(row => row.expires_at_ms > nowMs).map(({ id }) => id)
  const rows = ids.length === 0 ? [] : yield* query<EndedRow>(purgeJobs, [JSON.stringify(ids), nowMs])
  return { rows, left }
}

type Place = QueuePart['after']

const FRONT: Place = { position: Number.MIN_SAFE_INTEGER, id: '' }

interface WaitingRow {
  readonly id: JobId
  readonly position: number
  readonly expires_at_ms: number
  readonly bytes: number
}
