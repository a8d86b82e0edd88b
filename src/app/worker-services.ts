import type { Ports } from '../ports/ports.ts'
import { LostJobs } from '../services/jobs/lost-jobs.ts'
import { UndeliveredResults } from '../services/jobs/undelivered-results.ts'
import { Fleet } from '../services/workers/fleet.ts'
import { WorkerActivities } from '../services/workers/worker-activity.ts'
import { WorkerCalls } from '../services/workers/worker-calls.ts'
import type { LateAddresses, Stopping } from './config.ts'
import type { JobServices } from './job-services.ts'

/** Workers: their processes and containers, what is known of them, and their calls. */
export interface WorkerServices {
  readonly fleet: Fleet
  readonly sightings: WorkerActivities
  readonly unsent: UndeliveredResults
  readonly lostJobs: LostJobs
  readonly calls: WorkerCalls
}

export function createWorkerServices(
  ports: Ports,
  { jobs, longPoll }: JobServices,
  addresses: LateAddresses,
  signals: Stopping,
): WorkerServices {
  const unsent = new UndeliveredResults(ports, jobs)
  const fleet = new Fleet(ports, jobs, unsent, addresses.current)
  const sightings = new WorkerActivities(ports.clock)
  const lostJobs = new LostJobs(ports, { jobs, fleet, sightings, unsent })
  const calls = new WorkerCalls(ports, { jobs, fleet, waiting: longPoll, sightings, lostJobs }, signals)
  return { fleet, sightings, unsent, lostJobs, calls }
}
