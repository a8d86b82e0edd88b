import { OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import type { BodyContract, RestRoute, Shape } from './route.ts'
import { Problem } from './schemas/common.ts'

type Responses = RouteConfig['responses']

const TITLES: Record<number, string> = {
  400: 'Something about the request is wrong; `errors` lists all of it',
  401: 'The key is missing, malformed, expired or invalid',
  403: 'The key lacks the right',
  404: 'There is no such resource, or it is not visible to the caller',
  409: 'The state of the resource forbids it',
  429: 'Too many requests in one of the windows, which `detail` names',
}

const RATE_HEADERS = {
  RateLimit: {
    description: 'For each window the remaining requests `r` and the seconds `t` until it begins anew',
    schema: { type: 'string' as const },
  },
  'RateLimit-Policy': {
    description: 'For each window its quota `q` and its length `w` in seconds',
    schema: { type: 'string' as const },
  },
}

/** The OpenAPI 3.1 document of a table of routes, without `servers`. */
export function openApiDocument(routes: readonly RestRoute[]): Record<string, unknown> {
  const app = new OpenAPIHono()
  app.openAPIRegistry.registerComponent('securitySchemes', 'apiKey', { type: 'http', scheme: 'bearer' })
  for (const route of routes) app.openAPIRegistry.registerPath(operation(route))
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Runyard REST API', version: '2.0.0', description: 'Management of serverless endpoints.' },
  }) as unknown as Record<string, unknown>
}

function operation({ contract }: RestRoute): RouteConfig {
  const { method, path, operationId, tag, summary, level, params, query, headers, body } = contract
  return {
    method,
    path,
    operationId,
    summary,
    tags: [tag],
    security: level === 'open' ? [] : [{ apiKey: [] }],
    request: {
      ...(params === undefined ? {} : { params: z.object(params as z.ZodRawShape) }),
      ...(query === undefined ? {} : { query: z.object(query as z.ZodRawShape) }),
      ...(headers === undefined ? {} : { headers: z.object(headers as z.ZodRawShape) }),
      ...(body === undefined
        ? {}
        : { body: { required: true, content: { 'application/json': { schema: bodySchema(body) } } } }),
    },
    responses: { ...success(contract), ...problems(contract) },
  }
}

function bodySchema({ name, shape, keywords = {} }: BodyContract<Shape>) {
  return z.strictObject(shape as z.ZodRawShape).openapi(name, keywords)
}

function success({
  success: { status, schema, mediaType, headers: more = [] },
  level,
}: RestRoute['contract']): Responses {
  const own = Object.fromEntries(more.map(name => [name, { schema: { type: 'string' as const } }]))
  const headers = level === 'open' ? {} : { headers: { ...RATE_HEADERS, ...own } }
  if (schema === null) return { [status]: { description: 'Done', ...headers } }
  return { [status]: { description: 'Done', ...headers, content: { [mediaType ?? 'application/json']: { schema } } } }
}

function problems({ level, problems: more = [] }: RestRoute['contract']): Responses {
  const statuses = level === 'open' ? [...more] : [401, 403, 429, ...more]
  const known = Object.fromEntries(statuses.sort().map(status => [status, problem(status)]))
  const rated = level === 'open' ? {} : { headers: RATE_HEADERS }
  return { ...known, default: { ...rated, ...content(), description: 'Any other error' } }
}

function problem(status: number) {
  const rated = status === 401 ? {} : { headers: { ...RATE_HEADERS, ...(status === 429 ? RETRY_AFTER : {}) } }
  return { description: TITLES[status]!, ...rated, ...content() }
}

const RETRY_AFTER = { 'Retry-After': { description: 'Whole seconds', schema: { type: 'integer' as const } } }

function content() {
  return { content: { 'application/problem+json': { schema: Problem } } }
}
