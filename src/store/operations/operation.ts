/**
 * Every method of the store port is one operation: a generator that yields statements and receives their rows. It
 * does not know who runs it. SQLite runs it to its end at once, inside a transaction of many; a client of a database
 * server can run the same one and wait for each answer.
 */

import type { Row, SqlParam, SqlValue, Statement } from '../tables/statement.ts'

/** The steps of an operation, which end in its result. */
export type Steps<Result> = Generator<Statement, Result, readonly Row[]>

/** An operation. Arguments and results are plain data that can be cloned into another thread. */
export interface Operation<Args extends readonly unknown[] = readonly unknown[], Result = unknown> {
  /** True when it only reads, so that it needs no transaction that is made durable. */
  readonly reads: boolean
  /**
   * True for a call whose changes may be lost if the machine fails before the next flush; see {@link writeUnflushed}.
   * By default those of no call may.
   */
  readonly unflushed?: (...args: Args) => boolean
  readonly steps: (...args: Args) => Steps<Result>
  /**
   * The way in which several calls become one: in PostgreSQL, where each statement is a message and each commit a
   * flush, and in SQLite by its steps alone, which change a row once for all of them.
   */
  readonly together?: Together<Args, Result>
}

/** The way in which several calls of an operation run in one transaction. */
export interface Together<Args extends readonly unknown[] = readonly unknown[], Result = unknown> {
  /** Characters of a call; null for one that has to run alone. */
  readonly size: (...args: Args) => number | null
  /** One statement, which does for each of them what its steps do. */
  readonly statement?: {
    readonly of: (calls: readonly Args[]) => Statement
    /** The results of the calls, in their order. */
    readonly results: (calls: readonly Args[], rows: readonly Row[]) => readonly Result[]
  }
  /** Steps for several calls, which do for each of them what its own steps do. They end in the results, in order. */
  readonly steps?: (calls: readonly Args[]) => Steps<readonly Result[]>
}

type MethodOperation<Method> = Method extends (...args: infer Args) => Promise<infer Result>
  ? Operation<Args, Result>
  : never

/** The operations that make up one part of the port, under the names of its methods. */
export type PortOperations<Part> = { readonly [Name in keyof Part]: MethodOperation<Part[Name]> }

/** An operation that only reads. */
export function read<Args extends readonly unknown[], Result>(
  steps: (...args: Args) => Steps<Result>,
): Operation<Args, Result> & { readonly reads: true } {
  return { reads: true, steps }
}

/**
 * An operation that changes something.
 * @param unflushed true for a call that is as one of {@link writeUnflushed}; by default none is
 */
export function write<Args extends readonly unknown[], Result>(
  steps: (...args: Args) => Steps<Result>,
  together?: Together<Args, Result>,
  unflushed?: (...args: Args) => boolean,
): Operation<Args, Result> & { readonly reads: false } {
  const parts = { ...(together !== undefined && { together }), ...(unflushed !== undefined && { unflushed }) }
  return { reads: false, steps, ...parts }
}

/**
 * An operation that changes something without a flush of its own on the embedded store (docs/adr/0003). The end of
 * the server loses nothing of it. A failure of the machine before the next flush undoes it, and everything else stays
 * as it was before.
 */
export function writeUnflushed<Args extends readonly unknown[], Result>(
  steps: (...args: Args) => Steps<Result>,
): Operation<Args, Result> & { readonly reads: false } {
  return { reads: false, unflushed: () => true, steps }
}

/** One statement; its rows have the columns of `R`, as the row types in tables/ say. */
export function* query<R = Row>(sql: string, params: readonly SqlParam[] = []): Steps<readonly R[]> {
  return (yield { sql, params }) as unknown as readonly R[]
}

/** As {@link query}, for a statement with at most one row. */
export function* queryOne<R = Row>(sql: string, params: readonly SqlValue[] = []): Steps<R | null> {
  const rows = yield* query<R>(sql, params)
  return rows[0] ?? null
}

/**
 * Statements of which none needs the rows of another: PostgreSQL gets all of them in one message.
 * @returns the rows of each, in their order
 */
export function* queryAll<RowTypes extends readonly unknown[]>(
  ...statements: { readonly [Index in keyof RowTypes]: Statement }
): Steps<{ readonly [Index in keyof RowTypes]: readonly RowTypes[Index][] }> {
  const rows: (readonly Row[])[] = []
  for (const [index, statement] of statements.entries()) {
    const isLast = index === statements.length - 1
    rows.push(yield isLast ? statement : { ...statement, readLater: true })
  }
  return rows as unknown as { readonly [Index in keyof RowTypes]: readonly RowTypes[Index][] }
}

/**
 * Keeps the rows that the statement selects from changing until the operation ends. The statements behind it see all
 * that others did to them before. Always in this order, so that no two operations wait for each other: jobs,
 * counters, batches, workers.
 */
export function* lock(sql: string, params: readonly SqlValue[]): Steps<void> {
  yield { sql, params, locks: true, unread: true }
}

/** A statement whose rows are not needed. It may be run as late as the next one whose rows are. */
export function* perform(sql: string, params: readonly SqlValue[] = []): Steps<void> {
  yield { sql, params, unread: true }
}

/** Runs an operation to its end where statements are answered later. */
export async function awaitSteps<Result>(
  steps: Steps<Result>,
  answer: (statement: Statement) => Promise<readonly Row[]>,
): Promise<Result> {
  let step = steps.next()
  while (step.done !== true) step = steps.next(await answer(step.value))
  return step.value
}

/** Runs an operation to its end where statements answer at once. */
export function runSteps<Result>(steps: Steps<Result>, answer: (statement: Statement) => readonly Row[]): Result {
  let step = steps.next()
  while (step.done !== true) step = steps.next(step.value.locks === true ? [] : answer(step.value))
  return step.value
}
