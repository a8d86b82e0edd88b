import type { Migration } from './migration.ts'

/** The jobs of an endpoint by their age. Their state is not in it: then each step of a job would write to it. */
export const jobLists: Migration = {
  version: 6,
  name: 'job lists',
  statements: ['CREATE INDEX jobs_by_age ON jobs (endpoint_id, queued_at_ms, id)'],
}
