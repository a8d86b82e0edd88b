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
import type { AppAddresses, AppConfig, StopSignals } from './config.ts'
import type { AppServices } from './services.ts'

/** Every surface by its name, and what the console is made of. */
export interface Surfaces {
  readonly byName: Readonly<Record<SurfaceName, Surface>>
  readonly consoleParts: ConsoleParts
}

const BODY_BYTES = 256 * 1024 * 1024

export function createSurfaces(
  services: AppServices,
  config: AppConfig,
  addresses: AppAddresses,
  { stopping }: StopSignals,
): Surfaces {
  const { ports, access, audit, auditViews, sessions, known, balancing, explaining, stories, streams } = services
  const { jobs, jobRecords, batches, webhooks } = services
  const { clock, store, vault, bodies, emit, spill, tracing, consoleFiles: files } = ports
  const { bodyBytes: maxBytes = BODY_BYTES, metricsPublic = false, version = 'unknown' } = config
  // Clients and workers have a room each, so that neither keeps the other out.
  const room = new BodyRoom({ maxBytes, clock, spill: null })
  // A worker throws a result away that is refused three times.
  const resultRoom = new BodyRoom({ maxBytes, clock, spill })
  const common = { access, emit, room, bodies, audit, auditViews }
  const routes = { ...services, clock, stopping, addresses }
  const calls = { ...common, jobs, batches, streams, webhooks, endpoints: known, clock, stopping, addresses }
  const consoleParts = { ...common, sessions, store, files, addresses, version }
  const { status, backups } = config
  const restarting = services.endpoints
  const ofServer = { models: services.modelOperations, restarting, metricsPublic, status, backups, clock, stopping }
  const byName = {
    rest: restSurface(common, [...absentRoutes(routes), ...restRoutes(routes)]),
    restV1: restSurface(common, v1Routes(routes), V1_ERRORS),
    graphql: graphqlSurface({ ...services, ...common, store }),
    jobs: jobSurface({ ...calls, jobRecords, balancing, explaining, stories }),
    openai: openAiSurface(calls),
    worker: workerSurface({ ...services, vault, tracing, emit, resultRoom }),
    ops: opsSurface({ ...services, ...common, ...ofServer, endpoints: known }),
    console: consoleSurface(consoleParts),
  }
  return { byName, consoleParts }
}
