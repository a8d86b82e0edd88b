import { JOB_RECORD_RULES, type JobRecordRules } from '../core/jobs/job-record.ts'
import type { Ports } from '../ports/ports.ts'
import { AccountJobs } from '../services/jobs/account-jobs.ts'
import { Batches } from '../services/jobs/batches.ts'
import { JobRecords } from '../services/jobs/job-records.ts'
import { Jobs } from '../services/jobs/jobs.ts'
import { Streams } from '../services/jobs/streams.ts'
import { Webhooks } from '../services/jobs/webhooks.ts'
import { LongPoll } from '../services/long-poll.ts'
import type { AccountServices } from './account-services.ts'
import type { AppConfig } from './config.ts'

/** Jobs of queue endpoints, and how clients hear of them. */
export interface JobServices {
  readonly longPoll: LongPoll
  readonly jobs: Jobs
  readonly jobRecords: JobRecords
  readonly accountJobs: AccountJobs
  readonly recordRules: JobRecordRules
  readonly batches: Batches
  readonly streams: Streams
  readonly webhooks: Webhooks
}

export function createJobServices(ports: Ports, config: AppConfig, { quotas, sharing }: AccountServices): JobServices {
  const recordRules = { ...JOB_RECORD_RULES, ...config.jobRecords }
  const longPoll = new LongPoll(ports.clock, ports.notifier)
  const jobs = new Jobs(ports, longPoll, quotas, recordRules)
  return {
    longPoll,
    jobs,
    jobRecords: new JobRecords(ports, jobs, recordRules),
    accountJobs: new AccountJobs(ports, recordRules),
    recordRules,
    batches: new Batches(ports, jobs, quotas),
    streams: new Streams(ports, { jobs, longPoll }),
    webhooks: new Webhooks(ports, jobs, sharing),
  }
}
