import type { Ports } from '../ports/ports.ts'
import { EndpointModels } from '../services/models/endpoint-models.ts'
import { FailedStarts } from '../services/workers/failed-starts.ts'
import { Fleet } from '../services/workers/fleet.ts'
import { Freezing } from '../services/workers/freezing.ts'
import { JobStops } from '../services/workers/job-stops.ts'
import { LostJobs } from '../services/workers/lost-jobs.ts'
import { Prestarts } from '../services/workers/prestarts.ts'
import { RunningWorkers } from '../services/workers/running-workers.ts'
import { Takes } from '../services/workers/takes.ts'
import { UndeliveredResults } from '../services/workers/undelivered-results.ts'
import { WorkerCalls } from '../services/workers/worker-calls.ts'
import type { AuditServices } from './audit-services.ts'
import type { LateAddresses, Stopping } from './config.ts'
import type { JobServices } from './job-services.ts'

/** Workers: their processes and containers, what is known of them, and their calls. */
export interface WorkerServices {
  readonly running: RunningWorkers
  readonly models: EndpointModels
  readonly fleet: Fleet
  readonly freezing: Freezing
  readonly lostJobs: LostJobs
  readonly stops: JobStops
  readonly takes: Takes
  readonly calls: WorkerCalls
}

export function createWorkerServices(
  ports: Ports,
  { jobs, longPoll }: JobServices,
  { audit }: AuditServices,
  addresses: LateAddresses,
  signals: Stopping,
): WorkerServices {
  const running = new RunningWorkers(ports.clock)
  const undelivered = new UndeliveredResults(ports, jobs, running)
  const models = new EndpointModels(ports)
  const freezing = new Freezing(ports, running)
  const fleet = new Fleet(ports, { jobs, running, undelivered, models, freezing, audit }, addresses.current)
  const lostJobs = new LostJobs(ports, { jobs, fleet, running, undelivered })
  const stops = new JobStops(ports, { longPoll, running }, signals.closed)
  const prestarts = new Prestarts(ports, { fleet, running }, signals.closed)
  const failedStarts = new FailedStarts(ports, { jobs, fleet })
  const takes = new Takes(ports, { jobs, fleet, running, stops, lostJobs, prestarts }, signals)
  const calls = new WorkerCalls(ports, { jobs, fleet, running, stops, lostJobs, failedStarts })
  return { running, models, fleet, freezing, lostJobs, stops, takes, calls }
}
