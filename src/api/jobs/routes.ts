import type { Context } from 'hono'
import { Hono } from 'hono'
import type { Caller } from '../../core/accounts/permission.ts'
import { readAppTarget } from '../../core/apps/app.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, invalidRequest, notFound, toAppError } from '../../core/errors.ts'
import { type EndpointId, FLASH, isEndpointId, isJobId, type JobId } from '../../core/ids.ts'
import { isFinal, type Job } from '../../core/jobs/job.ts'
import type { LimitedOperation } from '../../core/jobs/job-limits.ts'
import { jobViewParts } from '../../core/jobs/job-view.ts'
import { JOB_TIMES } from '../../core/jobs/retention.ts'
import { readMilliseconds } from '../../core/jobs/submission.ts'
import { readTraceparent } from '../../core/jobs/trace-context.ts'
import { explanationView } from '../../core/observing/explanation.ts'
import { waitingCount } from '../../core/scaling/scale.ts'
import { readEndpointHealth, readWorkerMetrics } from '../../services/observing/endpoint-health.ts'
import { balancedUrl, notForBalanced } from '../addresses.ts'
import { audited, changedBy } from '../audited.ts'
import { largeText } from '../large-text.ts'
import type { ApiParts } from '../parts.ts'
import {
  admitTo,
  authenticatedCaller,
  heldFor,
  jsonText,
  refusalHeaders,
  reportFailure,
  type Surface,
  type SurfaceEnv,
} from '../surface.ts'
import { cancelBatch, deleteBatchRequest, finalizeBatch, listBatches, listBatchRequests, oneBatch } from './batches.ts'
import { changeMany, groupErrors, jobInput, jobStory, listRecords, oneRecord, replay } from './records.ts'
import { STREAM_HOLD_MS, stream } from './stream.ts'
import { withSubmission } from './submitted.ts'
import { listEndpointWebhooks, listWebhooks, sendWebhookAgain, webhookKey } from './webhooks.ts'

type Call = Context<{ Bindings: SurfaceEnv }>
/** @param held registers the request as open, as {@link heldFor} does */
type Operation = (parts: ApiParts, call: Call, endpoint: Endpoint, held: () => AbortSignal) => Promise<Response>

/** One operation: its path below `/v2/{endpoint_id}`, methods, required right, and types of endpoints. */
interface Route {
  readonly path: string
  readonly methods: readonly string[]
  /**
   * Required right on jobs (`by-method`: read for GET, write otherwise), or `management`: the right to write in
   * management.
   */
  readonly level: 'read' | 'write' | 'by-method' | 'management'
  readonly anyType?: true
  /** True when it changes something, unless the method only reads. */
  readonly changes?: true
  /**
   * The names of the operations that are in the audit log, by method. Submissions are not in it: they are in the
   * history of jobs, and would wait for two flushes more.
   */
  readonly audited?: Readonly<Record<string, string>>
  /** The rate limit that it counts towards. */
  readonly limit?: LimitedOperation
  readonly run: Operation
}

