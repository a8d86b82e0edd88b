import { AppError, RETRY_UNAVAILABLE_S, toAppError } from '../../core/errors.ts'
import { type EndpointId, isEndpointId, isJobId, JOB_ID_END, type JobId } from '../../core/ids.ts'
import type { ClaimedJob } from '../../core/jobs/job.ts'
import type { ViewPart } from '../../core/jobs/job-view.ts'
import { JOINED_RESULTS, type JoinedResult, readJoinedResults } from '../../core/jobs/joined-results.ts'
import type { LargeText } from '../../core/jobs/large-text.ts'
import { CHUNK_BYTES, type DroppedBody, RESULT_BYTES } from '../../core/jobs/result.ts'
import { jobPlace } from '../../core/secrets/seals.ts'
import { MAX_COPIES, RELAY_HEADERS } from '../../core/workers/relay-headers.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { InvalidKeyError } from '../../services/accounts/failed-keys.ts'
import { largeText } from '../large-text.ts'
import type { ApiParts } from '../parts.ts'
import { admitTo, authorizationKey, jsonText, reportFailure, type Surface, type SurfaceEnv } from '../surface.ts'

/** Names of the calls, the first path segment below `/v2/{endpoint_id}`. */
export const WORKER_CALLS: ReadonlySet<string> = new Set([
  'job-take',
  'job-take-batch',
  'job-stop',
  'job-done',
  'job-done-batch',
  'job-stream',
  'ping',
])

const POSTS: ReadonlySet<string> = new Set(['job-done', 'job-done-batch', 'job-stream'])

/** Maximum number of jobs that one batch take gets. */
const MAX_BATCH = 100

/** A parsed call of a worker. */
interface Call {
  readonly request: Request
  readonly env: SurfaceEnv
  readonly endpointId: EndpointId
  readonly name: string
  readonly workerSegment: string
  readonly jobSegment: string
  readonly query: URLSearchParams
}

/**
 * The seven calls of the worker protocol. The token alone identifies the worker: old set-ups send placeholders in the
 * path, and parameters after a bare `&` (docs/internals/worker-protocol.md).
 */
export function workerSurface(parts: ApiParts): Surface {
  return async (request, env) => {
    const call = parse(request, env)
    const method = POSTS.has(call.name) ? 'POST' : 'GET'
    if (request.method !== method) return wrongMethod(call.name, method)
    try {
      const worker = await parts.calls.authenticate(authorizationKey(request), call.endpointId)
      admitTo(env, worker.owner)
      return await answer(parts, call, worker)
    } catch (error) {
      const isGuess = error instanceof InvalidKeyError && authorizationKey(request) !== null
      if (isGuess && env.address !== undefined) parts.access.failedKeys.failedToken(env.address())
      reportFailure(parts.ports.emit, 'worker', { request, env }, error)
      return refuse(call, error)
    }
  }
}

async function answer(parts: ApiParts, call: Call, worker: Worker): Promise<Response> {
  if (worker.state === 'EXITED' && !(await isPermitted(parts, call, worker))) {
    throw new AppError('unauthorized', 'this worker was ended')
  }
  switch (call.name) {
    case 'job-take':
      return take(parts, call, worker, null)
    case 'job-take-batch':
      return take(parts, call, worker, Number(call.query.get('batch_size') ?? 1))
    case 'job-stop':
      return stop(parts, call, worker)
    case 'job-done':
      return done(parts, call, worker)
    case 'job-done-batch':
      return doneJoined(parts, call, worker)
    case 'job-stream':
      return chunk(parts, call, worker)
    default:
      return ping(parts, call, worker)
  }
}

/**
 * True when a call of a worker that was ended is let in. The result of a job that no other worker has claimed since
 * still counts (docs/adr/0005-late-results.md). A take gets 429 later, since SDKs ask again without a pause after 401.
 */
async function isPermitted({ jobs }: ApiParts, call: Call, worker: Worker): Promise<boolean> {
  // The results of several jobs are judged one by one.
  if (call.name !== 'job-done') return ['job-take', 'job-take-batch', 'job-done-batch'].includes(call.name)
  const jobId = readJobId(call)
  return jobId !== null && (await jobs.mayFinishLate(worker, jobId))
}

