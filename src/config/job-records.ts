import { JOB_RECORD_RULES } from '../core/jobs/job-record.ts'
import { flag, megabytes, setting, wholeNumber } from './setting.ts'

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS
const MEGABYTE = 1024 * 1024

/** The settings of what is kept of jobs when their results are removed. */
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
