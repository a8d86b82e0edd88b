import type { Migration } from './migration.ts'

/** What an account has chosen: whether its endpoints can be deleted through GraphQL while they may have workers. */
export const accountSettings: Migration = {
  version: 19,
  name: 'account settings',
  statements: ['ALTER TABLE accounts ADD COLUMN delete_running_endpoints {{integer}} NOT NULL DEFAULT 0'],
}
