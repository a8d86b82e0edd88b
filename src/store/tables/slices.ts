import type { Slice } from '../../core/pages.ts'
import type { SqlValue } from './statement.ts'

/** More than any list of one owner should have; the end of a list that is asked for as a whole. */
const MOST = 10_000

/** The parameters of a list: the place at which the previous page ended, and the limit. */
export function sliceParams(slice: Slice = { after: null, limit: MOST }): SqlValue[] {
  const { after, limit } = slice
  return [after?.createdAtMs ?? -1, after?.id ?? '', limit]
}
