import { Hono, type HonoRequest } from 'hono'
import type { Caller } from '../../core/accounts/permission.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import { type ExplanationView, explanationView } from '../../core/observing/explanation.ts'
import type { PageRequest } from '../../core/pages.ts'
import { audited } from '../audited.ts'
import type { ApiParts } from '../parts.ts'
import { heldFor, jsonText, refusalHeaders, reportFailure, type Surface, type SurfaceEnv } from '../surface.ts'
import { addAccountJobRoutes } from './account-jobs.ts'
import { addBackupRoute } from './backup.ts'
import { addClockRoutes } from './clock.ts'
import { logs } from './logs.ts'
import { addModelRoutes } from './models.ts'
import { addRoute, requireKeyFor } from './route-access.ts'
import { watchView } from './watch.ts'

/**
 * Server health, metrics and the routes of the command line: `/healthz`, `/readyz`, and those of route-access.ts,
 * which has the key that each of them needs.
 */
export function opsSurface(parts: ApiParts): Surface {
  const app = new Hono<{ Bindings: SurfaceEnv }>()
  const { access } = parts
  app.get('/healthz', () => jsonText('{"status":"ok"}'))
  app.get('/readyz', async () => {
    const problem = await parts.notReady()
    if (problem !== null) {
      return jsonText(JSON.stringify({ status: 'not ready', problem }), 503, { 'retry-after': '5' })
    }
    // The stored data can be read, so the server is ready; monitoring shows the rest.
    const notes = [parts.timeKeeper?.note() ?? null, parts.storeNote()].filter(note => note !== null)
    return jsonText(JSON.stringify({ status: 'ready', ...(notes.length === 0 ? {} : { note: notes.join('; ') }) }))
  })
  const metrics = async () => {
    const { contentType, text } = await parts.scraping.expose()
    return new Response(text, { headers: { 'content-type': contentType } })
  }
  if (parts.metricsPublic) app.get('/metrics', metrics)
  else addRoute(app, access, 'GET /metrics', metrics)
  const { status } = parts
  if (status !== undefined) {
    addRoute(app, access, 'GET /ops/status', async () => jsonText(JSON.stringify(await status())))
  }
  addRoute(app, access, 'GET /ops/why', async (call, caller) => {
    const { items, nextCursor } = await parts.explaining.page(caller.owner, pageRequest(call.req))
    const explanations = items.map(({ endpoint, explanation }) => ({
      kind: 'endpoint',
      id: endpoint.id,
      name: endpoint.name,
      ...explanationView(explanation, endpoint.id),
    }))
    return jsonText(JSON.stringify({ explanations, pagination: { nextCursor, hasNextPage: nextCursor !== null } }))
  })
  addRoute(app, access, 'GET /ops/why/:id', async (call, caller) => {
    return jsonText(JSON.stringify({ explanations: [await explain(parts, caller, call.req.param('id'))] }))
  })
  addRoute(app, access, 'GET /ops/locate/:id', async (call, caller) => {
    const found = await parts.logs.locate(caller.owner, call.req.param('id'))
    const endpointId = found.kind === 'endpoint' ? found.id : found.endpointId
    return jsonText(JSON.stringify({ kind: found.kind, id: found.id, endpointId }))
  })
  addRoute(app, access, 'POST /ops/restart/:id', async (call, caller) => {
    const id = call.req.param('id') as EndpointId
    const object = { kind: 'endpoint', id }
    const asked = { surface: 'ops', operation: 'restartEndpoint', caller, env: call.env, object } as const
    const { version } = await audited(parts, asked, () => parts.endpoints.restart(caller.owner, id))
    return jsonText(JSON.stringify({ id, version }))
  })
  addRoute(app, access, 'GET /ops/top', async (call, caller) => {
    const only = call.req.query('endpoint') ?? null
    return jsonText(JSON.stringify(await watchView(parts.workers, caller, only, parts.ports.clock.now())))
  })
  addRoute(app, access, 'GET /ops/logs/:id', async (call, caller) => {
    const held = () => heldFor(access, call.env, caller, whose => requireKeyFor(access, 'GET /ops/logs/:id', whose))
    return logs(parts, caller, { request: call.req.raw, env: call.env }, call.req.param('id'), held)
  })
  addAccountJobRoutes(app, parts)
  addModelRoutes(app, parts)
  const { timeKeeper } = parts
  if (timeKeeper !== null) addClockRoutes(app, parts, timeKeeper)
  const { backups } = parts
  if (backups !== undefined) addBackupRoute(app, parts, backups)
  app.notFound(call => {
    throw new AppError('not_found', `there is nothing at ${call.req.path}`)
  })
  app.onError((thrown, call) => {
    reportFailure(parts.ports.emit, 'ops', { request: call.req.raw, env: call.env }, thrown)
    const error = toAppError(thrown)
    return jsonText(JSON.stringify({ error: error.message }), error.status, refusalHeaders(error))
  })
  return async (request, env) => app.fetch(request, env)
}

/** Reads the requested page from the query. */
function pageRequest(request: HonoRequest): PageRequest {
  const limit = request.query('limit')
  return { cursor: request.query('cursor'), limit: limit === undefined ? undefined : Number(limit) }
}

async function explain(
  parts: ApiParts,
  caller: Caller,
  id: string,
): Promise<ExplanationView & { kind: string; id: string; name: string }> {
  const found = await parts.logs.locate(caller.owner, id)
  if (found.kind === 'job') {
    const { job, explanation } = await parts.explaining.job(found.endpointId, found.id)
    return { kind: 'job', id: job.id, name: job.status, ...explanationView(explanation, found.endpointId) }
  }
  const endpointId = found.kind === 'endpoint' ? found.id : found.endpointId
  const { endpoint, explanation } = await parts.explaining.endpoint(endpointId)
  return { kind: 'endpoint', id: endpoint.id, name: endpoint.name, ...explanationView(explanation, endpoint.id) }
}
