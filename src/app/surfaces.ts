import { BodyRoom } from '../api/body.ts'
import { type ConsoleParts, consoleSurface } from '../api/console/surface.ts'
import { graphqlSurface } from '../api/graphql/surface.ts'
import { jobSurface } from '../api/jobs/routes.ts'
import { openAiSurface } from '../api/openai/routes.ts'
import { opsSurface } from '../api/ops/surface.ts'
import { absentRoutes } from '../api/rest/routes/absent.ts'
import { restRoutes } from '../api/rest/routes.ts'
import { restSurface } from '../api/rest/surface.ts'
import { V1_ERRORS, v1Routes } from '../api/rest-v1/routes.ts'
import type { Surface, SurfaceName } from '../api/surface.ts'
import { workerSurface } from '../api/worker/routes.ts'
import type { Ports } from '../ports/ports.ts'
import type { AccountServices } from './account-services.ts'
import type { AuditServices } from './audit-services.ts'
import type { BalancingServices } from './balancing-services.ts'
import type { AppConfig, LateAddresses, Stopping } from './config.ts'
import type { EndpointServices, ResourceServices } from './endpoint-services.ts'
import type { JobServices } from './job-services.ts'
import type { ObservingServices } from './observing-services.ts'
import type { WorkerServices } from './worker-services.ts'

/** The services that surfaces offer. */
export interface SurfaceServices {
  readonly accounts: AccountServices
  readonly jobs: JobServices
  readonly workers: WorkerServices
  readonly balancing: BalancingServices
  readonly resources: ResourceServices
  readonly observing: ObservingServices
  readonly endpoints: EndpointServices
  readonly auditing: AuditServices
}

/** Every surface by its name, and what the console is made of. */
export interface Surfaces {
  readonly byName: Readonly<Record<SurfaceName, Surface>>
  readonly consoleParts: ConsoleParts
}

const BODY_BYTES = 256 * 1024 * 1024

export function createSurfaces(
  ports: Ports,
  config: AppConfig,
  services: SurfaceServices,
  addresses: LateAddresses,
  { stopping }: Stopping,
): Surfaces {
  const { accounts, jobs, workers, balancing, resources, observing, endpoints, auditing } = services
  const { clock, store, vault, bodies, emit, spill, tracing, consoleFiles: files } = ports
  const { bodyBytes: maxBytes = BODY_BYTES, metricsPublic = false, version = 'unknown' } = config
  // Clients and workers have a room each, so that neither keeps the other out.
  const room = new BodyRoom({ maxBytes, clock, spill: null })
  // A worker throws a result away that is refused three times.
  const resultRoom = new BodyRoom({ maxBytes, clock, spill })
  const { audit, auditViews } = auditing
  const common = { access: accounts.access, emit, room, bodies, audit, auditViews }
  const routes = {
    ...accounts,
    ...resources,
    ...endpoints,
    ...observing,
    auditReading: auditing.auditReading,
    clock,
    stopping,
    addresses: addresses.current,
  }
  const asked = { ...common, ...jobs, endpoints: endpoints.known, clock, stopping, addresses: addresses.current }
  const consoleParts = { ...common, sessions: accounts.sessions, store, files, addresses: addresses.current, version }
  const byName = {
    rest: restSurface(common, [...absentRoutes(routes), ...restRoutes(routes)]),
    restV1: restSurface(common, v1Routes(routes), V1_ERRORS),
    graphql: graphqlSurface({ ...common, ...accounts, ...resources, ...endpoints, store }),
    jobs: jobSurface({
      ...asked,
      balancing: balancing.balancing,
      explaining: observing.explaining,
      stories: observing.stories,
    }),
    openai: openAiSurface(asked),
    worker: workerSurface({ ...workers, access: accounts.access, vault, tracing, emit, resultRoom }),
    ops: opsSurface({
      ...common,
      ...observing,
      accountJobs: jobs.accountJobs,
      endpoints: endpoints.known,
      models: resources.modelOperations,
      restarting: endpoints.endpoints,
      clock,
      stopping,
      metricsPublic,
      status: config.status,
      backups: config.backups,
    }),
    console: consoleSurface(consoleParts),
  }
  return { byName, consoleParts }
}
