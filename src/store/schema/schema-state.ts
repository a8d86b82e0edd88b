/** The schema of a database, and the reason why this program cannot use it. */
import type { Row } from '../tables/statement.ts'
import { initial } from './0001-initial.ts'
import type { Migration } from './migration.ts'

/** All steps of this program, in order. */
export const migrations: readonly Migration[] = [initial]

/** Reads the steps that a database has; rows of development versions lack columns. */
export const READ_STEPS = 'SELECT * FROM migrations ORDER BY version'

/** The schema of a database that has one. */
export interface SchemaState {
  /** Number of its newest step. */
  readonly version: number
  /** The Runyard that made that step; null for a development version from before the first release. */
  readonly writtenBy: string | null
}

/** The change of a database by this program. */
export interface SchemaChange {
  readonly from: number
  readonly to: number
  /** The Runyard that made the present schema. */
  readonly writtenBy: string
}

/** The newest step that this program knows. */
export function newestSchema(steps: readonly { readonly version: number }[] = migrations): number {
  return steps.at(-1)?.version ?? 0
}

/** The state in the rows of {@link READ_STEPS}. @returns null for a database without a step */
export function schemaStateFromRows(
  rows: readonly Row[],
  steps: readonly { readonly name: string }[] = migrations,
): SchemaState | null {
  const newest = rows.at(-1)
  if (newest === undefined) return null
  const isReleased = rows[0]?.name === steps[0]?.name && typeof newest.program === 'string'
  return { version: Number(newest.version), writtenBy: isReleased ? String(newest.program) : null }
}

/** The reason why a program with these steps cannot use a database, as a sentence; null when it can. */
export function schemaProblem({ version, writtenBy }: SchemaState, newest = newestSchema()): string | null {
  if (writtenBy === null) {
    return (
      'the database was made by a development version from before the first release, which has another schema; ' +
      'start with a new data directory or database'
    )
  }
  if (version <= newest) return null
  return (
    `the database was made by a newer version of Runyard, ${writtenBy} (its schema is ${version}, this version knows ${newest}); ` +
    `start Runyard ${writtenBy}, or restore a backup from before the upgrade`
  )
}

/** The change that makes a database usable by this program; null without one. */
export function schemaChange({ version, writtenBy }: SchemaState, newest = newestSchema()): SchemaChange | null {
  return writtenBy === null || version >= newest ? null : { from: version, to: newest, writtenBy }
}
