/** The statements of the store, for tests of how databases run them. */

import { PAYLOAD_KINDS } from '../../src/core/secrets/seals.ts'
import * as accounts from '../../src/store/operations/accounts/accounts.ts'
import * as quotas from '../../src/store/operations/accounts/quotas.ts'
import * as alerts from '../../src/store/operations/alerts/alerts.ts'
import * as appBuilds from '../../src/store/operations/apps/app-builds.ts'
import * as apps from '../../src/store/operations/apps/apps.ts'
import * as domains from '../../src/store/operations/endpoints/endpoints.ts'
import * as removals from '../../src/store/operations/endpoints/removals.ts'
import * as volumes from '../../src/store/operations/endpoints/volumes.ts'
import * as purges from '../../src/store/operations/jobs/purges.ts'
import * as chunksOf from '../../src/store/operations/jobs/streams.ts'
import * as claimSizes from '../../src/store/operations/jobs/turns.ts'
import * as webhooks from '../../src/store/operations/jobs/webhooks.ts'
import * as attemptTimes from '../../src/store/operations/observing/attempt-times.ts'
import * as metrics from '../../src/store/operations/observing/metrics.ts'
import * as modelAliases from '../../src/store/operations/openai/model-aliases.ts'
import * as servedModels from '../../src/store/operations/openai/served-models.ts'
import * as registries from '../../src/store/operations/secrets/registries.ts'
import * as seals from '../../src/store/operations/secrets/seals.ts'
import * as secrets from '../../src/store/operations/secrets/secrets.ts'
import * as audit from '../../src/store/tables/audit.ts'
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
import * as clock from '../../src/store/tables/server-clock.ts'
import * as sessions from '../../src/store/tables/sessions.ts'
import * as templates from '../../src/store/tables/templates.ts'
import * as usage from '../../src/store/tables/usage.ts'
import * as workers from '../../src/store/tables/workers.ts'

/** Tables that grow with the jobs. */
export const OF_JOBS: readonly string[] = [
  'jobs',
  'job_payloads',
  'job_records',
  'large_texts',
  'large_text_parts',
  'batch_requests',
  'chunks',
  'diagnostics',
  'webhook_deliveries',
  'webhook_tries',
  'job_hours',
  'worker_hours',
  'token_days',
]

/** Tables that grow: no statement may read one of them from its begin to its end, but those of {@link WHOLE}. */
export const GROWING: readonly string[] = [
  ...OF_JOBS,
  'batches',
  'idempotency_keys',
  'webhook_keys',
  'metric_buckets',
  'attempt_times',
  'workers',
  'queued_workers',
  'endpoint_ids',
  'former_endpoints',
  'endpoints',
  'endpoint_counters',
  'endpoint_domains',
  'endpoint_volumes',
  'app_endpoints',
  'releases',
  'served_models',
  'queue_counts',
  'templates',
  'secrets',
  'apps',
  'app_builds',
  'app_environments',
  'app_uploads',
  'api_keys',
  'console_sessions',
  'audit_entries',
]

/** Indexes with few rows of a table that grows: reading one of them as a whole is no read of the table. */
export const SMALL_INDEXES: readonly string[] = [
  // Workers that have not ended.
  'workers_alive',
  'workers_by_count',
  // Batches that have not ended, drafts included.
  'batches_unfinished',
  // Tasks alone.
  'tasks_by_owner',
  'started_tasks',
  // Of the environments of apps those with a build.
  'app_environments_by_build',
]

/** Statements that read a table that grows as a whole, each with the reason why it may. */
export const WHOLE: Readonly<Record<string, string>> = {
  endpointIds: 'once in 30 s, and after a change of endpoints',
  activeEndpoints: 'once in 30 s, and after a change of endpoints',
  longestQueues: 'once in 20 s',
  lastExited: 'as far as its limit',
  findHead: 'as far as its limit',
  findBounds: 'as far as its limit',
  findLastOld: 'as far as its limit',
  waitingWorkers: 'for the operator; the sum of all is what it shows',
  queuedWorkersOfOwner: 'queued workers are few for each endpoint',
  deleteUnusedKeys: 'once in a minute',
  listDomains: 'after a change of a domain',
  'moves[0]': 'where the operator lets the clock of the server jump',
  'moves[2]': 'where the operator lets the clock of the server jump',
  'moves[5]': 'where the operator lets the clock of the server jump',
  'movesBack[0]': 'where the operator lets the clock of the server jump',
  'movesBack[1]': 'where the operator lets the clock of the server jump',
  'movesBack[2]': 'where the operator lets the clock of the server jump',
  'movesBack[3]': 'where the operator lets the clock of the server jump',
  'movesBack[4]': 'where the operator lets the clock of the server jump',
}

