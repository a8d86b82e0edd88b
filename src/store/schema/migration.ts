import type { DialectStatements } from '../tables/statement.ts'

/** A step of the schema. One that was released is never changed again. */
export interface Migration {
  /** From 1, without gaps. */
  readonly version: number
  readonly name: string
  readonly statements: readonly (string | DialectStatements)[]
}
