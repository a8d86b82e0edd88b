import { OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { JobError } from '../jobs/schemas.ts'
import type { DocumentedOperation } from '../operation.ts'
import type { BodyContract, RestRoute, Shape } from './route.ts'
import { Problem } from './schemas/common.ts'

type Responses = RouteConfig['responses']

const TITLES: Record<number, string> = {
  400: 'Something about the request is wrong; `errors` lists all of it',
  401: 'The key is missing, malformed, expired or invalid',
  403: 'The key lacks the right',
  404: 'There is no such resource, or it is not visible to the caller',
  409: 'The state of the resource forbids it',
  413: 'The body is too large',
  415: 'The body has a `Content-Encoding`, which none may have, or is no JSON',
  429: 'Too many requests; `Retry-After` is the time until the next try',
  503: 'The store is away or the server stops; nothing is half done',
}

const RATE_HEADERS = {
  RateLimit: {
    description: 'For each window the remaining requests `r` and the seconds `t` until it starts again',
    schema: { type: 'string' as const },
  },
  'RateLimit-Policy': {
    description: 'For each window its quota `q` and its length `w` in seconds',
    schema: { type: 'string' as const },
  },
}

/** Parts of the document. */
export interface DocumentParts {
  readonly routes: readonly RestRoute[]
  /** Operations of other surfaces. */
  readonly operations?: readonly DocumentedOperation[]
  /** Requests with their responses, by the id of the operation. */
  readonly examples?: Examples
}

/** A request of an operation, and the server's response. */
export interface OperationExample {
  readonly params?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly status: number
  /** Body of the response; left out without a body. */
  readonly response?: unknown
}

/** Examples by the id of their operation. */
export type Examples = Readonly<Record<string, OperationExample>>

/** The OpenAPI 3.1 document, without `servers`. */
export function openApiDocument({ routes, operations = [], examples = {} }: DocumentParts): OpenApiDocument {
  const app = new OpenAPIHono()
  app.openAPIRegistry.registerComponent('securitySchemes', 'apiKey', { type: 'http', scheme: 'bearer' })
  for (const operation of operations.flatMap(withPost)) app.openAPIRegistry.registerPath(documented(operation))
  for (const route of routes) app.openAPIRegistry.registerPath(managed(route))
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Runyard API', version: '2.0.0', description: DESCRIPTION },
  }) as unknown as OpenApiDocument
  addExamples(document, examples)
  return document
}

const DESCRIPTION =
  'Serverless endpoints on your own machines: manage endpoints, submit jobs to them, and see what they do. ' +
  'Each request carries `Authorization: Bearer <API key>`.'

/** An OpenAPI document, as far as it is read here. */
export type OpenApiDocument = Record<string, unknown> & {
  readonly paths: Readonly<Record<string, Record<string, PathOperation>>>
}

interface PathOperation {
  readonly operationId: string
  readonly parameters?: { readonly in: string; readonly name: string; example?: unknown }[]
  readonly requestBody?: { readonly content: Record<string, { example?: unknown }> }
  readonly responses: Record<string, { readonly content?: Record<string, { example?: unknown }> }>
}

function addExamples({ paths }: OpenApiDocument, examples: Examples): void {
  for (const operation of Object.values(paths).flatMap(methods => Object.values(methods))) {
    const { operationId } = operation
    const example = examples[operationId.endsWith(BY_POST) ? operationId.slice(0, -BY_POST.length) : operationId]
    if (example === undefined) continue
    const given: Record<string, unknown> = { ...example.params, ...example.query }
    for (const parameter of operation.parameters ?? []) {
      if (given[parameter.name] !== undefined) parameter.example = given[parameter.name]
    }
    for (const content of Object.values(operation.requestBody?.content ?? {})) content.example = example.body
    const contents = Object.values(operation.responses[String(example.status)]?.content ?? {})
    if (example.response !== undefined) for (const content of contents) content.example = example.response
  }
}

const OBJECT = (shape: Readonly<Record<string, z.ZodType>>) => z.object(shape as z.ZodRawShape)

function managed({ contract }: RestRoute): RouteConfig {
  const { method, path, operationId, tag, summary, level, params, query, headers, body } = contract
  return {
    method,
    path,
    operationId,
    summary,
    tags: [tag],
    security: level === 'open' ? [] : [{ apiKey: [] }],
    request: {
      ...requestShapes({ params, query, headers }),
      ...(body === undefined
        ? {}
        : { body: { required: true, content: { 'application/json': { schema: bodySchema(body) } } } }),
    },
    responses: { ...success(contract), ...problems(contract) },
  }
}

/** Statuses of errors that every job operation can have. */
const JOB_ERRORS = [400, 401, 403, 404, 429, 503] as const

/** An operation, and its second method if it has two. */
function withPost(operation: DocumentedOperation): DocumentedOperation[] {
  if (operation.postToo !== true) return [operation]
  const { operationId, summary } = operation
  const post = {
    method: 'post',
    operationId: `${operationId}${BY_POST}`,
    summary: `As GET: ${lowerFirst(summary)}`,
  } as const
  return [operation, { ...operation, ...post }]
}

/** Ends the id of an operation that is the same as the one with GET. */
export const BY_POST = 'ByPost'

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

function documented(operation: DocumentedOperation): RouteConfig {
  const { method, path, operationId, tag, summary, params, query, headers, body, response, mediaType } = operation
  const { error = JobError } = operation
  const errors = [...JOB_ERRORS, ...(operation.errors ?? []), ...(body === undefined ? [] : [415])].sort()
  return {
    method,
    path,
    operationId,
    summary,
    tags: [tag],
    security: [{ apiKey: [] }],
    request: {
      ...requestShapes({ params, query, headers }),
      ...(body === undefined
        ? {}
        : { body: { required: body.required, content: { 'application/json': { schema: body.schema } } } }),
    },
    responses: {
      200: { description: 'Done', content: { [mediaType ?? 'application/json']: { schema: response } } },
      ...Object.fromEntries(
        errors.map(status => [
          status,
          { description: TITLES[status]!, content: { 'application/json': { schema: error } } },
        ]),
      ),
    },
  }
}

function requestShapes({
  params,
  query,
  headers,
}: Readonly<Record<'params' | 'query' | 'headers', Shape | undefined>>) {
  return {
    ...(params === undefined ? {} : { params: OBJECT(params) }),
    ...(query === undefined ? {} : { query: OBJECT(query) }),
    ...(headers === undefined ? {} : { headers: OBJECT(headers) }),
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
  const rated =
    status === 401 ? {} : { headers: { ...RATE_HEADERS, ...(status === 429 || status === 503 ? RETRY_AFTER : {}) } }
  return { description: TITLES[status]!, ...rated, ...content() }
}

const RETRY_AFTER = { 'Retry-After': { description: 'Whole seconds', schema: { type: 'integer' as const } } }

function content() {
  return { content: { 'application/problem+json': { schema: Problem } } }
}
