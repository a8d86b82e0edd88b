import { AppError } from '../../core/errors.ts'
import { query, type Steps } from '../operations/operation.ts'
import { initial } from './0001-initial.ts'
import type { DialectStatements, Migration } from './migration.ts'

/** All steps, in order. */
export const migrations: readonly Migration[] = [initial]

/**
 * Brings a database to the schema of this program, in one transaction of the caller.
 * @param dialect the database that it is
 * @throws AppError `unavailable` for a database that a newer version made, or one from before the first release
 */
export function* migrate(dialect: keyof DialectStatements, steps: readonly Migration[] = migrations): Steps<void> {
  yield* query('CREATE TABLE IF NOT EXISTS migrations (version {{integer}} PRIMARY KEY, name TEXT NOT NULL) {{strict}}')
  const rows = yield* query<{ version: number; name: string }>('SELECT version, name FROM migrations ORDER BY version')
  if (rows[0] !== undefined && rows[0].name !== steps[0]?.name) {
    throw new AppError(
      'unavailable',
      'the database was made by a development version from before the first release, which has another schema; ' +
        'start with a new data directory or database',
    )
  }
  const done = new Set(rows.map(({ version }) => version))
  const found = Math.max(0, ...done)
  const known = steps.at(-1)?.version ?? 0
  if (found > known) {
    throw new AppError(
      'unavailable',
      `the database was made by a newer version of Runyard (its schema is ${found}, this version knows ${known}); ` +
        'start the newer version, or restore a backup from before the upgrade',
    )
  }
  for (const { version, name, statements } of steps) {
    if (done.has(version)) continue
    for (const statement of statements) {
      for (const own of typeof statement === 'string' ? [statement] : statement[dialect]) yield* query(own)
    }
    yield* query('INSERT INTO migrations (version, name) VALUES ($1, $2)', [version, name])
  }
}
