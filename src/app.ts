import { uploadSurface } from './api/apps/uploads.ts'
import { BodyRoom } from './api/body.ts'
import { consoleSurface } from './api/console/surface.ts'
import { CorsOrigins } from './api/cors.ts'
import { graphqlSurface } from './api/graphql/surface.ts'
import { jobSurface } from './api/jobs/routes.ts'
import { openAiSurface } from './api/openai/routes.ts'
import { opsSurface } from './api/ops/surface.ts'
import type { ApiParts } from './api/parts.ts'
import { absentRoutes } from './api/rest/routes/absent.ts'
import { restRoutes } from './api/rest/routes.ts'
import { restSurface } from './api/rest/surface.ts'
import { V1_ERRORS, v1Routes } from './api/rest-v1/routes.ts'
import { s3Surface } from './api/s3/surface.ts'
import { type Fetch, SURFACE_NAMES, type Surface, type SurfaceName } from './api/surface.ts'
import { dispatch } from './api/surfaces.ts'
import { workerSurface } from './api/worker/routes.ts'
import { type AppAddresses, type AppConfig, StopSignals } from './app/config.ts'
import { Loops } from './app/loops.ts'
import { type AppServices, createServices } from './app/services.ts'
import { drainAll, killAll, untilPassed } from './control/shutdown.ts'
import { SERVER_ORIGIN } from './core/audit/entry.ts'
import type { Endpoint } from './core/endpoints/endpoint.ts'
import { DEFAULT_OWNER, type EndpointId, type OwnerId } from './core/ids.ts'
import type { Entrance } from './gateway/entrance/route.ts'
import { BODY_BYTES as BALANCED_BYTES } from './gateway/proxy/forwarder.ts'
import type { RequestQueues } from './gateway/queue/request-queues.ts'
import type { Ports } from './ports/ports.ts'
import type { Targets, Traffic } from './ports/targets.ts'
import type { Access } from './services/accounts/access.ts'
import type { Keys } from './services/accounts/keys.ts'
import type { Sessions } from './services/accounts/sessions.ts'
import type { SharingGuard } from './services/accounts/sharing-guard.ts'
import type { AuditLog } from './services/audit/audit-log.ts'
import type { EndpointDomains } from './services/endpoints/endpoint-domains.ts'
import { ensureFolderEndpoint, type WorkerFolder } from './services/endpoints/folder-endpoints.ts'
import type { JobRecords } from './services/jobs/job-records.ts'
import type { LogFinder } from './services/observing/log-finder.ts'

/** The use cases that the code which starts the server calls itself. */
export interface Services {
  readonly access: Access
  readonly keys: Keys
  readonly sessions: Sessions
  readonly sharing: Pick<SharingGuard, 'problem'>
  /** The output of workers. */
  readonly logs: Pick<LogFinder, 'open'>
  readonly jobRecords: Pick<JobRecords, 'find'>
  /** The domains of endpoints, to be loaded before requests arrive. */
  readonly domains: Pick<EndpointDomains, 'find' | 'load'>
  /** Changes that the server itself makes. */
  readonly audit: Pick<AuditLog, 'ofServer'>
  /** The endpoint of a handler's folder, created if it does not exist; see {@link ensureFolderEndpoint}. */
  readonly folderEndpoint: (folder: WorkerFolder) => Promise<Endpoint>
  /** Replaces the workers of an endpoint. */
  readonly restart: (owner: OwnerId, id: EndpointId, replacesAtOnce: boolean) => Promise<Endpoint>
}

/** The whole control plane: the same in production, in tests and under the simulator's clock. */
export interface App {
  /** A function over the given surfaces; all of them by default. */
  fetch(offered?: readonly SurfaceName[]): Fetch
  /** The entrance to load-balancing endpoints, for listeners. */
  readonly entrance: Entrance
  readonly services: Services
  /** Lets load-balanced requests come to the threads that read HTTP, once the domains of endpoints are loaded. */
  beginThreads(): void
  /** The request queues, which all admitted requests of load-balancing endpoints pass. */
  readonly requestQueues: RequestQueues
  /** Adopts workers that an earlier run left and starts the loops. */
  start(): Promise<void>
  /**
   * Stops in order: no new work, held requests answered, workers drained for at most the configured time, their
   * unfinished jobs given back, remaining requests of load-balancing endpoints ended. `hurry` ends the draining at
   * once.
   */
  stop(hurry: AbortSignal): Promise<void>
  /**
   * Stops as {@link stop} does, but leaves all workers and their jobs to the next server; load-balanced requests may
   * finish for `forMs`.
   */
  handOver(forMs: number, hurry: AbortSignal): Promise<void>
  /**
   * Marks responses to calls of workers as possibly lost.
   * @param agoMs time since the first of them
   */
  answersLost(agoMs: number): void
  /** Stops the loops and nothing else; workers continue and the next start adopts them. */
  abandon(): Promise<void>
}

/** Maximum time in which open calls of webhooks end when the server stops. */
const DISPATCH_END_MS = 2_000

