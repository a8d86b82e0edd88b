import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi'
import { AppError, ERROR_CODES, toAppError } from '../../core/errors.ts'
import { isEndpointId } from '../../core/ids.ts'
import type { Caller } from '../../core/permission.ts'
import type { RateDecision } from '../../core/rate-limit.ts'
import type { Emit } from '../../events.ts'
import type { Access } from '../../services/access.ts'
import type { Endpoints } from '../../services/endpoints.ts'
import type { Addresses } from '../addresses.ts'
import { authorizationKey, reportFailure, type Surface } from '../surface.ts'
import { endpointBody } from './endpoint-view.ts'
import { EndpointBody, Problem } from './schemas.ts'

/** What the REST surface uses. */
export interface RestParts {
  readonly access: Access
  readonly endpoints: Endpoints
  readonly addresses: () => Addresses
  readonly emit: Emit
}

type Env = { Bindings: { caller: Caller } }

const problem = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: Problem } },
})

const getEndpoint = createRoute({
  method: 'get',
  path: '/v2/serverless/{id}',
  operationId: 'getEndpoint',
  tags: ['Serverless'],
  request: { params: z.object({ id: z.string() }) },
  responses: {
    200: { description: 'The endpoint', content: { 'application/json': { schema: EndpointBody } } },
    401: problem('The key is missing, malformed, expired or invalid'),
    403: problem('The key lacks the right'),
    404: problem('There is no such endpoint'),
    429: problem('Too many requests in one of the windows'),
    default: problem('Any other error'),
  },
})

/** The management API at `/v2/...`. Every error is a problem document. */
export function restSurface(parts: RestParts): Surface {
  const app = new OpenAPIHono<Env>()
  app.openapi(getEndpoint, async context => {
    const { owner } = context.env.caller
    const { id } = context.req.valid('param')
    if (!isEndpointId(id)) throw new AppError('not_found', `endpoint ${id} not found`)
    const endpoint = await parts.endpoints.find(owner, id)
    const template = await parts.endpoints.templateOf(endpoint)
    return context.json(endpointBody(endpoint, template, parts.addresses()), 200)
  })
  app.all('/v2/serverless/:id', context => {
    const message = `this path takes GET, not ${context.req.method}`
    throw new AppError('method_not_allowed', message, { allow: ['GET'] })
  })
  app.notFound(context => {
    throw new AppError('not_found', `there is nothing at ${context.req.path}`)
  })
  app.onError(error => {
    throw error
  })
  return request => guarded(parts, request, app)
}

/** Authentication, rights and windows come before the routes, so that every answer after them carries its headers. */
async function guarded(parts: RestParts, request: Request, app: OpenAPIHono<Env>): Promise<Response> {
  let rate: RateDecision | null = null
  try {
    const caller = await parts.access.authenticate(bearerKey(request))
    rate = await parts.access.count(caller)
    if (rate?.exceeded != null) throw exceeded(rate)
    parts.access.requireManagement(caller, request.method === 'GET' ? 'read' : 'write')
    return withHeaders(await app.fetch(request, { caller }), rateHeaders(rate))
  } catch (thrown) {
    reportFailure(parts.emit, 'rest', request, thrown)
    return problemResponse(toAppError(thrown), rateHeaders(rate))
  }
}

function bearerKey(request: Request): string | null {
  const header = request.headers.get('authorization')
  if (header === null) throw new AppError('unauthorized', 'missing bearer token')
  if (!/^bearer\s+\S/i.test(header))
    throw new AppError('unauthorized', 'the Authorization header must be: Bearer <API key>')
  return authorizationKey(request)
}

function exceeded({ exceeded: window, retryAfterSeconds }: RateDecision): AppError {
  const message = `the limit of ${window!.quota} requests per ${window!.name} is used up`
  return new AppError('rate_limited', message, { retryAfterSeconds })
}

function rateHeaders(rate: RateDecision | null): Record<string, string> {
  return rate === null ? {} : { RateLimit: rate.rateLimit, 'RateLimit-Policy': rate.rateLimitPolicy }
}

function withHeaders(answer: Response, headers: Record<string, string>): Response {
  for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value)
  return answer
}

function problemResponse(error: AppError, headers: Record<string, string>): Response {
  const body = {
    title: ERROR_CODES[error.code].title,
    status: error.status,
    detail: error.message,
    ...(error.failures.length > 0 ? { errors: error.failures } : {}),
  }
  return new Response(JSON.stringify(body), {
    status: error.status,
    headers: {
      'content-type': 'application/problem+json',
      ...headers,
      ...(error.retryAfterSeconds === undefined ? {} : { 'retry-after': String(error.retryAfterSeconds) }),
      ...(error.allow.length > 0 ? { allow: error.allow.join(', ') } : {}),
    },
  })
}
