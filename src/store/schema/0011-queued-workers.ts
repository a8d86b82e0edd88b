import type { Migration } from './migration.ts'

/** What workers wait for that have no place yet, for programs. */
export const queuedWorkers: Migration = {
  version: 11,
  name: 'queued workers',
  statements: [`ALTER TABLE queued_workers ADD COLUMN resource TEXT NOT NULL DEFAULT 'workers'`],
}
