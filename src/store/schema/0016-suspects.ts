import type { Migration } from './migration.ts'

/** Jobs that were lost twice have a line of their own; see SUSPECT_LINE in sql/guards.ts. */
export const suspects: Migration = {
  version: 16,
  name: 'suspects',
  statements: [`UPDATE jobs SET line = 'alone' WHERE status = 'IN_QUEUE' AND lost_attempts >= 2`],
}
