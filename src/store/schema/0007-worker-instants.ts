import type { Migration } from './migration.ts'

/** When a worker was found to have a problem, and when it was told to end, for its story. */
export const workerInstants: Migration = {
  version: 7,
  name: 'worker instants',
  statements: [
    'ALTER TABLE workers ADD COLUMN problem_at_ms {{integer}}',
    'ALTER TABLE workers ADD COLUMN stopping_at_ms {{integer}}',
  ],
}
