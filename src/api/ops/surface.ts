import { Hono, type HonoRequest } from 'hono'
import type { Caller } from '../../core/accounts/permission.ts'
import { READY_WORKERS } from '../../core/endpoints/ready-workers.ts'
import { AppError, invalidRequest, toAppError } from '../../core/errors.ts'
import { type EndpointId, isEndpointId } from '../../core/ids.ts'
import { batchView } from '../../core/jobs/batch.ts'
import { readJobListing } from '../../core/jobs/job-list.ts'
import { jobSummaryView } from '../../core/jobs/job-view.ts'
import { readJson } from '../../core/json/json-text.ts'
import { type ExplanationView, explanationView } from '../../core/observing/explanation.ts'
import type { PageRequest } from '../../core/pages.ts'
import { waitingCount } from '../../core/scaling/scale.ts'
import { passphraseProblem } from '../../core/secrets/passphrase.ts'
import type { Backups, BackupWish } from '../../ports/backups.ts'
import type { CachedModel, ModelDownload } from '../../ports/model-cache.ts'
import type { CachedEndpoints } from '../../services/cached-rows.ts'
import type { EndpointSelection } from '../../services/jobs/account-jobs.ts'
import { mapConcurrently } from '../../services/map-concurrently.ts'
import type { NumberedEvent } from '../../services/observing/recent-events.ts'
import type { TimeKeeper, TimeView } from '../../services/observing/server-time.ts'
import type { WatchedEndpoint, WorkerReader } from '../../services/observing/worker-reader.ts'
import { audited } from '../audited.ts'
import { bodyRequest } from '../body.ts'
import { clientVariables } from '../client-variables.ts'
import { deliveryListing, deliveryView } from '../jobs/webhooks.ts'
import type { ApiParts } from '../parts.ts'
import { endpointId as readEndpointId } from '../rest/routes/serverless.ts'
import { common } from '../rest/worker-view.ts'
import { heldFor, jsonText, refusalHeaders, reportFailure, type Surface, type SurfaceEnv } from '../surface.ts'
import { backupStream } from './backup-stream.ts'
import { logs } from './logs.ts'
import { addRoute, OPS_ROUTES, type OpsApp, requireKeyFor } from './route-access.ts'

