import type { Caller } from '../../core/accounts/permission.ts'
import type { Body } from '../../core/bodies/body-readings.ts'
import { AppError, notFound } from '../../core/errors.ts'
import { isEndpointId } from '../../core/ids.ts'
import { notForBalanced } from '../addresses.ts'
import type { ApiParts } from '../parts.ts'
import {
  admitTo,
  authenticatedCaller,
  authorizationKey,
  type Surface,
  type SurfaceCall,
  type SurfaceEnv,
} from '../surface.ts'
import { boundaryOf, bytesOf, contentType, formOf, handlerBody, PAYLOAD_BYTES, requireJsonText } from './media.ts'
import { accountedBody } from './members.ts'
import { answeredElsewhere, answerModels, handOver } from './model-routes.ts'
import { answerOfJob, refuse, submitCall } from './submitting.ts'

/** Longest answer of a worker that is read for its list of models, in bytes. */
const LIST_BYTES = 65_536

/**
 * `/openai/v1/...`: the model in the body names the endpoint. And `/v2/{endpoint_id}/openai/...` with any method: each
 * request is a job in the endpoint's queue, answered as OpenAI's API would. Errors are
 * `{"error": {"message", "type", "param", "code"}}`.
 */
export function openAiSurface(parts: ApiParts): Surface {
  return async (request, env) => {
    try {
      const caller = await authenticatedCaller(parts.access, request, env, keyOf)
      admitTo(env, caller.owner)
      const ofModel = env.route.segments[1] === 'openai'
      return await (ofModel ? answerModels(parts, { request, env }, caller) : answer(parts, request, env, caller))
    } catch (error) {
      return refuse(parts, { request, env }, error)
    }
  }
}

/** The key of a request. Clients of Anthropic's API have a header of their own for it. */
function keyOf(request: Request): string | null {
  return authorizationKey(request) ?? request.headers.get('x-api-key')
}

async function answer(parts: ApiParts, request: Request, env: SurfaceEnv, caller: Caller): Promise<Response> {
  const { url, segments } = env.route
  const id = segments[2] ?? ''
  if (!isEndpointId(id)) throw notFound('endpoint', id)
  const endpoint = await parts.cachedEndpoints.find(caller.owner, id)
  parts.access.requireJobs(caller, 'write', id)
  // n8n adds a version to a base URL that ends with a slash.
  const route = url.pathname.slice(`/v2/${id}/openai`.length).replace(/^\/v1(?=\/v1\/)/, '')
  if (route.length < 2) throw new AppError('not_found', 'there is no such operation; the base URL ends with /openai/v1')
  const call: SurfaceCall = { request, env }
  const { method } = request
  const room = parts.room.of(endpoint.owner)
  if (endpoint.type === 'LOAD_BALANCER') {
    if (env.balanced === undefined || !(request.method === 'GET' || request.method === 'POST'))
      throw notForBalanced(parts.addresses, id, '/v1')
    const prefix = `/v2/${id}/openai`
    const pass = async (body: Body) => {
      const accounted = await accountedBody(parts, caller, { method, route, body })
      const { hidesUsage } = accounted
      return handOver(parts, call, caller, { endpoint, route, prefix, body: bytesOf(accounted.body), hidesUsage })
    }
    return answeredElsewhere(await room.bytes(call, parts.balancedBodyBytes, pass))
  }
  env.delivery.onSettled(await parts.access.countJobs(caller, id, 'openai'))
  const boundary = boundaryOf(request)
  const submitted = await room.bytes(call, PAYLOAD_BYTES, async body => {
    if (boundary === null) requireJsonText(contentType(request), body)
    const input = boundary === null ? body : handlerBody(formOf(body, boundary), null)
    const accounted = await accountedBody(parts, caller, { method, route, body: input })
    return submitCall(parts, call, endpoint, { route, caller, ...accounted })
  })
  const response = await answerOfJob(parts, call, caller, submitted)
  if (route === '/v1/models' && response.status === 200 && isShort(response))
    parts.modelCatalog.learn(endpoint, await response.clone().text())
  return response
}

/** True for a response that is in memory; see `textResponse`. */
function isShort({ headers }: Response): boolean {
  return headers.get('content-type') === 'application/json' && Number(headers.get('content-length') ?? 0) <= LIST_BYTES
}
