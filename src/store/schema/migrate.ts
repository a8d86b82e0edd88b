import { AppError } from '../../core/errors.ts'
import { packageVersion } from '../../disk/package-files.ts'
import { query, type Steps } from '../operations/operation.ts'
import type { DialectStatements, Row } from '../tables/statement.ts'
import type { Migration } from './migration.ts'
import { migrations, newestSchema, READ_STEPS, schemaProblem, schemaStateFromRows } from './schema-state.ts'

/**
 * Brings a database to the schema of this program, in one transaction of the caller. Each step is kept with the
 * version of Runyard that made it.
 * @param dialect the database that it is
 * @throws AppError `unavailable` for a database that a newer version made, or one from before the first release
 */
export function* migrate(dialect: keyof DialectStatements, steps: readonly Migration[] = migrations): Steps<void> {
  yield* query(
    'CREATE TABLE IF NOT EXISTS migrations (version {{integer}} PRIMARY KEY, name TEXT NOT NULL, program TEXT NOT NULL) {{strict}}',
  )
  const rows = yield* query<Row>(READ_STEPS)
  const state = schemaStateFromRows(rows, steps)
  const refusal = state === null ? null : schemaProblem(state, newestSchema(steps))
  if (refusal !== null) throw new AppError('unavailable', refusal)
  const done = new Set(rows.map(({ version }) => version))
  for (const { version, name, statements } of steps) {
    if (done.has(version)) continue
    for (const statement of statements) {
      for (const text of typeof statement === 'string' ? [statement] : statement[dialect]) yield* query(text)
    }
    yield* query('INSERT INTO migrations (version, name, program) VALUES ($1, $2, $3)', [
      version,
      name,
      packageVersion(),
    ])
  }
}