/**
 * The only wiring: ports in, surfaces and loops out. Each group of services is made of the groups above it.
 * @param requests counter of requests of load-balancing endpoints, which gets news of workers; the request queues of
 * the result by default
 */
export function createApp(given: Ports, config: AppConfig, addresses: AppAddresses, requests?: Targets & Traffic): App {
  const signals = new StopSignals()
  const services = createServices(given, config, addresses, signals, requests)
  const { ports, access, audit, fleet, balancing, requestQueues, gateway, recorders } = services
  const loops = new Loops(services, config)
  const parts = createApiParts(services, config, addresses, signals)
  const surfaces = createSurfaces(parts)
  const cors = new CorsOrigins(config.corsOrigins ?? [], id => services.cachedEndpoints.corsOrigins(id), ports.emit)

  const abandon = () => {
    signals.finish()
    services.closeGateway()
    return loops.stop()
  }
  const settleDown = async () => {
    const recorded = Object.values(recorders).map(recorder => recorder.flush())
    await Promise.all([loops.stopDispatching(DISPATCH_END_MS), access.saveCounts(), ...recorded])
    await abandon()
  }
  return {
    fetch: (offered = SURFACE_NAMES) => dispatch(parts, surfaces, new Set(offered), cors),
    entrance: gateway,
    services: { ...services, ...changesOfServer(services) },
    requestQueues,
    beginThreads: () => services.beginThreads(services.domains),
    async start() {
      await services.accounts.ensureOperator()
      await audit.endForgotten()
      await audit.ofServer('startServer', null, { version: config.version ?? 'unknown', ...config.settings })
      await fleet.adoptAll()
      loops.start()
    },
    async stop(hurry) {
      signals.begin()
      requestQueues.close()
      await loops.stopAutoscaling()
      await drainAll(ports, { fleet, balancing }, config.drainTimeoutMs, hurry)
      // The reaper would record workers that are killed now as lost.
      await loops.stopReaping()
      await killAll(ports, fleet, hurry)
      await settleDown()
    },
    async handOver(forMs, hurry) {
      signals.begin()
      requestQueues.close()
      await Promise.all([loops.stopAutoscaling(), loops.stopReaping()])
      await untilPassed(ports, () => gateway.isBusy, forMs, hurry)
      await settleDown()
    },
    answersLost: agoMs => services.running.doubtSince(ports.clock.monotonic() - agoMs),
    abandon,
  }
}

/** Changes that the server makes by itself, with an entry in the audit log. */
function changesOfServer(services: AppServices): Pick<Services, 'restart' | 'folderEndpoint'> {
  const { ports, audit, endpoints } = services
  return {
    restart: (owner, id, replacesAtOnce) => {
      const asked = { surface: 'server', operation: 'restartEndpoint', object: { kind: 'endpoint', id } } as const
      const restart = () => endpoints.restart(owner, id, replacesAtOnce)
      return audit.change({ ...asked, origin: { ...SERVER_ORIGIN, account: owner } }, restart)
    },
    folderEndpoint: folder => {
      const origin = { ...SERVER_ORIGIN, account: DEFAULT_OWNER }
      const asked = { surface: 'server', operation: 'serveFolder', origin, object: null } as const
      const ensure = () => ensureFolderEndpoint({ ...ports, ...services }, DEFAULT_OWNER, folder)
      return audit.change({ ...asked, detail: { folder: folder.path } }, ensure, {
        objectFromResult: ({ id }) => ({ kind: 'endpoint', id }),
      })
    },
  }
}

const BODY_BYTES = 256 * 1024 * 1024

/** Services, settings and rooms for bodies, as the surfaces use them. */
function createApiParts(
  services: AppServices,
  config: AppConfig,
  addresses: AppAddresses,
  { stopping }: StopSignals,
): ApiParts {
  const { clock, spill } = services.ports
  const { bodyBytes: maxBytes = BODY_BYTES, metricsPublic = false, version = 'unknown', status, backups } = config
  // Clients and workers have a room each, so that neither side can fill the room of the other.
  const room = new BodyRoom({ maxBytes, clock, spill: null })
  // A worker drops a result that is refused three times.
  const resultRoom = new BodyRoom({ maxBytes, clock, spill })
  return {
    ...services,
    room,
    resultRoom,
    balancedBodyBytes: config.balancedBodyBytes ?? BALANCED_BYTES,
    addresses,
    stopping,
    metricsPublic,
    version,
    status,
    backups,
  }
}

function createSurfaces(parts: ApiParts): Readonly<Record<SurfaceName, Surface>> {
  const { clock, emit } = parts.ports
  return {
    rest: restSurface(parts, [...absentRoutes(parts), ...restRoutes(parts)]),
    restV1: restSurface(parts, v1Routes(parts), V1_ERRORS),
    graphql: graphqlSurface(parts),
    jobs: jobSurface(parts),
    openai: openAiSurface(parts),
    worker: workerSurface(parts),
    uploads: uploadSurface(parts),
    ops: opsSurface(parts),
    s3: s3Surface({ keys: parts.s3Keys, access: parts.access, files: parts.files, room: parts.room, clock, emit }),
    console: consoleSurface(parts),
  }
}
