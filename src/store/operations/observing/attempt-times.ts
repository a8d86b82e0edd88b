import type { EndpointId } from '../../../core/ids.ts'
import { appendTimes, MAX_BLOCKS, type TimesBlock } from '../../../core/jobs/attempt-times.ts'
import type { AttemptTimesStore, NewTimes } from '../../../ports/store/attempt-times-store.ts'
import * as sql from '../../tables/attempt-times.ts'
import { type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** How many blocks more than it makes an addition removes past the limit. */
const SPARE_REMOVALS = 10

/** Times of attempts, in blocks. */
export const attemptTimes = {
  add: write(function* (added: readonly NewTimes[]): Steps<void> {
    for (const times of added) yield* addTo(times)
  }),

  read: read(function* (endpointId: EndpointId, fromMs: number, beforeMs: number, limit: number): Steps<TimesBlock[]> {
    return (yield* query<sql.BlockRow>(sql.readBlocks, [endpointId, fromMs, beforeMs, limit])).map(toBlock)
  }),

  removeOld: write(function* (beforeMs: number, limit: number): Steps<number> {
    return (yield* query(sql.deleteOldBlocks, [beforeMs, limit])).length
  }),
} satisfies OperationsOf<AttemptTimesStore>

function* addTo({ endpointId, times }: NewTimes): Steps<void> {
  const row = yield* queryOne<sql.BlockRow>(sql.newestBlock, [endpointId])
  const blocks = appendTimes(row === null ? null : toBlock(row), times)
  for (const { atMs, toMs, attempts, packed } of blocks) {
    yield* perform(sql.putBlock, [endpointId, atMs, toMs, attempts, packed])
  }
  const more = blocks.filter(({ atMs }) => atMs !== row?.at_ms).length
  if (more === 0) return
  yield* perform(sql.deleteBlocksOver, [endpointId, MAX_BLOCKS.ofEndpoint, more + SPARE_REMOVALS])
  yield* perform(sql.deleteBlocksOfAccount, [endpointId, MAX_BLOCKS.ofAccount, more + SPARE_REMOVALS])
}

/** Removes blocks of a deleted endpoint. Returns how many. */
export function* removeBlocks(endpointId: EndpointId, limit: number): Steps<number> {
  return (yield* query(sql.deleteBlocksLeft, [endpointId, limit])).length
}

function toBlock(row: sql.BlockRow): TimesBlock {
  return { atMs: row.at_ms, toMs: row.to_ms, attempts: row.attempts, packed: row.packed }
}