const ROUTES: readonly Route[] = [
  { path: '/run', methods: ['POST'], level: 'write', limit: 'run', run },
  { path: '/runsync', methods: ['POST'], level: 'write', limit: 'runsync', run: runSync },
  { path: '/status/:job', methods: ['GET', 'POST'], level: 'read', limit: 'status', run: status },
  { path: '/status-sync/:job', methods: ['GET', 'POST'], level: 'read', limit: 'status', run: statusSync },
  // Whoever reads a stream takes its chunks away from others.
  { path: '/stream/:job', methods: ['GET', 'POST'], level: 'write', limit: 'stream', run: streamJob },
  {
    path: '/retry/:job',
    methods: ['POST'],
    level: 'write',
    changes: true,
    audited: { POST: 'retryJob' },
    run: retry,
  },
  {
    path: '/purge-queue',
    methods: ['POST'],
    level: 'write',
    limit: 'purge-queue',
    changes: true,
    audited: { POST: 'purgeQueue' },
    run: purge,
  },
  {
    path: '/cancel/:job',
    methods: ['POST'],
    level: 'write',
    limit: 'cancel',
    changes: true,
    audited: { POST: 'cancelJob' },
    run: cancel,
  },
  { path: '/requests', methods: ['GET'], level: 'read', limit: 'requests', run: listRecords },
  ...(['cancel', 'retry'] as const).map(
    (change): Route => ({
      path: `/requests/${change}`,
      methods: ['POST'],
      level: 'write',
      limit: 'requests',
      changes: true,
      audited: { POST: `${change}Jobs` },
      run: (parts, call, endpoint) => changeMany(parts, call, endpoint, change),
    }),
  ),
  {
    path: '/requests/:job',
    methods: ['GET', 'DELETE'],
    level: 'by-method',
    limit: 'requests',
    changes: true,
    audited: { DELETE: 'deleteJobRecord' },
    run: recordOperation(oneRecord),
  },
  {
    path: '/requests/:job/input',
    methods: ['GET'],
    level: 'read',
    limit: 'requests',
    run: (parts, call, endpoint, held) => jobInput(parts, call, endpoint, jobParameter(call), held),
  },
  { path: '/requests/:job/story', methods: ['GET'], level: 'read', limit: 'requests', run: recordOperation(jobStory) },
  { path: '/requests/:job/replay', methods: ['POST'], level: 'write', limit: 'run', run: recordOperation(replay) },
  {
    path: '/batch',
    methods: ['GET', 'POST'],
    level: 'by-method',
    changes: true,
    audited: { POST: 'createBatch' },
    run: batch(listBatches),
  },
  {
    path: '/batch/:batch',
    methods: ['GET', 'PUT'],
    level: 'by-method',
    changes: true,
    audited: { PUT: 'renameBatch' },
    run: batch(oneBatch),
  },
  {
    path: '/batch/:batch/requests',
    methods: ['GET', 'POST'],
    level: 'by-method',
    changes: true,
    run: batch(listBatchRequests),
  },
  {
    path: '/batch/:batch/requests/:job',
    methods: ['DELETE'],
    level: 'write',
    changes: true,
    audited: { DELETE: 'deleteBatchRequest' },
    run: batch(deleteBatchRequest),
  },
  {
    path: '/batch/:batch/finalize',
    methods: ['POST'],
    level: 'write',
    changes: true,
    audited: { POST: 'finalizeBatch' },
    run: batch(finalizeBatch),
  },
  {
    path: '/batch/:batch/cancel',
    methods: ['POST'],
    level: 'write',
    changes: true,
    audited: { POST: 'cancelBatch' },
    run: batch(cancelBatch),
  },
  { path: '/errors', methods: ['GET'], level: 'read', limit: 'requests', run: groupErrors },
  { path: '/webhooks', methods: ['GET'], level: 'read', limit: 'requests', run: listEndpointWebhooks },
  { path: '/webhooks/:job', methods: ['GET'], level: 'read', run: listJobWebhooks },
  {
    path: '/webhooks/:job/send',
    methods: ['POST'],
    level: 'write',
    limit: 'requests',
    changes: true,
    audited: { POST: 'sendWebhookAgain' },
    run: (parts, call, endpoint) => sendWebhookAgain(parts, endpoint, jobParameter(call)),
  },
  {
    path: '/webhook-key',
    methods: ['GET', 'POST'],
    level: 'management',
    changes: true,
    audited: { GET: 'getWebhookKey', POST: 'rotateWebhookKey' },
    run: webhookKey,
  },
  { path: '/health', methods: ['GET', 'POST'], level: 'read', anyType: true, run: health },
  { path: '/metrics', methods: ['GET'], level: 'read', anyType: true, run: metrics },
  { path: '/explain', methods: ['GET'], level: 'read', anyType: true, run: explainAll },
  { path: '/explain/:job', methods: ['GET'], level: 'read', run: explainOne },
]

/** Path below `/v2/{endpoint_id}` and methods of each job operation. */
export const JOB_ROUTES = ROUTES.map(({ path, methods, changes = false, audited = {} }) => ({
  path,
  methods,
  changes,
  audited,
}))

/**
 * The job operations of queue endpoints: `/v2/{endpoint_id}/...`, and `/v2/flash/...` for those that headers name.
 * Errors are `{"error": "<sentence>"}`. */