async function take(parts: ApiParts, call: Call, worker: Worker, batch: number | null): Promise<Response> {
  const sinceMs = readNumberHeader(call.request, RELAY_HEADERS.undeliveredSince, Number.MAX_SAFE_INTEGER)
  if (sinceMs !== null) {
    const read = (name: string) => readNumberHeader(call.request, name, Number.MAX_SAFE_INTEGER)
    const sent = { relayNowMs: read(RELAY_HEADERS.relayNow), monotonicMs: read(RELAY_HEADERS.relayMonotonic) }
    await parts.takes.undelivered(worker, sinceMs, sent)
    return new Response(null, { status: 204 })
  }
  const limit = Math.min(MAX_BATCH, Math.floor(Number.isNaN(batch) ? 1 : (batch ?? 1)))
  // One job would be more than it asks for, and SDK 2.0 hangs when it gets more.
  if (limit < 1) throw new AppError('rate_limited', 'batch_size must be 1 or more', { retryAfterSeconds: 5 })
  const inProgress = call.query.get('job_in_progress')
  // Jobs for a lost worker would be lost with the response; one that only ended its sending half takes again.
  const ending = endSignal(call)
  const claimed = await parts.takes.take(worker, {
    limit,
    sdk: call.request.headers.get('user-agent')?.slice(0, 200) ?? null,
    idle: inProgress === null ? null : inProgress === '0',
    signal: ending,
  })
  if (ending.aborted && claimed.length > 0) await settle(parts, call, worker, claimed, false)
  if (ending.aborted || claimed.length === 0) return new Response(null, { status: 204 })
  const jobs = await upToLarge(parts, call, worker, claimed)
  call.env.delivery.onSettled(delivered => void settle(parts, call, worker, jobs, delivered))
  const texts = jobs.map(job => jobText(parts, job, worker))
  const isOne = batch === null && texts.length === 1
  const view = isOne ? texts[0]! : [...texts.flatMap((text, index) => [index === 0 ? '[' : ',', ...text]), ']']
  const { largeInput, id } = jobs.at(-1)!
  if (largeInput === null) return jsonText(view.filter(part => typeof part === 'string'))
  const onUnreadable = (_: LargeText, error: unknown) => parts.takes.unreadable(worker, id, error)
  return largeText(parts, call.env, view, { what: 'the job', ended: ending, onUnreadable })
}

/** The first jobs of a take, up to one with a large input: a response has one at most. The others are given back. */
async function upToLarge(
  parts: ApiParts,
  call: Call,
  worker: Worker,
  claimed: readonly ClaimedJob[],
): Promise<readonly ClaimedJob[]> {
  const large = claimed.findIndex(({ largeInput }) => largeInput !== null)
  if (large < 0 || large === claimed.length - 1) return claimed
  await settle(parts, call, worker, claimed.slice(large + 1), false)
  return claimed.slice(0, large + 1)
}

function endSignal({ env, request }: Call): AbortSignal {
  return env.ending?.() ?? request.signal
}

/** After a failure the jobs stay with their worker until a rule, the execution timeout or its exit gives them back. */
async function settle(
  parts: ApiParts,
  call: Call,
  worker: Worker,
  claimed: readonly ClaimedJob[],
  delivered: boolean,
): Promise<void> {
  try {
    await parts.takes.settled(worker, claimed, delivered)
  } catch (error) {
    reportFailure(parts.ports.emit, 'worker', call, error)
  }
}

async function stop(parts: ApiParts, call: Call, worker: Worker): Promise<Response> {
  const jobsToStop = await parts.stops.next(worker, endSignal(call))
  return jobsToStop.length === 0 ? new Response(null, { status: 204 }) : jsonText(JSON.stringify({ jobsToStop }))
}

async function done(parts: ApiParts, call: Call, worker: Worker): Promise<Response> {
  const limit = parts.largeResults.bodyLimit
  const jobId = readJobId(call)
  const dropped = droppedBody(call.request)
  if (dropped !== null) {
    if (jobId !== null) await parts.calls.dropped(worker, jobId, 'result', dropped)
    return jsonText('{}')
  }
  await parts.resultRoom.of(worker.owner, worker.id).limited(call, limit, async body => {
    if (jobId !== null) await parts.calls.done(worker, jobId, body)
  })
  await whenClientsHaveIt()
  return jsonText('{}')
}

/** Takes the results of several jobs; the response has the status that each would get alone, in their order. */
async function doneJoined(parts: ApiParts, call: Call, worker: Worker): Promise<Response> {
  const { bytes: most, count } = JOINED_RESULTS
  const limit = { keptBytes: most, readBytes: most }
  return parts.resultRoom.of(worker.owner, worker.id).limited(call, limit, async ({ content }) => {
    if (typeof content !== 'string')
      throw new AppError('invalid', `a call has up to ${count} results in UTF-8, and ${most} bytes`)
    const statuses = readJoinedResults(content).map(result => doneOf(parts, call, worker, result))
    const text = JSON.stringify(await Promise.all(statuses))
    await whenClientsHaveIt()
    return jsonText(text)
  })
}

/**
 * Resolves behind all that a result has set off in this turn: the clients that wait for it get it before its worker
 * gets its answer, whose write wakes another process.
 */
function whenClientsHaveIt(): Promise<void> {
  return new Promise(resolve => process.nextTick(resolve))
}

async function doneOf(parts: ApiParts, call: Call, worker: Worker, { jobId, text }: JoinedResult): Promise<number> {
  try {
    if (worker.state === 'EXITED' && !(await parts.jobs.mayFinishLate(worker, jobId))) return 401
    await parts.calls.done(worker, jobId, { content: text, bytes: text.length, ended: true })
    return 200
  } catch (error) {
    reportFailure(parts.ports.emit, 'worker', call, error)
    return 503
  }
}

