import type { Ports } from '../ports/ports.ts'
import { Batches } from '../services/jobs/batches.ts'
import { Jobs } from '../services/jobs/jobs.ts'
import { Streams } from '../services/jobs/streams.ts'
import { Webhooks } from '../services/jobs/webhooks.ts'
import { LongPoll } from '../services/long-poll.ts'
import type { AccountServices } from './account-services.ts'

/** Jobs of queue endpoints, and how clients hear of them. */
export interface JobServices {
  readonly longPoll: LongPoll
  readonly jobs: Jobs
  readonly batches: Batches
  readonly streams: Streams
  readonly webhooks: Webhooks
}

export function createJobServices(ports: Ports, { quotas, sharing }: AccountServices): JobServices {
  const longPoll = new LongPoll(ports.clock, ports.notifier)
  const jobs = new Jobs(ports, longPoll, quotas)
  return {
    longPoll,
    jobs,
    batches: new Batches(ports, jobs, quotas),
    streams: new Streams(ports, { jobs, longPoll }),
    webhooks: new Webhooks(ports, jobs, sharing),
  }
}