export function jobSurface(parts: ApiParts): Surface {
  const app = new Hono<{ Bindings: SurfaceEnv }>().basePath('/v2/:endpoint')
  for (const route of ROUTES) {
    app.on([...route.methods], route.path, call => answer(parts, call, route))
    app.all(route.path, call => {
      const message = `${route.path} takes ${route.methods.join(' or ')}, not ${call.req.method}`
      return refuse(parts, call, new AppError('method_not_allowed', message, { allow: route.methods }))
    })
  }
  app.notFound(call => refuse(parts, call, noSuchOperation(parts, call)))
  app.onError((error, call) => refuse(parts, call, error))
  return async (request, env) => app.fetch(request, env)
}

/** Paths of a load-balancing endpoint are not below `/v2`. */
function noSuchOperation({ addresses }: ApiParts, call: Call): AppError {
  const message = 'there is no such operation'
  const id = call.env.route.segments[2] ?? ''
  if (!isEndpointId(id)) return new AppError('not_found', message)
  const where = balancedUrl(addresses, id)
  return new AppError('not_found', `${message} of a queue; a load-balancing endpoint has its paths below ${where}`)
}

async function answer(parts: ApiParts, call: Call, route: Route): Promise<Response> {
  const caller = await authenticatedCaller(parts.access, call.req.raw, call.env)
  admitTo(call.env, caller.owner)
  const id = await findEndpointId(parts, call, caller)
  const endpoint = await parts.cachedEndpoints.find(caller.owner, id)
  const level =
    route.level === 'management' || call.req.query('ttl') !== undefined ? 'write' : accessLevel(call, route.level)
  const requireRight = (whose: Caller) => {
    if (route.level === 'management') parts.access.requireManagement(whose, 'write')
    else parts.access.requireJobs(whose, level, id)
  }
  requireRight(caller)
  if (level === 'write') await parts.liveEndpoints.requireRight(caller, endpoint)
  if (endpoint.type === 'LOAD_BALANCER' && route.anyType !== true) throw notForBalanced(parts.addresses, id)
  if (route.limit !== undefined) {
    call.env.delivery.onSettled(await parts.access.countJobs(caller, id, route.limit))
  }
  const run = () => route.run(parts, call, endpoint, () => heldFor(parts.access, call.env, caller, requireRight))
  const operation = auditedOperation(call, route)
  const answered = operation === null ? run() : inAuditLog(parts, call, { operation, caller, endpointId: id }, run)
  if (route.changes !== true || reads(call)) return answered
  const response = await answered
  emitChange(parts, call, { operation: route.path.slice(1), caller, endpointId: id })
  return response
}

/** A call that changes something. */
interface Changing {
  readonly operation: string
  readonly caller: Caller
  readonly endpointId: EndpointId
}

/** The endpoint that a path names by its id, or leaves to headers. @throws AppError `not_found`, `invalid` */
async function findEndpointId({ apps }: ApiParts, call: Call, { owner }: Caller): Promise<EndpointId> {
  const id = call.req.param('endpoint') ?? ''
  if (id === FLASH)
    return apps.target(
      owner,
      readAppTarget(name => call.req.header(name)),
    )
  if (!isEndpointId(id)) throw notFound('endpoint', id)
  return id
}

/** The name under which a call is in the audit log; null for one that is not. */
function auditedOperation(call: Call, { path, audited = {} }: Route): string | null {
  if (path === '/status/:job' && call.req.query('ttl') !== undefined) return 'setJobTtl'
  return audited[call.req.method === 'HEAD' ? 'GET' : call.req.method] ?? null
}

function inAuditLog(
  parts: ApiParts,
  call: Call,
  { operation, caller, endpointId: endpoint }: Changing,
  run: () => Promise<Response>,
): Promise<Response> {
  const { job, batch } = call.req.param() as Record<string, string>
  const object =
    job !== undefined
      ? { kind: 'job', id: job }
      : batch !== undefined
        ? { kind: 'batch', id: batch }
        : { kind: 'endpoint', id: endpoint }
  const detail = { endpoint, ...(operation === 'setJobTtl' ? { ttl: call.req.query('ttl') ?? '' } : {}) }
  return audited(parts, { surface: 'jobs', operation, caller, env: call.env, object, detail }, run)
}

/** Emits an event for a change to a job, a batch, or otherwise the endpoint. */
function emitChange({ ports: { emit } }: ApiParts, call: Call, { operation, caller, endpointId }: Changing): void {
  const object = call.req.param('job') ?? call.req.param('batch') ?? endpointId
  emit('change.made', { surface: 'jobs', operation, object, ...changedBy(caller, call.env) })
}

