/** The services of a rig, for tests of functions that no surface has. */

import { NO_LIMITS } from '../../src/core/accounts/quotas.ts'
import { ARTIFACT_RULES } from '../../src/core/apps/app.ts'
import { PAUSE_RULES, PLACEMENT_RULES } from '../../src/core/placement/placement-input.ts'
import { FREEZE_RULES } from '../../src/core/scaling/frozen-plan.ts'
import { Access } from '../../src/services/accounts/access.ts'
import { Accounts } from '../../src/services/accounts/accounts.ts'
import { Keys } from '../../src/services/accounts/keys.ts'
import { Quotas } from '../../src/services/accounts/quotas.ts'
import { SharingGuard } from '../../src/services/accounts/sharing-guard.ts'
import { AppBuilds } from '../../src/services/apps/app-builds.ts'
import { AuditLog } from '../../src/services/audit/audit-log.ts'
import { EndpointDomains } from '../../src/services/endpoints/endpoint-domains.ts'
import { Endpoints } from '../../src/services/endpoints/endpoints.ts'
import { Releases } from '../../src/services/endpoints/releases.ts'
import { Templates } from '../../src/services/endpoints/templates.ts'
import { Volumes } from '../../src/services/endpoints/volumes.ts'
import { Jobs } from '../../src/services/jobs/jobs.ts'
import { LongPoll } from '../../src/services/long-poll.ts'
import { EndpointModels } from '../../src/services/models/endpoint-models.ts'
import { Registries } from '../../src/services/secrets/registries.ts'
import { Secrets } from '../../src/services/secrets/secrets.ts'
import { Fleet } from '../../src/services/workers/fleet.ts'
import { RunningWorkers } from '../../src/services/workers/running-workers.ts'
import { UndeliveredResults } from '../../src/services/workers/undelivered-results.ts'
import { WorkerFreezer } from '../../src/services/workers/worker-freezer.ts'
import { WorkerSuspender } from '../../src/services/workers/worker-suspender.ts'
import type { Rig } from './rig.ts'

export function servicesOf({ ports }: Rig) {
  const access = new Access(ports, [])
  const quotas = new Quotas(ports, NO_LIMITS)
  const jobs = new Jobs(ports, new LongPoll(ports), quotas)
  const running = new RunningWorkers(ports.clock)
  const undelivered = new UndeliveredResults(ports, jobs, running)
  const models = new EndpointModels(ports)
  const suspender = new WorkerSuspender(ports, FREEZE_RULES)
  const workerFreezer = new WorkerFreezer(ports, running, suspender, { ...PLACEMENT_RULES, ...PAUSE_RULES })
  const audit = new AuditLog(ports)
  const parts = {
    jobs,
    running,
    undelivered,
    models,
    workerFreezer,
    audit,
    appBuilds: new AppBuilds(ports, quotas, ARTIFACT_RULES),
  }
  const fleet = new Fleet(ports, parts, { workerUrl: '' })
  const endpoints = new Endpoints(ports, fleet, quotas, new EndpointDomains(ports))
  return {
    access,
    quotas,
    fleet,
    running,
    accounts: new Accounts(ports, new SharingGuard(ports), quotas),
    keys: new Keys(ports, access),
    endpoints,
    templates: new Templates(ports, quotas),
    registries: new Registries(ports, quotas),
    volumes: new Volumes(ports, quotas, 'network'),
    globalVolumes: new Volumes(ports, quotas, 'global'),
    releases: new Releases(ports, endpoints, fleet),
    secrets: new Secrets(ports, quotas),
  }
}
