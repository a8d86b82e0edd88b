/** The settings about what one account may have. */

import { ACCOUNT_LIMITS, type AccountLimitName, type AccountLimits, MOST_LIMIT } from '../core/accounts/quotas.ts'
import { type Setting, setting } from './setting.ts'

/** What accounts may have. */
export interface QuotaConfig {
  /** Of each account beside the operator's that has no limits of its own. */
  readonly accountLimits: AccountLimits
}

/** By the names of their options, as SETTINGS has them. */
export const QUOTA_SETTINGS: Readonly<Record<string, Setting>> = {
  accountObjects: limit('objects', 'objects', '<count>', 'objects of each kind, as endpoints and secrets'),
  accountWorkersMin: limit('workersMin', 'workers-min', '<count>', 'workersMin of all its endpoints together'),
  accountWorkers: limit('workers', 'workers', '<count>', 'workers at once'),
  accountGpus: limit('gpus', 'gpus', '<count>', 'GPUs at once'),
  accountQueuedJobs: limit('queuedJobs', 'queued-jobs', '<count>', 'waiting jobs'),
  accountQueuedMb: limit('queuedMb', 'queued-mb', '<megabytes>', 'inputs of waiting jobs'),
  accountStoredMb: limit('storedMb', 'stored-mb', '<megabytes>', 'inputs, outputs and chunks that are kept'),
}

/** @param texts what was given for each of {@link QUOTA_SETTINGS} */
export function quotaConfig(texts: (name: string) => readonly string[]): QuotaConfig {
  const read = (name: string) => {
    const [text = 'off'] = texts(name)
    return text === 'off' ? null : Number(text)
  }
  return {
    accountLimits: {
      objects: read('accountObjects'),
      workersMin: read('accountWorkersMin'),
      workers: read('accountWorkers'),
      gpus: read('accountGpus'),
      queuedJobs: read('accountQueuedJobs'),
      queuedMb: read('accountQueuedMb'),
      storedMb: read('accountStoredMb'),
    },
  }
}

function limit(name: AccountLimitName, option: string, argument: string, what: string): Setting {
  const fallback = ACCOUNT_LIMITS[name] === null ? 'off' : String(ACCOUNT_LIMITS[name])
  const variable = `ACCOUNT_${option.replaceAll('-', '_').toUpperCase()}`
  const help = `most of one account beside the operator's: ${what}; off for no limit`
  return setting(`--account-${option}`, variable, argument, fallback, help, text =>
    text === 'off' || (/^\d{1,10}$/.test(text) && Number(text) <= MOST_LIMIT)
      ? null
      : `must be off or a whole number up to ${MOST_LIMIT}`,
  )
}