function accessLevel(call: Call, level: 'read' | 'write' | 'by-method'): 'read' | 'write' {
  if (level !== 'by-method') return level
  return reads(call) ? 'read' : 'write'
}

function reads(call: Call): boolean {
  return call.req.method === 'GET' || call.req.method === 'HEAD'
}

/** A batch operation. Writes take an Idempotency-Key and are refused while the server stops. */
function batch(
  operation: (parts: ApiParts, call: Call, endpoint: Endpoint, key: string | undefined) => Promise<Response>,
): Operation {
  return (parts, call, endpoint) => {
    if (!reads(call)) refuseWhenStopping(parts)
    return operation(parts, call, endpoint, idempotencyKey(call))
  }
}

/** An operation on one job, whose result may be gone. */
function recordOperation(
  operation: (
    parts: ApiParts,
    call: Call,
    endpoint: Endpoint,
    target: { readonly jobId: JobId; readonly key: string | undefined; readonly held: () => AbortSignal },
  ) => Promise<Response>,
): Operation {
  return (parts, call, endpoint, held) => {
    if (!reads(call)) refuseWhenStopping(parts)
    return operation(parts, call, endpoint, { jobId: jobParameter(call), key: idempotencyKey(call), held })
  }
}

async function run(parts: ApiParts, call: Call, endpoint: Endpoint, held: () => AbortSignal): Promise<Response> {
  const job = await withSubmission(parts, call, endpoint, { kind: 'run', held }, reading => {
    if ('failures' in reading) throw invalidRequest(reading.failures)
    refuseWhenStopping(parts)
    const origin = { kind: 'run', idempotencyKey: idempotencyKey(call), traceparent: readTrace(call) } as const
    return parts.jobs.submit(endpoint, reading.submission, origin)
  })
  return jsonText(JSON.stringify({ id: job.id, status: job.status }))
}

async function runSync(parts: ApiParts, call: Call, endpoint: Endpoint, held: () => AbortSignal): Promise<Response> {
  const wait = readMilliseconds('wait', call.req.query('wait'), JOB_TIMES.waitMs)
  const job = await withSubmission(parts, call, endpoint, { kind: 'runsync', held }, reading => {
    const failures = [...(typeof wait === 'string' ? [wait] : []), ...('failures' in reading ? reading.failures : [])]
    if (typeof wait === 'string' || 'failures' in reading) throw invalidRequest(failures)
    refuseWhenStopping(parts)
    const key = idempotencyKey(call)
    const asked = { kind: 'runsync', askedWaitMs: wait, idempotencyKey: key, awaitsEnd: true } as const
    return parts.jobs.submit(endpoint, reading.submission, { ...asked, traceparent: readTrace(call) })
  })
  const ended = held()
  const signals = [call.req.raw.signal, parts.stopping, ended]
  const latest = await parts.jobs.whenFinal(job, Number(wait ?? JOB_TIMES.waitMs.default), signals)
  ended.throwIfAborted()
  return jobText(parts, call, latest, () => ended)
}

async function status(parts: ApiParts, call: Call, endpoint: Endpoint, held: () => AbortSignal): Promise<Response> {
  const ttl = readMilliseconds('ttl', call.req.query('ttl'), JOB_TIMES.statusTtlMs)
  if (typeof ttl === 'string') throw invalidRequest([ttl])
  const id = jobParameter(call)
  const job = ttl === undefined ? await parts.jobs.find(endpoint.id, id) : await parts.jobs.setTtl(endpoint.id, id, ttl)
  return jobText(parts, call, job, held)
}

async function statusSync(parts: ApiParts, call: Call, endpoint: Endpoint, held: () => AbortSignal): Promise<Response> {
  const job = await parts.jobs.find(endpoint.id, jobParameter(call))
  const ended = held()
  const latest = await parts.jobs.whenFinal(job, readHoldMs(call), [call.req.raw.signal, parts.stopping, ended])
  ended.throwIfAborted()
  return jobText(parts, call, latest, () => ended)
}

