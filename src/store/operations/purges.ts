import type { EndpointId, JobId } from '../../core/ids.ts'
import type { LinePart } from '../../ports/store/store.ts'
import type { EndedRow } from '../rows/jobs.ts'
import { purgeJobs } from '../sql/job-outcomes.ts'
import * as sql from '../sql/purges.ts'
import { query, queryOne, type Steps } from './operation.ts'
import { lengthWithin } from './removed-jobs.ts'

/** About how many bytes of inputs one transaction writes anew, at least one: a row that changes is written as a whole. */
const PURGED_BYTES = 8 * 1024 * 1024

/** The parts of the line of an endpoint in which jobs wait now. */
export function* waitingParts(endpointId: EndpointId): Steps<LinePart[]> {
  const parts: LinePart[] = []
  let before: { line: string; low_priority: number } = { line: '', low_priority: -1 }
  for (;;) {
    const next = yield* queryOne<{ line: LinePart['line']; low_priority: number }>(sql.nextLine, [
      ...[endpointId, before.line, before.low_priority],
    ])
    if (next === null) return parts
    const { line, low_priority: priority } = next
    const tail = yield* queryOne<Place>(sql.tailOfPart, [endpointId, line, priority])
    if (tail !== null) parts.push({ line, priority, after: FRONT, last: { position: tail.position, id: tail.id } })
    before = next
  }
}

/** CANCELLED for the first jobs of parts of a line; those past their expiry are left to expire. Ends in their rows and in what is left. */
export function* cancelWaiting(
  endpointId: EndpointId,
  nowMs: number,
  limit: number,
  parts: readonly LinePart[],
): Steps<{ rows: readonly EndedRow[]; left: LinePart[] }> {
  const found: WaitingRow[] = []
  const left = [...parts]
  for (let room = PURGED_BYTES; left.length > 0 && found.length < limit && room > 0; ) {
    const { line, priority, after, last } = left[0]!
    const most = limit - found.length
    const places = [after.position, after.id, last.position, last.id]
    const rows = yield* query<WaitingRow>(sql.waitingJobs, [endpointId, line, priority, ...places, most])
    const sizes = rows.map(({ bytes }) => bytes)
    const fitting = rows.slice(0, lengthWithin(sizes, room))
    found.push(...fitting)
    for (const { bytes } of fitting) room -= bytes
    const seen = fitting.at(-1)
    if (fitting.length < rows.length) room = 0
    if (rows.length < most && fitting.length === rows.length) left.shift()
    else if (seen !== undefined) left[0] = { line, priority, last, after: { position: seen.position, id: seen.id } }
  }
  const ids = found.filter(row => row.expires_at_ms > nowMs).map(({ id }) => id)
  const rows = ids.length === 0 ? [] : yield* query<EndedRow>(purgeJobs, [JSON.stringify(ids), nowMs])
  return { rows, left }
}

type Place = LinePart['after']

const FRONT: Place = { position: Number.MIN_SAFE_INTEGER, id: '' }

interface WaitingRow {
  readonly id: JobId
  readonly position: number
  readonly expires_at_ms: number
  readonly bytes: number
}
