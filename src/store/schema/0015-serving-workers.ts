import type { Migration } from './migration.ts'

/** How workers of load-balancing endpoints serve; null for those of queues. */
export const servingWorkers: Migration = {
  version: 15,
  name: 'serving workers',
  statements: ['ALTER TABLE workers ADD COLUMN serves TEXT'],
}