/** A job for its client. A large output is read from the store as fast as the client takes it. */
async function jobText(parts: ApiParts, call: Call, job: Job, held: () => AbortSignal): Promise<Response> {
  const view = jobViewParts(job, parts.ports.clock.now())
  const texts = view.filter(part => typeof part === 'string')
  return texts.length === view.length
    ? jsonText(texts)
    : largeText(parts, call.env, view, { what: 'the result', ended: held() })
}

function streamJob(parts: ApiParts, call: Call, endpoint: Endpoint, held: () => AbortSignal): Promise<Response> {
  return stream(parts, call, endpoint, { jobId: jobParameter(call), holdMs: readHoldMs(call), ended: held() })
}

async function retry(parts: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const { id, status: state } = await parts.jobs.retry(endpoint.id, jobParameter(call))
  return jsonText(JSON.stringify({ id, status: state }))
}

async function purge(parts: ApiParts, _call: Call, endpoint: Endpoint): Promise<Response> {
  return jsonText(JSON.stringify({ removed: await parts.jobs.purge(endpoint.id), status: 'completed' }))
}

async function cancel(parts: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const id = jobParameter(call)
  await parts.jobs.cancel(endpoint.id, id)
  return jsonText(JSON.stringify({ id, status: 'CANCELLED' }))
}

function listJobWebhooks(parts: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  return listWebhooks(parts, endpoint, jobParameter(call))
}

async function health(parts: ApiParts, _call: Call, endpoint: Endpoint): Promise<Response> {
  return jsonText(JSON.stringify(await readEndpointHealth(parts.balancing, endpoint.id)))
}

async function metrics(parts: ApiParts, _call: Call, endpoint: Endpoint): Promise<Response> {
  return jsonText(JSON.stringify(await readWorkerMetrics(parts.balancing, endpoint.id)))
}

async function explainAll(parts: ApiParts, _call: Call, endpoint: Endpoint): Promise<Response> {
  const { explanation, snapshot } = await parts.explaining.endpoint(endpoint.id)
  const { queuedInBatches, inProgress } = snapshot.queue
  const workers = snapshot.workers.map(({ id, state, held }) => ({ id, state, jobs: held }))
  const jobs = { inQueue: waitingCount(snapshot.queue), ofBatches: queuedInBatches, inProgress }
  const view = explanationView(explanation, endpoint.id)
  return jsonText(JSON.stringify({ endpointId: endpoint.id, name: endpoint.name, ...view, jobs, workers }))
}

async function explainOne(parts: ApiParts, call: Call, endpoint: Endpoint): Promise<Response> {
  const { job, explanation } = await parts.explaining.job(endpoint.id, jobParameter(call))
  const { id, status: state } = job
  const view = explanationView(explanation, endpoint.id)
  return jsonText(JSON.stringify({ id, endpointId: endpoint.id, status: state, final: isFinal(state), ...view }))
}

function jobParameter(call: Call): JobId {
  const id = call.req.param('job') ?? ''
  if (!isJobId(id)) throw notFound('job', id)
  return id
}

/** The client's Idempotency-Key, if any. */
function idempotencyKey(call: Call): string | undefined {
  const key = call.req.header('idempotency-key')?.trim()
  if (key === undefined) return undefined
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key
  throw invalidRequest(['"Idempotency-Key" must have 1 to 255 visible ASCII characters'])
}

/** The context of the client's trace, if any. */
function readTrace(call: Call): string | null {
  return readTraceparent(call.req.header('traceparent'))
}

/** Length of the long poll of a stream or status-sync: `wait`, clamped, or the default. */
function readHoldMs(call: Call): number {
  const wait = readMilliseconds('wait', call.req.query('wait'), { min: 0, max: Number.MAX_SAFE_INTEGER })
  if (typeof wait === 'string') throw invalidRequest(['"wait" must be a whole number of milliseconds'])
  return Math.min(wait ?? STREAM_HOLD_MS, JOB_TIMES.waitMs.max)
}

function refuseWhenStopping(parts: ApiParts): void {
  if (!parts.stopping.aborted) return
  throw new AppError('unavailable', 'the server is stopping')
}

function refuse(parts: ApiParts, { req, env }: Call, thrown: unknown): Response {
  reportFailure(parts.ports.emit, 'jobs', { request: req.raw, env }, thrown)
  const error = toAppError(thrown)
  return jsonText(JSON.stringify({ error: error.message }), error.status, refusalHeaders(error))
}
