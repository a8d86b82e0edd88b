import type { EndpointId } from '../../../core/ids.ts'
import { appendTimes, MAX_BLOCKS, type TimesBlock } from '../../../core/jobs/attempt-times.ts'
import type { AttemptTimesStore, NewTimes } from '../../../ports/store/attempt-times-store.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Statements on the times of attempts. */

/** $1 endpoint. Its newest block. */
export const newestBlock = `
  SELECT at_ms, to_ms, attempts, packed FROM attempt_times WHERE endpoint_id = $1 ORDER BY at_ms DESC LIMIT 1 {{lock}}`

/** $1 endpoint, $2 begin, $3 end, $4 number of attempts, $5 their times. Nothing when the endpoint is gone. */
export const putBlock = `
  INSERT INTO attempt_times (endpoint_id, at_ms, to_ms, owner, attempts, packed)
  SELECT id, CAST($2 AS {{integer}}), CAST($3 AS {{integer}}), owner, CAST($4 AS {{integer}}), $5 FROM endpoints WHERE id = $1
  ON CONFLICT (endpoint_id, at_ms) DO UPDATE SET to_ms = excluded.to_ms, attempts = excluded.attempts, packed = excluded.packed`

/** $1 endpoint, $2 number of its newest blocks that stay, $3 limit of removed ones. */
export const deleteBlocksOver = `
  DELETE FROM attempt_times WHERE {{row}} IN (
    SELECT {{row}} FROM attempt_times WHERE endpoint_id = $1 ORDER BY at_ms DESC LIMIT CAST($3 AS {{integer}}) OFFSET CAST($2 AS {{integer}}) {{skip_locked}})`

/** $1 endpoint, $2 number of the newest blocks of its account that stay, $3 limit of removed ones. */
export const deleteBlocksOfAccount = `
  DELETE FROM attempt_times WHERE {{row}} IN (
    SELECT {{row}} FROM attempt_times WHERE owner = (SELECT owner FROM endpoints WHERE id = $1)
    ORDER BY to_ms DESC LIMIT CAST($3 AS {{integer}}) OFFSET CAST($2 AS {{integer}}) {{skip_locked}})`

/** $1 endpoint, $2 the instant at which they end or later, $3 the instant before which they begin, $4 limit. */
export const readBlocks = `
  SELECT at_ms, to_ms, attempts, packed FROM attempt_times
  WHERE endpoint_id = $1 AND at_ms < $3 AND to_ms >= $2 ORDER BY at_ms DESC LIMIT $4`

/** $1 the instant before which they ended, $2 limit. */
export const deleteOldBlocks = `
  DELETE FROM attempt_times WHERE {{row}} IN (
    SELECT {{row}} FROM attempt_times WHERE to_ms < $1 ORDER BY to_ms LIMIT $2 {{skip_locked}})
  RETURNING at_ms`

/** $1 endpoint, $2 limit. */
export const deleteBlocksLeft = `
  DELETE FROM attempt_times WHERE {{row}} IN (
    SELECT {{row}} FROM attempt_times WHERE endpoint_id = $1 ORDER BY at_ms LIMIT $2 {{skip_locked}})
  RETURNING at_ms`

/** A row. */
interface BlockRow {
  readonly at_ms: number
  readonly to_ms: number
  readonly attempts: number
  readonly packed: string
}

/** Number of blocks past the limit that an addition removes beyond those that it makes. */
const SPARE_REMOVALS = 10

/** Times of attempts, in blocks. */
export const attemptTimes = {
  add: write(function* (added: readonly NewTimes[]): Steps<void> {
    for (const times of added) yield* addTo(times)
  }),

  read: read(function* (endpointId: EndpointId, fromMs: number, beforeMs: number, limit: number): Steps<TimesBlock[]> {
    return (yield* query<BlockRow>(readBlocks, [endpointId, fromMs, beforeMs, limit])).map(blockFromRow)
  }),

  removeOld: write(function* (beforeMs: number, limit: number): Steps<number> {
    return (yield* query(deleteOldBlocks, [beforeMs, limit])).length
  }),
} satisfies PortOperations<AttemptTimesStore>

function* addTo({ endpointId, times }: NewTimes): Steps<void> {
  const row = yield* queryOne<BlockRow>(newestBlock, [endpointId])
  const blocks = appendTimes(row === null ? null : blockFromRow(row), times)
  for (const { atMs, toMs, attempts, packed } of blocks) {
    yield* perform(putBlock, [endpointId, atMs, toMs, attempts, packed])
  }
  const addedBlocks = blocks.filter(({ atMs }) => atMs !== row?.at_ms).length
  if (addedBlocks === 0) return
  yield* perform(deleteBlocksOver, [endpointId, MAX_BLOCKS.ofEndpoint, addedBlocks + SPARE_REMOVALS])
  yield* perform(deleteBlocksOfAccount, [endpointId, MAX_BLOCKS.ofAccount, addedBlocks + SPARE_REMOVALS])
}

/** Removes blocks of a deleted endpoint. @returns their number */
export function* removeBlocks(endpointId: EndpointId, limit: number): Steps<number> {
  return (yield* query(deleteBlocksLeft, [endpointId, limit])).length
}

function blockFromRow(row: BlockRow): TimesBlock {
  return { atMs: row.at_ms, toMs: row.to_ms, attempts: row.attempts, packed: row.packed }
}
