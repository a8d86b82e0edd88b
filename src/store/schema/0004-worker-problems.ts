import type { Migration } from './migration.ts'

/** What is wrong with a worker outlives the server: it is told with the end of the worker. */
export const workerProblems: Migration = {
  version: 4,
  name: 'worker problems',
  statements: ['ALTER TABLE workers ADD COLUMN problem TEXT'],
}
