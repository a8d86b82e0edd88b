import { AppError } from '../../core/errors.ts'
import { query, type Steps } from '../operations/operation.ts'
import { initial } from './0001-initial.ts'
import { batching } from './0002-batches.ts'
import { usage } from './0003-usage.ts'
import { workerProblems } from './0004-worker-problems.ts'
import { management } from './0005-management.ts'
import { jobLists } from './0006-job-lists.ts'
import { workerInstants } from './0007-worker-instants.ts'
import { placement } from './0008-placement.ts'
import { pinnedImages } from './0009-pinned-images.ts'
import { queuedWorkers } from './0011-queued-workers.ts'
import { servingWorkers } from './0015-serving-workers.ts'
import { suspects } from './0016-suspects.ts'
import { deletedEndpoints } from './0018-deleted-endpoints.ts'
import { accountSettings } from './0019-account-settings.ts'
import { accountLimits } from './0021-account-limits.ts'
import type { Migration } from './migration.ts'

/** All steps, in order. */
export const migrations: readonly Migration[] = [
  ...[
    initial,
    batching,
    usage,
    workerProblems,
    management,
    jobLists,
    workerInstants,
    placement,
    pinnedImages,
    queuedWorkers,
    servingWorkers,
    suspects,
    deletedEndpoints,
    accountSettings,
    accountLimits,
  ],
]

/**
 * Brings a database to the schema of this program, as one transaction of whoever runs it.
 * @throws AppError `unavailable` for a database that a newer version made
 */
export function* migrate(steps: readonly Migration[] = migrations): Steps<void> {
  yield* query('CREATE TABLE IF NOT EXISTS migrations (version {{integer}} PRIMARY KEY, name TEXT NOT NULL) {{strict}}')
  const rows = yield* query<{ version: number }>('SELECT version FROM migrations')
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
    for (const statement of statements) yield* query(statement)
    yield* query('INSERT INTO migrations (version, name) VALUES ($1, $2)', [version, name])
  }
}
