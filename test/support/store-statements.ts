/** The statements of the store, for tests of how databases run them. */

import * as accounts from '../../src/store/operations/accounts/accounts.ts'
import * as quotas from '../../src/store/operations/accounts/quotas.ts'
import * as alerts from '../../src/store/operations/alerts/alerts.ts'
import * as appBuilds from '../../src/store/operations/apps/app-builds.ts'
import * as apps from '../../src/store/operations/apps/apps.ts'
import * as removals from '../../src/store/operations/endpoints/removals.ts'
import * as volumes from '../../src/store/operations/endpoints/volumes.ts'
import * as purges from '../../src/store/operations/jobs/purges.ts'
import * as chunksOf from '../../src/store/operations/jobs/streams.ts'
import * as claimSizes from '../../src/store/operations/jobs/turns.ts'
import * as webhooks from '../../src/store/operations/jobs/webhooks.ts'
import * as attemptTimes from '../../src/store/operations/observing/attempt-times.ts'
import * as servedModels from '../../src/store/operations/openai/served-models.ts'
import * as registries from '../../src/store/operations/secrets/registries.ts'
import * as secrets from '../../src/store/operations/secrets/secrets.ts'
import * as batches from '../../src/store/tables/batches.ts'
import * as endpoints from '../../src/store/tables/endpoints.ts'
import * as outcomes from '../../src/store/tables/job-outcomes.ts'
import * as jobRecords from '../../src/store/tables/job-records.ts'
import * as jobs from '../../src/store/tables/jobs.ts'
import * as keys from '../../src/store/tables/keys.ts'
import * as largeTexts from '../../src/store/tables/large-texts.ts'
import * as queuedWorkers from '../../src/store/tables/queued-workers.ts'
import * as releases from '../../src/store/tables/releases.ts'
import * as removedJobs from '../../src/store/tables/removed-jobs.ts'
import * as sessions from '../../src/store/tables/sessions.ts'
import * as templates from '../../src/store/tables/templates.ts'
import * as usage from '../../src/store/tables/usage.ts'
import * as workers from '../../src/store/tables/workers.ts'

/** Tables that grow with the jobs: no statement may read one of them from its begin to its end. */
export const GROWING: readonly string[] = [
  'jobs',
  'job_payloads',
  'large_texts',
  'large_text_parts',
  'batch_requests',
  'chunks',
  'diagnostics',
  'webhook_deliveries',
  'webhook_tries',
  'job_records',
  'job_hours',
  'worker_hours',
  'token_days',
]

const { compact: _, ...counts } = usage
const records = {
  ...templates,
  ...secrets,
  ...workers,
  ...keys,
  ...sessions,
  ...webhooks,
  ...counts,
  ...batches,
  ...registries,
  ...volumes,
  ...apps,
  ...alerts,
  ...appBuilds,
  ...releases,
  ...removals,
  ...removedJobs,
  ...purges,
  ...claimSizes,
  ...quotas,
  ...accounts,
  ...chunksOf,
  ...queuedWorkers,
  ...attemptTimes,
  ...servedModels,
  ...jobRecords,
  ...largeTexts,
  listJobs: jobRecords.listJobs('jobs', 'endpoint_id'),
  jobByAge: jobRecords.jobByAge('jobs', 'endpoint_id'),
  listJobsOfOwner: jobRecords.listJobs('jobs', 'owner'),
  jobOfOwnerByAge: jobRecords.jobByAge('jobs', 'owner'),
  listRecordsOfOwner: jobRecords.listJobs('job_records', 'owner'),
  recordOfOwnerByAge: jobRecords.jobByAge('job_records', 'owner'),
}
/** Names of statements with lists of values, which SQLite refuses. */
export const OF_POSTGRES: ReadonlySet<string> = new Set(['insertJobs', 'finishJobs'])

/** The statements of the store, by their names. {@link OF_POSTGRES} are not for SQLite. */
export const statements = Object.entries({ ...jobs, ...outcomes, ...endpoints, ...records })
  .filter(([name, value]) => typeof value === 'string' && !name.endsWith('_COLUMNS'))
  .map(([name, value]) => [name, value as string] as const)

/** Names of those that give rows in the order of an index: a sort would read all that there are. */
export const inOrder: ReadonlySet<string> = new Set([
  'claimJob',
  'claimJobs',
  'queueLoad',
  'headsOfLine',
  'firstRequests',
  'listBatches',
  'listBatchesOfOwner',
  'listBatchesBefore',
  'listJobsOfOwner',
  'jobOfOwnerByAge',
  'listRecordsOfOwner',
  'recordOfOwnerByAge',
  'oldestRecords',
  'oldestFailedInputs',
  'listJobs',
  'jobByAge',
  'expiredJobs',
  'runningJobsLeft',
  'jobsLeft',
  'batchLeft',
  'deleteKeysLeft',
  'waitingJobs',
  'tailOfPart',
  'nextLine',
  'headSizes',
  'newestBlock',
  'deleteBlocksOver',
  'deleteBlocksOfAccount',
  'deleteOldBlocks',
  'deleteBlocksLeft',
])