/** Maximum number of endpoints that are looked up at the same time. */
const MAX_LOOKUPS = 16
/** Maximum body of a call for a backup, in bytes. */
const BACKUP_BODY_BYTES = 8_192

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
    const { items, nextCursor } = await parts.explaining.page(caller.owner, pageRequest(call.req), caller)
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
    const located = await parts.logs.locate(caller.owner, call.req.param('id'))
    const endpointId = located.kind === 'endpoint' ? located.id : located.endpointId
    return jsonText(JSON.stringify({ kind: located.kind, id: located.id, endpointId }))
  })
  addRoute(app, access, 'POST /ops/restart/:id', async (call, caller) => {
    const id = call.req.param('id') as EndpointId
    const object = { kind: 'endpoint', id }
    const entry = { surface: 'ops', operation: 'restartEndpoint', caller, env: call.env, object } as const
    const { version } = await audited(parts, entry, () => parts.endpoints.restart(caller.owner, id))
    return jsonText(JSON.stringify({ id, version }))
  })
  addRoute(app, access, 'GET /ops/top', async (call, caller) => {
    const only = call.req.query('endpoint') ?? null
    return jsonText(JSON.stringify(await watchView(parts.workers, caller, only, parts.ports.clock.now())))
  })
  addRoute(app, access, 'GET /ops/events', async (call, caller) => eventList(parts, caller, call.req))
  addRoute(app, access, 'GET /ops/ready-workers', async () => {
    const workers = Object.entries(READY_WORKERS).map(([name, worker]) => ({ name, ...worker }))
    return jsonText(JSON.stringify({ workers }))
  })
  addRoute(app, access, 'GET /ops/client', async () => {
    const { addresses } = parts
    return jsonText(JSON.stringify({ variables: clientVariables(addresses, addresses.clientTrust ?? null) }))
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

/** The kept events of the account, newest first: of one endpoint and of one kind, if the query names them. */
async function eventList({ feed, endpoints }: ApiParts, caller: Caller, request: HonoRequest): Promise<Response> {
  const { endpoint, kind = null } = request.query()
  const endpointId = endpoint === undefined ? null : (await endpoints.find(caller.owner, readEndpointId(endpoint))).id
  const { items, nextCursor } = feed.list(caller.owner, { endpointId, kind }, pageRequest(request))
  const pagination = { nextCursor, hasNextPage: nextCursor !== null }
  return jsonText(JSON.stringify({ events: items.map(eventView), pagination }))
}

function eventView({ id, type, atMs, endpointId, fields }: NumberedEvent) {
  return { id, type, at: new Date(atMs).toISOString(), endpointId, fields }
}

async function explain(
  parts: ApiParts,
  caller: Caller,
  id: string,
): Promise<ExplanationView & { kind: string; id: string; name: string }> {
  const located = await parts.logs.locate(caller.owner, id)
  if (located.kind === 'job') {
    const { job, explanation } = await parts.explaining.job(located.endpointId, located.id, caller)
    return { kind: 'job', id: job.id, name: job.status, ...explanationView(explanation, located.endpointId) }
  }
  const endpointId = located.kind === 'endpoint' ? located.id : located.endpointId
  const { endpoint, explanation } = await parts.explaining.endpoint(endpointId, caller)
  return { kind: 'endpoint', id: endpoint.id, name: endpoint.name, ...explanationView(explanation, endpoint.id) }
}

/**
 * `GET /ops/clock`: the server's time and the machine's clock. `POST /ops/clock/accept`: the server takes the
 * time of the machine's clock.
 */
function addClockRoutes(app: OpsApp, parts: ApiParts, timeKeeper: TimeKeeper): void {
  const { access } = parts
  addRoute(app, access, 'GET /ops/clock', async () => clockAnswer(await timeKeeper.view()))
  addRoute(app, access, 'POST /ops/clock/accept', async (call, caller) => {
    const { operation } = OPS_ROUTES['POST /ops/clock/accept']
    const entry = { surface: 'ops', operation, caller, env: call.env, object: null } as const
    const accept = () => timeKeeper.accept()
    return clockAnswer(await audited(parts, entry, accept, { detailFromResult: ({ stepMs }) => ({ stepMs }) }))
  })
}

function clockAnswer({ nowMs, machineMs, stepMs, takenAtMs, heldUntilMs, note }: TimeView): Response {
  const at = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  const instants = { now: at(nowMs), machine: at(machineMs), takenAt: at(takenAtMs), heldUntil: at(heldUntilMs) }
  return jsonText(JSON.stringify({ ...instants, stepMs, note }))
}

/** `/ops/models`: the models on the machine, for the operator. */
function addModelRoutes(app: OpsApp, parts: ApiParts): void {
  const { access, modelOperations: models } = parts
  addRoute(app, access, 'GET /ops/models', async (_, caller) => {
    const { models: cached, downloads, usedBytes, limitBytes } = await models.content(caller)
    const shown = { models: cached.map(modelView), downloads: downloads.map(downloadView), usedBytes, limitBytes }
    return jsonText(JSON.stringify(shown))
  })
  addRoute(app, access, 'POST /ops/models/:owner/:name', async ({ req, env }, caller) => {
    const revision = req.query('revision')
    const text = `${req.param('owner')}/${req.param('name')}${revision === undefined ? '' : `:${revision}`}`
    const pull = () => models.pull(caller, text)
    const object = { kind: 'model', id: text }
    const entry = { surface: 'ops', operation: 'pullModel', caller, env, object } as const
    // Commands poll the progress.
    const { snapshot, receivedBytes, totalBytes } = await (models.isPulled(text) ? pull() : audited(parts, entry, pull))
    return jsonText(
      JSON.stringify({ done: snapshot !== null, commit: snapshot?.commit ?? null, receivedBytes, totalBytes }),
    )
  })
  addRoute(app, access, 'DELETE /ops/models/:owner/:name', async ({ req, env }, caller) => {
    const name = `${req.param('owner')}/${req.param('name')}`
    const commit = req.query('commit') ?? null
    const object = { kind: 'model', id: name }
    const entry = { surface: 'ops', operation: 'removeModel', caller, env, object, detail: { commit } } as const
    await audited(parts, entry, () => models.remove(caller, name, commit))
    return jsonText(JSON.stringify({ name }))
  })
}

function modelView({ name, commit, refs, bytes, usedAtMs, workers, isRestricted }: CachedModel) {
  const usedAt = usedAtMs === 0 ? null : new Date(usedAtMs).toISOString()
  return { name, commit, refs, bytes, usedAt, workers, restricted: isRestricted }
}

function downloadView({ name, revision, receivedBytes, totalBytes }: ModelDownload) {
  return { name, revision, receivedBytes, totalBytes }
}

/**
 * Data of `runyard top`: the caller's endpoints with their queues, workers and running jobs.
 * @param only the id of one endpoint; null for all of them
 * @throws AppError `not_found`
 */
async function watchView(workers: WorkerReader, caller: Caller, only: string | null, nowMs: number) {
  if (only !== null && !isEndpointId(only)) throw new AppError('not_found', `endpoint ${only} not found`)
  const { endpoints, more } = await workers.watch(caller.owner, only)
  return { atMs: nowMs, endpoints: endpoints.map(one => endpointView(one, nowMs)), more }
}

function endpointView({ endpoint, queue, finished, workers, counts, explanation }: WatchedEndpoint, nowMs: number) {
  const { id, name, type, workersMin, workersMax } = endpoint
  const { queuedLowPriority, inProgress, headQueuedAtMs } = queue
  return {
    id,
    name,
    type,
    workersMin,
    workersMax,
    finished,
    jobs: { inQueue: waitingCount(queue), lowPriority: queuedLowPriority, inProgress, headQueuedAtMs },
    summary: counts,
    explanation: explanation === null ? null : explanationView(explanation, id),
    workers: workers.map(({ jobs, ...worker }) => ({ ...common(worker, nowMs), status: worker.status, jobs })),
  }
}

/** `/ops/jobs`, `/ops/batches` and `/ops/webhooks`: those of all endpoints whose jobs the caller may read. */
function addAccountJobRoutes(app: OpsApp, parts: ApiParts): void {
  const { clock } = parts.ports
  const { access, accountJobs } = parts
  addRoute(app, access, 'GET /ops/jobs', async ({ req }, caller) => {
    const listing = readJobListing(req.query())
    if ('failures' in listing) throw invalidRequest(listing.failures)
    const { items, nextCursor } = await accountJobs.jobs(caller.owner, await readable(parts, caller), listing)
    const nowMs = clock.now()
    const requests = items.map(job => ({ endpointId: job.endpointId, ...jobSummaryView(job, nowMs) }))
    return jsonText(JSON.stringify({ requests, pagination: { nextCursor, hasNextPage: nextCursor !== null } }))
  })
  addRoute(app, access, 'GET /ops/batches', async ({ req }, caller) => {
    const { limit, cursor } = req.query()
    const listing = readJobListing({ limit, cursor })
    if ('failures' in listing) throw invalidRequest(listing.failures)
    const { items, nextCursor } = await accountJobs.batches(caller.owner, await readable(parts, caller), listing.page)
    const pagination = JSON.stringify({ nextCursor, hasNextPage: nextCursor !== null })
    return jsonText(`{"batches":[${items.map(batchView).join(',')}],"pagination":${pagination}}`)
  })
  addRoute(app, access, 'GET /ops/webhooks', async ({ req }, caller) => {
    const { state, page } = deliveryListing(req.query())
    const { items, nextCursor } = await accountJobs.deliveries(caller.owner, await readable(parts, caller), state, page)
    const deliveries = items.map(one => ({ endpointId: one.endpointId, jobId: one.jobId, ...deliveryView(one) }))
    return jsonText(JSON.stringify({ deliveries, pagination: { nextCursor, hasNextPage: nextCursor !== null } }))
  })
}

/**
 * The endpoints whose jobs the caller may read; null for all of its account. An endpoint that its key names may have
 * been deleted.
 */
async function readable({ access, cachedEndpoints }: ApiParts, caller: Caller): Promise<EndpointSelection> {
  const named = access.requireSomeJobs(caller)
  if (named === null) return null
  const readableIds = await mapConcurrently(named, MAX_LOOKUPS, id => ownOrNull(cachedEndpoints, caller, id))
  return readableIds.filter(id => id !== null)
}

async function ownOrNull(endpoints: CachedEndpoints, { owner }: Caller, id: EndpointId): Promise<EndpointId | null> {
  try {
    return (await endpoints.find(owner, id)).id
  } catch (error) {
    if (toAppError(error).code === 'not_found') return null
    throw error
  }
}

/** `POST /ops/backup`: a backup of the server as it is now, as the body of the response. */
function addBackupRoute(app: OpsApp, parts: ApiParts, backups: Backups): void {
  const { clock } = parts.ports
  const { access, room } = parts
  const { operation } = OPS_ROUTES['POST /ops/backup']
  addRoute(app, access, 'POST /ops/backup', async (call, caller) => {
    const wish = await room.of(caller.owner).body(bodyRequest(call), BACKUP_BODY_BYTES, async body => readWish(body))
    // With the keys of the backup a caller could continue after its own key has expired.
    const mayHave = (whose: Caller) => {
      if (wish.passphrase === null) access.requireOperator(whose, operation)
      else access.requireLastingOperator(whose, operation, call.env.session !== undefined)
    }
    mayHave(caller)
    const detail = { withKeys: wish.passphrase !== null, withLogs: wish.withLogs }
    const entry = { surface: 'ops', operation, caller, env: call.env, object: null, detail } as const
    const ended = heldFor(access, call.env, caller, mayHave)
    const backup = await audited(parts, entry, () => backups.make(wish))
    call.env.delivery.onSettled(() => void backup.drop())
    if (ended.aborted) {
      await backup.drop()
      throw ended.reason
    }
    const body = backupStream(backup, clock, ended)
    return new Response(body, { headers: { 'content-type': 'application/octet-stream' } })
  })
}

function readWish(body: unknown): BackupWish {
  const reading = typeof body === 'string' ? readJson(body) : null
  const value: unknown = reading?.ok === true ? reading.value : null
  const { passphrase, withLogs = false, ...others } = Object(value) as Record<string, unknown>
  const isPassphrase = passphrase === null || typeof passphrase === 'string'
  if (!isPassphrase || typeof withLogs !== 'boolean' || Object.keys(others).length > 0) {
    throw new AppError(
      'invalid',
      'the body must be {"passphrase": "<text>", "withLogs": false}; with the passphrase null the keys are left out',
    )
  }
  const problem = passphrase === null ? null : passphraseProblem(passphrase)
  if (problem !== null) throw new AppError('invalid', `the passphrase ${problem}`)
  return { passphrase, withLogs }
}
