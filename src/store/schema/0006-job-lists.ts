import type { Migration } from './migration.ts'

/** The jobs of an endpoint in one state by their age, so that a page of the newest is read without looking at others. */
export const jobLists: Migration = {
  version: 6,
  name: 'job lists',
  statements: ['CREATE INDEX jobs_by_age ON jobs (endpoint_id, status, queued_at_ms, id)'],
}