async function chunk(parts: ApiParts, call: Call, worker: Worker): Promise<Response> {
  const limit = { keptBytes: CHUNK_BYTES.one, readBytes: RESULT_BYTES.read }
  const jobId = readJobId(call)
  const dropped = droppedBody(call.request)
  if (dropped !== null) {
    if (jobId !== null) await parts.calls.dropped(worker, jobId, 'chunk', dropped)
    return jsonText('{}')
  }
  const copies = readNumberHeader(call.request, RELAY_HEADERS.again, MAX_COPIES) ?? 0
  await parts.resultRoom.of(worker.owner, worker.id).limited(call, limit, async body => {
    if (jobId !== null) await parts.calls.chunk(worker, jobId, body, copies)
  })
  return jsonText('{}')
}

async function ping(parts: ApiParts, { query }: Call, worker: Worker): Promise<Response> {
  const version = query.get('runpod_version')
  const unhealthy = query.get('status') === 'unhealthy'
  await parts.calls.ping(worker, {
    listed: (query.get('job_id') ?? '').split(',').filter(id => id !== ''),
    sdk: version === null ? null : `RunPod-Python-SDK/${version.slice(0, 50)}`,
    unhealthy: unhealthy ? { check: query.get('check') ?? '', reason: query.get('reason') ?? '' } : null,
  })
  return jsonText('{}')
}

/** The note of the relay about a body that it did not pass on; null if it passed the body on. */
function droppedBody(request: Request): DroppedBody | null {
  const bytes = readNumberHeader(request, RELAY_HEADERS.dropped, Number.MAX_SAFE_INTEGER)
  if (bytes === null) return null
  const file = request.headers.get(RELAY_HEADERS.setAside) ?? ''
  return { bytes, file: /^[a-z\d-]{1,100}$/.test(file) ? file : null }
}

/** A whole number in a header of the relay; null when it is missing or not one. */
function readNumberHeader(request: Request, header: string, max: number): number | null {
  const text = request.headers.get(header) ?? ''
  return /^\d{1,15}$/.test(text) && Number(text) <= max ? Number(text) : null
}

/** The job as JSON, in parts: the input may be large and is not copied. */
function jobText(
  { ports: { vault, tracing } }: ApiParts,
  job: ClaimedJob,
  { id: workerId, endpointId }: Worker,
): ViewPart[] {
  const members: string[] = []
  if (job.webhook !== null) members.push(`"webhook":${JSON.stringify(job.webhook)}`)
  if (job.policy !== null) members.push(`"policy":${job.policy}`)
  if (job.s3Config !== null) members.push(`"s3Config":${vault.open(job.s3Config, jobPlace(job.id))}`)
  if (job.batchId !== null) members.push(`"batchId":${JSON.stringify(job.batchId)}`)
  const traceparent = tracing?.attempt({ ...job, jobId: job.id, endpointId }, { ...job, workerId }) ?? job.traceparent
  if (traceparent !== null) members.push(`"traceparent":${JSON.stringify(traceparent)}`)
  const rest = members.map(member => `,${member}`).join('')
  return [`{"id":${JSON.stringify(job.id)},"input":`, job.largeInput ?? job.input, `${rest}}`]
}

function parse(request: Request, env: SurfaceEnv): Call {
  const { url, segments } = env.route
  const { pathname, search } = url
  const end = pathname.indexOf('&')
  const [, , endpoint, name, workerSegment, jobSegment] = end < 0 ? segments : pathname.slice(0, end).split('/')
  const query =
    end < 0 ? url.searchParams : new URLSearchParams(`${pathname.slice(end + 1)}${search.replace('?', '&')}`)
  const endpointId = (isEndpointId(endpoint ?? '') ? endpoint : '') as EndpointId
  return {
    request,
    env,
    endpointId,
    name: name ?? '',
    workerSegment: workerSegment ?? '',
    jobSegment: jobSegment ?? '',
    query,
  }
}

/**
 * The job of a post, from the header where a set-up left it out of the path; null when neither has it. A set-up
 * without a name of its worker has the job at the place of the worker, once repeated slashes are one.
 */
function readJobId(call: Call): JobId | null {
  const misplaced = call.workerSegment.endsWith(JOB_ID_END) ? call.workerSegment : ''
  const candidates = [call.jobSegment, misplaced, call.request.headers.get('x-request-id') ?? '']
  return candidates.find(isJobId) ?? null
}

function wrongMethod(name: string, method: string): Response {
  return jsonText(JSON.stringify({ error: `${name} takes ${method} only` }), 405, { allow: method })
}

/**
 * The response to a call that failed. SDKs drop results after a 4xx, and take again without a pause after anything but
 * 429. So a take that fails here gets 429, and a result that was not stored gets 503, after which it is sent again.
 */
function refuse(call: Call, thrown: unknown): Response {
  const error = toAppError(thrown)
  const isPoll = call.request.method === 'GET'
  const slowed =
    isPoll && error.status >= 500 ? new AppError('rate_limited', error.message, { retryAfterSeconds: 5 }) : error
  const status = !isPoll && slowed.status !== 401 ? 503 : slowed.status
  const retryAfter = slowed.retryAfterSeconds ?? (status === 503 ? RETRY_UNAVAILABLE_S : undefined)
  const headers: Record<string, string> = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
  return jsonText(JSON.stringify({ error: error.message }), status, headers)
}
