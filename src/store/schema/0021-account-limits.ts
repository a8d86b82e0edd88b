import type { Migration } from './migration.ts'

/** Limits that an operator gave an account, as a JSON object; what is not in it is that of the installation. */
export const accountLimits: Migration = {
  version: 21,
  name: 'account limits',
  statements: [`ALTER TABLE accounts ADD COLUMN limits TEXT NOT NULL DEFAULT '{}'`],
}
