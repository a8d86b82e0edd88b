import { invalidFields } from './errors.ts'
import { type FieldProblem, fieldProblem } from './field-problem.ts'

/** The requested part of a list. */
export interface PageRequest {
  /** The cursor of the previous page; null or left out for the first page. */
  readonly cursor?: string | null | undefined
  /** Maximum number of items, 1 to the limit of the list (usually {@link MAX_PAGE}); that limit by default. */
  readonly limit?: number | undefined
}

/** A part of a list, in its order. */
export interface Page<Item> {
  readonly items: readonly Item[]
  /** The cursor of the next page; null on the last one. */
  readonly nextCursor: string | null
}

/** The place of an item in its list. */
export interface PagePosition {
  readonly createdAtMs: number
  readonly id: string
}

/** A page as the store gives it: at most `limit` items behind `after`. */
export interface Slice {
  readonly after: PagePosition | null
  readonly limit: number
}

/** Limit of items of one page. */
export const MAX_PAGE = 1_000

/** All problems of the request for a page. @param most limit of items of a page of this list */
export function pageProblems({ cursor, limit = 1 }: PageRequest, most = MAX_PAGE): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (!Number.isInteger(limit) || limit < 1 || limit > most) {
    problems.push(fieldProblem('limit', `must be an integer from 1 to ${most}`))
  }
  if (cursor != null && !CURSOR.test(cursor)) {
    problems.push(fieldProblem('cursor', 'is not one that an earlier page has returned'))
  }
  return problems
}

/** The form of a cursor. */
export const CURSOR = /^([0-9a-z]{1,11})-([A-Za-z0-9_-]{1,128})$/

/**
 * The slice for a page: its items and one more, which shows if a next page exists.
 * @param most largest and default number of items of a page of this list
 * @throws AppError `invalid` for a limit out of bounds and for a malformed cursor
 */
export function readSlice(request: PageRequest, most = MAX_PAGE): Slice {
  const problems = pageProblems(request, most)
  if (problems.length > 0) throw invalidFields(problems)
  const { cursor, limit = most } = request
  const parts = cursor == null ? null : CURSOR.exec(cursor)
  return {
    after: parts === null ? null : { createdAtMs: Number.parseInt(parts[1]!, 36), id: parts[2]! },
    limit: limit + 1,
  }
}

/** The page that a slice from {@link readSlice} holds. */
export function pageFromRows<Item extends PagePosition>(rows: readonly Item[], slice: Slice): Page<Item> {
  const items = rows.slice(0, slice.limit - 1)
  const last = items.at(-1)
  const more = rows.length === slice.limit && last !== undefined
  return { items, nextCursor: more ? cursorAfter(last) : null }
}

/** The cursor of the page after a place. */
export function cursorAfter({ createdAtMs, id }: PagePosition): string {
  return `${createdAtMs.toString(36)}-${id}`
}

/** A part of a list that is joined with others. */
export interface ListPart<Item> {
  /** Newest first. */
  readonly items: readonly Item[]
  /** The end of the read part; null when all of it was read. */
  readonly readUntil: PagePosition | null
}

/**
 * A page of several lists as one, newest first. It ends at the first end of a part that was not read completely, so
 * it can be short or empty without being the last.
 * @param limit maximum number of items
 */
export function joinedPage<Item extends PagePosition>(parts: readonly ListPart<Item>[], limit: number): Page<Item> {
  const bounds = parts.map(({ readUntil }) => readUntil).filter(place => place !== null)
  const bound = bounds.sort(newestFirst)[0] ?? null
  const all = parts.flatMap(({ items }) => items).sort(newestFirst)
  const within = bound === null ? all : all.filter(item => newestFirst(item, bound) <= 0)
  const items = within.slice(0, limit)
  const last = items.at(-1)
  if (within.length > limit && last !== undefined) return { items, nextCursor: cursorAfter(last) }
  return { items, nextCursor: bound === null ? null : cursorAfter(bound) }
}

/** The order of lists whose newest items come first. */
export function newestFirst(a: PagePosition, b: PagePosition): number {
  return b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
}