const { compact: _, ...counts } = usage
const SEALS = [
  ...(['secrets', 'webhookKeys', 'registries', 'alertReceivers', 'endpointKeys', 'jobs', 'templates'] as const),
  ...(['endpoints', 'releases', 'keyCanaries', 'recordInputs', 'largeTextParts', 'jobWebhooks'] as const),
  ...(['draftInputs', 'draftWebhooks', 'batchWebhooks', 'deliveries'] as const),
]
const FILTERS = ['account', 'key_id', 'operation', 'object', 'surface'] as const
/** Statements that functions make, by their names. */
const made: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    (['jobs', 'job_records'] as const).flatMap(table =>
      (['endpoint_id', 'owner'] as const).flatMap(by => [
        [listName(table, by), jobRecords.listJobs(table, by)],
        [`placeOf ${listName(table, by)}`, jobRecords.jobByAge(table, by)],
      ]),
    ),
  ),
  ...Object.fromEntries(
    (['endpoint_id', 'owner'] as const).flatMap(by => [
      [`deliveries by ${by}`, webhooks.pageOfDeliveries(by)],
      [`place of deliveries by ${by}`, webhooks.deliveryByAge(by)],
    ]),
  ),
  ...Object.fromEntries(batches.REQUESTS_AT_ONCE.map(count => [`${count} requests`, batches.insertRequests(count)])),
  ...Object.fromEntries(
    SEALS.flatMap(kind => [
      [`seals of ${kind}`, seals.listSeals(kind)],
      [`seal of ${kind}`, seals.replaceSeal(kind)],
    ]),
  ),
  'seals of jobInputs': seals.listSeals('jobInputs'),
  ...Object.fromEntries(PAYLOAD_KINDS.map(kind => [`payloads of ${kind}`, seals.listPayloads(kind)])),
  ...Object.fromEntries(subsets(FILTERS).map(filters => [['audit', ...filters].join(' '), audit.listEntries(filters)])),
}

function listName(table: jobRecords.ListedTable, by: jobRecords.ListedBy): string {
  return `list of ${table} by ${by}`
}

function subsets<Item>(items: readonly Item[]): Item[][] {
  const [first, ...rest] = items
  return first === undefined ? [[]] : subsets(rest).flatMap(subset => [subset, [first, ...subset]])
}

const modules: readonly Readonly<Record<string, unknown>>[] = [
  ...[jobs, outcomes, endpoints, templates, secrets, workers, keys, sessions, webhooks, counts, batches, registries],
  ...[
    volumes,
    apps,
    alerts,
    appBuilds,
    releases,
    removals,
    removedJobs,
    purges,
    claimSizes,
    quotas,
    accounts,
    chunksOf,
  ],
  ...[queuedWorkers, attemptTimes, servedModels, jobRecords, largeTexts, audit, clock, domains, metrics, modelAliases],
  ...[seals, made],
]

/** The texts of an export: itself, or those that it has. */
function textsOf(name: string, value: unknown): (readonly [string, string])[] {
  if (typeof value === 'string') return [[name, value]]
  if (Array.isArray(value)) return value.flatMap((item, at) => textsOf(`${name}[${at}]`, item))
  const isTable =
    typeof value === 'object' && value !== null && Object.values(value).every(it => typeof it === 'string')
  return isTable ? Object.entries(value).flatMap(([key, item]) => textsOf(`${name}.${key}`, item)) : []
}

/** Names of statements with lists of values, which SQLite refuses. */
export const OF_POSTGRES: ReadonlySet<string> = new Set(['insertJobs', 'finishJobs'])

/** The statements of the store, by their names. {@link OF_POSTGRES} are not for SQLite. */
export const statements = modules
  .flatMap(module => Object.entries(module).flatMap(([name, value]) => textsOf(name, value)))
  .filter(([, text]) => /^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(text))

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
  ...(['jobs', 'job_records'] as const).flatMap(table =>
    (['endpoint_id', 'owner'] as const).flatMap(by => [listName(table, by), `placeOf ${listName(table, by)}`]),
  ),
  'deliveries by endpoint_id',
  'deliveries by owner',
  'audit',
  'oldestRecords',
  'oldestFailedInputs',
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
  'jobHourOfOwner',
  'workerHourOfOwner',
])
