import type { Caller } from '../../core/accounts/permission.ts'
import { AppError, notFound, toAppError } from '../../core/errors.ts'
import { isEndpointId } from '../../core/ids.ts'
import { JOB_TIMES } from '../../core/jobs/retention.ts'
import { readTraceparent } from '../../core/jobs/trace-context.ts'
import { openAiRefusal, readOpenAiCall } from '../../core/openai/openai.ts'
import { notForBalanced } from '../addresses.ts'
import type { ApiParts } from '../parts.ts'
import {
  admitTo,
  authenticatedCaller,
  heldFor,
  refusalHeaders,
  reportFailure,
  type Surface,
  type SurfaceCall,
  type SurfaceEnv,
} from '../surface.ts'
import { OpenaiExchange, respond } from './exchange.ts'

/** Maximum body of a request, in bytes. */
const PAYLOAD_BYTES = 20_971_520

/**
 * `/v2/{endpoint_id}/openai/...` with any method: each request is a job in the endpoint's queue, answered as OpenAI's
 * API would. Errors are `{"error": {"message", "type", "param", "code"}}`.
 */
export function openAiSurface(parts: ApiParts): Surface {
  return async (request, env) => {
    try {
      return await answer(parts, request, env)
    } catch (error) {
      return refuse(parts, { request, env }, error)
    }
  }
}

async function answer(parts: ApiParts, request: Request, env: SurfaceEnv): Promise<Response> {
  const caller = await authenticatedCaller(parts.access, request, env)
  admitTo(env, caller.owner)
  const { url, segments } = env.route
  const id = segments[2] ?? ''
  if (!isEndpointId(id)) throw notFound('endpoint', id)
  const endpoint = await parts.cachedEndpoints.find(caller.owner, id)
  const requireRight = (whose: Caller) => parts.access.requireJobs(whose, 'write', id)
  requireRight(caller)
  if (endpoint.type === 'LOAD_BALANCER') throw notForBalanced(parts.addresses, id, '/v1')
  env.delivery.onSettled(await parts.access.countJobs(caller, id, 'openai'))
  // n8n adds a version to a base URL that ends with a slash.
  const route = url.pathname.slice(`/v2/${id}/openai`.length).replace(/^\/v1(?=\/v1\/)/, '')
  if (route.length < 2) throw new AppError('not_found', 'there is no such operation; the base URL ends with /openai/v1')
  const type = contentType(request)
  if (isOtherMedia(type)) throw otherMedia(type)
  const { job, stream } = await parts.room.of(endpoint.owner).body({ request, env }, PAYLOAD_BYTES, async body => {
    if (typeof body === 'string' && mayBeForm(type, body)) throw otherMedia(type)
    const call =
      typeof body === 'string'
        ? readOpenAiCall(route, body)
        : await parts.ports.bodies.read(endpoint.owner, 'openAiCall', body, route)
    if (parts.stopping.aborted) throw new AppError('unavailable', 'the server is stopping')
    // A client that reads a long stream slowly gets more time to receive its end.
    const kept = call.stream ? { askedWaitMs: JOB_TIMES.waitMs.max } : {}
    const traceparent = readTraceparent(request.headers.get('traceparent'))
    const submitted = await parts.jobs.submit(endpoint, call.submission, { kind: 'runsync', traceparent, ...kept })
    return { job: submitted, stream: call.stream }
  })
  const exchange = new OpenaiExchange(parts, job, { request, env }, heldFor(parts.access, env, caller, requireRight))
  try {
    return await (stream ? exchange.stream() : exchange.whole())
  } catch (error) {
    // Cancel the job: no client would receive its result.
    await exchange.cancelJob()
    return refuse(parts, { request, env }, error, exchange.headers)
  }
}

/** The media type of a body, in lower case; empty without a body or a type. */
function contentType({ method, headers }: Request): string {
  if (method === 'GET' || method === 'HEAD') return ''
  return (headers.get('content-type') ?? '').split(';', 1)[0]!.trim().toLowerCase()
}

/** Media types that programs send for text by default, also for JSON. */
const DEFAULT_TYPES = new Set(['', 'text/plain', 'application/x-www-form-urlencoded'])

/** True if a type states that the body is not JSON. */
function isOtherMedia(type: string): boolean {
  return !DEFAULT_TYPES.has(type) && type !== 'application/json' && !type.endsWith('+json')
}

/** True if the beginning of a text is not JSON, and its type is a default of programs. */
function mayBeForm(type: string, body: string): boolean {
  return type !== '' && DEFAULT_TYPES.has(type) && body.trim() !== '' && !/^[[{"]/.test(body.trimStart())
}

function otherMedia(type: string): AppError {
  const message = `the body must be JSON (application/json), not ${type.slice(0, 100)}; files go into it as text or as addresses`
  return new AppError('unsupported_media', message)
}

function refuse(
  parts: ApiParts,
  call: SurfaceCall,
  thrown: unknown,
  headers: Readonly<Record<string, string>> = {},
): Response {
  reportFailure(parts.ports.emit, 'openai', call, thrown)
  const error = toAppError(thrown)
  return respond(openAiRefusal(error), { ...headers, ...refusalHeaders(error) })
}
