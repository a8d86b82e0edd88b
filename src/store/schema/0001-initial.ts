/**
 * The data model. Every table but that of the canary, that of the server's time and those of the audit log has the
 * owner of its rows; `docs/internals/schema.md` has a picture of it.
 */
import { accounts, apiKeys, consoleSessions, rateWindows } from './initial/accounts.ts'
import { alertMessages, alertReceivers, alerts } from './initial/alerts.ts'
import { appBuilds, appEndpoints, appEnvironments, apps, appUploads } from './initial/apps.ts'
import { auditAnchors, auditBegun, auditEntries } from './initial/audit.ts'
import { endpointCounters, endpointDomains, endpoints, endpointVolumes, releases } from './initial/endpoints.ts'
import {
  batches,
  batchRequests,
  chunks,
  diagnostics,
  idempotencyKeys,
  jobPayloads,
  jobRecordSizes,
  jobRecords,
  jobs,
  largeTextParts,
  largeTexts,
} from './initial/jobs.ts'
import { modelAliases, servedModels } from './initial/models.ts'
import { attemptTimes, metricBuckets } from './initial/observing.ts'
import { queueCounts } from './initial/queue-counts.ts'
import { keyCanaries, networkVolumes, registries, secrets, templates } from './initial/resources.ts'
import { serverClock } from './initial/server-clock.ts'
import { formerEndpoints, jobHours, tokenDays, workerHours } from './initial/usage.ts'
import { webhookDeliveries, webhookKeys, webhookTries } from './initial/webhooks.ts'
import { queuedWorkers, stops, workers } from './initial/workers.ts'
import type { Migration } from './migration.ts'

/** All tables of the first version. What refers to a table comes after it. */
export const initial: Migration = {
  version: 1,
  name: 'data model',
  statements: [
    accounts,
    rateWindows,
    keyCanaries,
    secrets,
    registries,
    networkVolumes,
    alertReceivers,
    alerts,
    alertMessages,
    apps,
    appBuilds,
    appEnvironments,
    appUploads,
    templates,
    endpoints,
    apiKeys,
    consoleSessions,
    endpointVolumes,
    appEndpoints,
    endpointDomains,
    modelAliases,
    servedModels,
    releases,
    endpointCounters,
    jobs,
    queueCounts,
    jobPayloads,
    jobRecords,
    jobRecordSizes,
    largeTexts,
    largeTextParts,
    chunks,
    diagnostics,
    idempotencyKeys,
    batches,
    batchRequests,
    queuedWorkers,
    workers,
    stops,
    webhookDeliveries,
    webhookTries,
    webhookKeys,
    jobHours,
    workerHours,
    tokenDays,
    formerEndpoints,
    metricBuckets,
    attemptTimes,
    auditEntries,
    auditBegun,
    auditAnchors,
    serverClock,
  ].flat(),
}
