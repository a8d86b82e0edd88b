/**
 * The settings of accounts: their limits, shared resources, calls, and records of jobs and changes.
 */
import { ACCOUNT_LIMITS, type AccountLimitName, MAX_LIMIT } from '../core/accounts/quotas.ts'
import { type RateWindow, readWindows, WINDOWS_PROBLEM } from '../core/accounts/rate-limit.ts'
import { ARTIFACT_RULES } from '../core/apps/app.ts'
import { AUDIT_RULES } from '../core/audit/entry.ts'
import { JOB_RECORD_RULES } from '../core/jobs/job-record.ts'
import {
  checkedText,
  flag,
  many,
  megabytes,
  oneOf,
  type Setting,
  setting,
  type ValueKind,
  wholeNumber,
} from './setting.ts'

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS
const MEGABYTE = 1024 * 1024

/** The settings of the records that stay of jobs when their results are removed. */
export const JOB_RECORD_SETTINGS = {
  jobRecords: {
    keptMs: setting(
      '--history-days',
      '<number>',
      String(JOB_RECORD_RULES.keptMs / DAY_MS),
      wholeNumber(0, 400, DAY_MS),
      'how long records of ended jobs are kept, for lists and replay; 0 for none',
    ),
    maxRecords: setting(
      '--history-jobs',
      '<number>',
      String(JOB_RECORD_RULES.maxRecords),
      wholeNumber(1, 100_000_000),
      'maximum records of ended jobs of an account; the oldest go first',
    ),
    maxBytes: setting(
      '--history-mb',
      '<megabytes>',
      String(JOB_RECORD_RULES.maxBytes / MEGABYTE),
      megabytes(1, 10_000_000),
      'maximum size of the records of an account',
    ),
    failedInputsKeptMs: setting(
      '--failed-input-hours',
      '<number>',
      String(JOB_RECORD_RULES.failedInputsKeptMs / HOUR_MS),
      wholeNumber(0, 9_600, HOUR_MS),
      'time that records of failed jobs keep their inputs, for replay; 0 for none',
    ),
    failedInputsMaxBytes: setting(
      '--failed-input-mb',
      '<megabytes>',
      String(JOB_RECORD_RULES.failedInputsMaxBytes / MEGABYTE),
      megabytes(1, 1_000_000),
      'maximum size of these inputs of an account; the oldest go first',
    ),
    payloads: flag('--keep-payloads', 'keep inputs and outputs of jobs in their records, too'),
  },
}

/** The settings of the audit log. */
export const AUDIT_SETTINGS = {
  audit: {
    keptMs: setting(
      '--audit-retention',
      '<days>',
      String(AUDIT_RULES.keptMs / DAY_MS),
      wholeNumber(1, 36_500, DAY_MS),
      'how long entries of the audit log are kept',
    ),
    maxEntries: setting(
      '--audit-entries',
      '<number>',
      String(AUDIT_RULES.maxEntries),
      wholeNumber(1_000, 1_000_000_000),
      'maximum entries of the audit log; the oldest go first',
    ),
  },
}

/** The settings of the default limits of accounts other than the operator's. */
export const QUOTA_SETTINGS = {
  accountLimits: {
    objects: limit('objects', 'objects', '<count>', 'objects of each kind, such as endpoints and secrets'),
    workersMin: limit('workersMin', 'workers-min', '<count>', 'workersMin of all its endpoints together'),
    workers: limit('workers', 'workers', '<count>', 'workers at once'),
    gpus: limit('gpus', 'gpus', '<count>', 'GPUs at once'),
    queuedJobs: limit('queuedJobs', 'queued-jobs', '<count>', 'waiting jobs'),
    queuedMb: limit('queuedMb', 'queued-mb', '<megabytes>', 'inputs of waiting jobs'),
    storedMb: limit('storedMb', 'stored-mb', '<megabytes>', 'inputs, outputs and chunks that are kept'),
    secretsMb: limit('secretsMb', 'secrets-mb', '<megabytes>', 'secrets, as they are stored'),
    buildsMb: limit('buildsMb', 'builds-mb', '<megabytes>', 'archives of builds of apps'),
    logsMb: limit('logsMb', 'logs-mb', '<megabytes>', 'output of its workers on the disk'),
  },
}

/** The settings of archives of apps. */
export const ARTIFACT_SETTINGS = {
  artifacts: {
    maxBytes: setting(
      '--max-build-mb',
      '<megabytes>',
      String(ARTIFACT_RULES.maxBytes / MEGABYTE),
      megabytes(1, 100_000),
      'maximum size of the archive of a build of an app',
    ),
    maxUnpackedBytes: setting(
      '--max-unpacked-build-mb',
      '<megabytes>',
      String(ARTIFACT_RULES.maxUnpackedBytes / MEGABYTE),
      megabytes(1, 1_000_000),
      'maximum size of such an archive when it is unpacked',
    ),
  },
}

/** Null for no limit. */
function limit(name: AccountLimitName, option: string, argument: string, what: string): Setting<number | null> {
  const fallback = ACCOUNT_LIMITS[name] === null ? 'off' : String(ACCOUNT_LIMITS[name])
  const help = `limit of each account besides the operator's: ${what}; off for no limit`
  return setting(`--account-${option}`, argument, fallback, numberOrOff(), help)
}

function numberOrOff(): ValueKind<number | null> {
  return {
    check: text =>
      text === 'off' || (/^\d{1,10}$/.test(text) && Number(text) <= MAX_LIMIT)
        ? null
        : `must be off or a whole number up to ${MAX_LIMIT}`,
    parse: text => (text === 'off' ? null : Number(text)),
  }
}

/** The settings of a server that several accounts share. */
export const SHARING_SETTINGS = {
  processes: setting(
    '--processes',
    '<auto|off>',
    'auto',
    oneOf(['auto', 'off']),
    'whether folders that the server was started with run as processes; off leaves containers alone',
  ),
  acceptSharedHost: flag(
    '--accept-shared-host',
    'allow a second account although workers are not isolated from each other and the server',
  ),
  webhookPrivate: setting(
    '--webhook-private',
    '<auto|on|off>',
    'auto',
    oneOf(['auto', 'on', 'off']),
    "whether webhooks go to private addresses; auto: those of the operator's account",
  ),
  privateRegistries: many(
    '--private-registry',
    '<host[:port]>',
    checkedText(registryProblem),
    'registry without a public address whose images every account may run; may be repeated',
    ',',
  ),
}

function registryProblem(text: string): string | null {
  const isHost = /^(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/.test(text)
  return isHost ? null : 'must be a host, with a port or without, such as registry.lan:5000'
}

const RATE_WINDOWS: ValueKind<readonly RateWindow[]> = {
  check: text => (readWindows(text) === null ? WINDOWS_PROBLEM : null),
  parse: text => readWindows(text) ?? [],
}

/** The settings of the management API and the job operations. */
export const MANAGEMENT_SETTINGS = {
  rateWindows: setting(
    '--rate-limits',
    '<windows>',
    'minute=1200,hour=36000,day=500000',
    RATE_WINDOWS,
    'REST requests that an account may make in each window, or off',
  ),
  limitJobs: flag('--job-rate-limits', 'limit the calls of job operations per endpoint, as the hosted service does'),
  deleteRunningEndpoints: flag(
    '--delete-running-endpoints',
    'let GraphQL delete endpoints whose workersMin or workersMax is not 0, as REST does',
  ),
}
