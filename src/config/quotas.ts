import { ACCOUNT_LIMITS, type AccountLimitName, MAX_LIMIT } from '../core/accounts/quotas.ts'
import { type Setting, setting, type ValueKind } from './setting.ts'

/** The settings of what each account besides the operator's may have that has no limits of its own. */
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
    logsMb: limit('logsMb', 'logs-mb', '<megabytes>', 'output of its workers on the disk'),
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
