/** Rights that the routes of the operator surface need. */
import type { Context, Hono } from 'hono'
import type { Caller } from '../../core/accounts/permission.ts'
import type { Access } from '../../services/accounts/access.ts'
import { admitTo, authenticatedCaller, type SurfaceEnv } from '../surface.ts'

/** The right that a route needs, and the name of its operation in the audit log. */
interface RouteAccess {
  /**
   * The right to read or change management of the own account, to read the jobs of one of its endpoints, to read the
   * metrics of the server, or all rights of the operator.
   */
  readonly needs: 'read' | 'write' | 'jobs' | 'metrics' | 'operator'
  readonly operation: string
}

/** The routes that need a key. No other one can be added by {@link addRoute}. */
export const OPS_ROUTES = {
  'GET /metrics': { needs: 'metrics', operation: 'readMetrics' },
  'GET /ops/status': { needs: 'metrics', operation: 'readStatus' },
  'GET /ops/why': { needs: 'read', operation: 'explainAll' },
  'GET /ops/why/:id': { needs: 'read', operation: 'explain' },
  'GET /ops/locate/:id': { needs: 'read', operation: 'locate' },
  'POST /ops/restart/:id': { needs: 'write', operation: 'restartEndpoint' },
  'GET /ops/top': { needs: 'read', operation: 'watchWorkers' },
  'GET /ops/jobs': { needs: 'jobs', operation: 'listAllJobs' },
  'GET /ops/batches': { needs: 'jobs', operation: 'listAllBatches' },
  'GET /ops/webhooks': { needs: 'jobs', operation: 'listAllWebhooks' },
  'GET /ops/events': { needs: 'read', operation: 'listEvents' },
  'GET /ops/ready-workers': { needs: 'read', operation: 'listReadyWorkers' },
  'GET /ops/logs/:id': { needs: 'read', operation: 'readLogs' },
  'GET /ops/client': { needs: 'read', operation: 'readClientVariables' },
  'GET /ops/models': { needs: 'operator', operation: 'listModels' },
  'POST /ops/models/:owner/:name': { needs: 'operator', operation: 'pullModel' },
  'DELETE /ops/models/:owner/:name': { needs: 'operator', operation: 'removeModel' },
  'GET /ops/clock': { needs: 'metrics', operation: 'readClock' },
  'POST /ops/clock/accept': { needs: 'operator', operation: 'acceptClock' },
  'POST /ops/backup': { needs: 'operator', operation: 'makeBackup' },
} as const satisfies Readonly<Record<string, RouteAccess>>

/** A route that needs a key: its method and its path. */
export type OpsRoute = keyof typeof OPS_ROUTES

/** The routes of the surface, to which others are added. */
export type OpsApp = Hono<{ Bindings: SurfaceEnv }>

type OpsCall<Route extends OpsRoute> = Context<
  { Bindings: SurfaceEnv },
  Route extends `${string} ${infer Path}` ? Path : string
>

/** Adds a route, whose handler gets callers with the key that it needs. */
export function addRoute<Route extends OpsRoute>(
  app: OpsApp,
  access: Access,
  route: Route,
  handle: (call: OpsCall<Route>, caller: Caller) => Promise<Response>,
): void {
  const [method, path] = route.split(' ') as [string, string]
  app.on(method, path, async call => {
    const caller = await authenticatedCaller(access, call.req.raw, call.env)
    admitTo(call.env, caller.owner)
    requireKeyFor(access, route, caller)
    return handle(call as unknown as OpsCall<Route>, caller)
  })
}

/** @throws AppError `forbidden` unless the caller has the key that a route needs */
export function requireKeyFor(access: Access, route: OpsRoute, caller: Caller): void {
  const { needs, operation }: RouteAccess = OPS_ROUTES[route]
  if (needs === 'operator') access.requireOperator(caller, operation)
  else if (needs === 'jobs') access.requireSomeJobs(caller)
  else if (needs === 'metrics') access.requireMetrics(caller, operation)
  else access.requireManagement(caller, needs)
}
