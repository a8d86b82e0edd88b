import type { Slice } from '../../core/pages.ts'

/** Value of a parameter or a column. */
export type SqlValue = string | number | null

/** Parameter of a statement: a list goes to PostgreSQL as an array, and SQLite refuses it. */
export type SqlParam = SqlValue | readonly SqlValue[]

/** One row, by column. */
export type Row = Readonly<Record<string, SqlValue>>

/** A statement with its parameters: `params[0]` is `$1`. */
export interface Statement {
  readonly sql: string
  readonly params: readonly SqlParam[]
  /** True where it only keeps rows from changing; where operations run one after another it need not be run. */
  readonly locks?: true
  /** Its rows are not read, so it can be sent with the next statement. */
  readonly unread?: true
  /** Statements that do the same in turn, for a database where none of them costs a message. */
  readonly inTurn?: readonly Statement[]
  /** Its rows are read once the next statement has answered too, so it can be sent with that one. */
  readonly readLater?: true
}

/** Statements that the two databases do not share. */
export interface DialectStatements {
  readonly sqlite: readonly string[]
  readonly postgres: readonly string[]
}

/** More than any list of one owner should have; the end of a list that is asked for as a whole. */
const MOST = 10_000

/** The parameters of a list: the place at which the previous page ended, and the limit. */
export function sliceParams(slice: Slice = { after: null, limit: MOST }): SqlValue[] {
  const { after, limit } = slice
  return [after?.createdAtMs ?? -1, after?.id ?? '', limit]
}
