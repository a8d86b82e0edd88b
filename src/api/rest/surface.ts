import { hash } from 'node:crypto'
import { Hono } from 'hono'
import { compress } from 'hono/compress'
import type { Caller } from '../../core/accounts/permission.ts'
import type { RateDecision } from '../../core/accounts/rate-limit.ts'
import type { AuditDetail, AuditObject } from '../../core/audit/entry.ts'
import { findObjectKind } from '../../core/audit/object-kind.ts'
import type { DocumentReading } from '../../core/bodies/document-size.ts'
import { AppError, ERROR_CODES, renderFields, toAppError } from '../../core/errors.ts'
import type { FieldProblem } from '../../core/field-problem.ts'
import { isAppWorker } from '../../services/accounts/app-worker-keys.ts'
import { audited, changedBy, type ReportSave } from '../audited.ts'
import { isCachedTag } from '../entity-tag.ts'
import { restSentence } from '../field-names.ts'
import type { ApiParts } from '../parts.ts'
import {
  admitTo,
  authenticatedCaller,
  authorizationKey,
  heldFor,
  refusalHeaders,
  reportFailure,
  type Surface,
  type SurfaceEnv,
} from '../surface.ts'
import type { RestRoute } from './route.ts'
import { accountId } from './routes/account.ts'
import { validate } from './validate.ts'

const MAX_BODY_BYTES = 1024 * 1024
/** Size from which a response is compressed for clients that ask for it. */
const COMPRESSED_BYTES = 1024

type Env = { Bindings: { parts: ApiParts; env: SurfaceEnv; rate: { decision: RateDecision | null } } }

/** Names and error format of a version of the API. */
export interface ErrorFormat {
  readonly surface: 'rest' | 'restV1'
  /** The response for an error. */
  readonly response: (error: AppError, headers: Readonly<Record<string, string>>, requestId: string) => Response
  /** A problem of a field as a sentence, with the field's name in this version. */
  readonly sentence: (problem: FieldProblem) => string
}

const PROBLEM_DOCUMENTS: ErrorFormat = {
  surface: 'rest',
  response: problemResponse,
  sentence: problem => restSentence(problem),
}

/** A management API from a table of routes. @param format format of errors; default: problem documents */
export function restSurface(
  parts: ApiParts,
  routes: readonly RestRoute[],
  format: ErrorFormat = PROBLEM_DOCUMENTS,
): Surface {
  const app = new Hono<Env>({ strict: true })
  app.use(compress({ threshold: COMPRESSED_BYTES }))
  for (const route of routes) {
    const { method, path } = route.contract
    app.on(method.toUpperCase(), honoPath(path), async context => {
      const { parts } = context.env
      const caller = route.contract.level === 'open' ? null : await admit(context.env, context.req.raw, route)
      const request = context.req.raw
      const held = () =>
        heldFor(parts.access, context.env.env, caller as Caller, whose => requireLevel(parts, whose, route))
      const run = async (body: string | DocumentReading) => {
        const params = context.req.param() as Record<string, string>
        const query = context.env.env.route.url.searchParams
        const parsed = validate(route.contract, request, { params, query }, body)
        if (caller !== null) requireMembers(parts, caller, route, parsed.body)
        // An open route ignores its caller.
        const handle = (report: ReportSave = () => {}) =>
          route.handle({ ...parsed, caller: caller as Caller, request, held, report })
        const changes = caller !== null && method !== 'get' && parsed.query.dryRun !== 'true'
        const answer = await (changes ? changing(context.env, route, caller, parsed.params, handle, format) : handle())
        return respond(answer, route.contract.success.status, request)
      }
      const { body: contract } = route.contract
      if (contract === undefined) return run('')
      const account = caller?.owner ?? null
      const room = parts.room.of(account)
      return room.body({ request, env: context.env.env }, contract.maxBytes ?? MAX_BODY_BYTES, async body =>
        run(typeof body === 'string' ? body : await parts.ports.bodies.read(account, 'document', body)),
      )
    })
  }
  for (const [path, allow] of methodsByPath(routes)) {
    app.all(honoPath(path), async context => {
      await authenticate(context.env, context.req.raw)
      const message = withReason(`this path takes ${allow.join(', ')}, not ${context.req.method}`, context.req.path)
      throw new AppError('method_not_allowed', message, { allow })
    })
  }
  app.notFound(async context => {
    await authenticate(context.env, context.req.raw)
    throw new AppError('not_found', withReason(`there is nothing at ${context.req.path}`, context.req.path))
  })
  app.onError(error => {
    throw error
  })
  return (request, env) => answered(parts, app, request, env, format)
}

function withReason(message: string, path: string): string {
  const reason = absenceAt(path)
  return reason === null ? message : `${message}: ${reason}`
}

async function answered(
  parts: ApiParts,
  app: Hono<Env>,
  request: Request,
  env: SurfaceEnv,
  format: ErrorFormat,
): Promise<Response> {
  const rate: { decision: RateDecision | null } = { decision: null }
  try {
    const answer = await app.fetch(request, { parts, env, rate })
    for (const [name, value] of Object.entries(rateHeaders(rate.decision))) answer.headers.set(name, value)
    return answer
  } catch (thrown) {
    reportFailure(parts.ports.emit, 'rest', { request, env }, thrown)
    const error = renderFields(toAppError(thrown), format.sentence)
    return format.response(error, rateHeaders(rate.decision), env.requestId)
  }
}

async function admit(env: Env['Bindings'], request: Request, route: RestRoute): Promise<Caller> {
  const caller = await authenticate(env, request)
  requireLevel(env.parts, caller, route)
  return caller
}

function requireLevel({ access }: ApiParts, caller: Caller, { contract }: RestRoute): void {
  const { level, operationId, forApps = false } = contract
  if (forApps && isAppWorker(caller)) return
  if (level === 'operator') access.requireOperator(caller, operationId)
  else access.requireManagement(caller, level as 'read' | 'write')
}

/**
 * Runs before the change begins: refusals for lack of the operator's rights are counted, so that a flood of them
 * cannot fill the audit log.
 */
function requireMembers({ access }: ApiParts, caller: Caller, { contract }: RestRoute, body: object): void {
  const { body: { operatorMembers = [] } = {}, operationId } = contract
  const given = operatorMembers.some(name => ![undefined, false].includes((body as Record<string, boolean>)[name]))
  if (given) access.requireOperator(caller, operationId)
}

/** Authentication and rate limits run first, so that every later response has the rate limit headers. */
async function authenticate({ parts, env, rate }: Env['Bindings'], request: Request): Promise<Caller> {
  const caller = await authenticatedCaller(parts.access, request, env, bearerKey)
  admitTo(env, caller.owner)
  rate.decision = await parts.access.count(caller)
  if (rate.decision?.exceeded != null) throw rateLimitError(rate.decision)
  return caller
}

/**
 * Makes a change between its entries in the audit log.
 * @param params path parameters; the last id names the object, else the response body does
 */
async function changing(
  { parts, env }: Env['Bindings'],
  { contract }: RestRoute,
  caller: Caller,
  params: object,
  handle: (report: ReportSave) => Promise<unknown>,
  { surface }: ErrorFormat,
): Promise<unknown> {
  const { operationId: operation } = contract
  const kind = findObjectKind(operation)
  const ids = Object.entries(params).filter(([name]) => name !== 'version')
  const nameIn = (answer: unknown) => {
    const named = ids.at(-1)?.[1] ?? (Object(answer) as { id?: unknown }).id
    if (typeof named !== 'string') return null
    return kind === 'account' ? accountId(caller, named) : named
  }
  const findObject = (answer: unknown): AuditObject | null => {
    const id = nameIn(answer) ?? (operation === 'updateSshKeys' ? caller.owner : null)
    return kind === null || id === null ? null : { kind, id }
  }
  /** The id of another object that the operation made, such as the key in the place of an old one. */
  const detailFromResult = (answer: unknown): AuditDetail => {
    const { id: made } = Object(answer) as { id?: unknown }
    return typeof made === 'string' && ids.length > 0 && made !== ids.at(-1)![1] ? { made } : {}
  }
  const entry = { surface, operation, caller, env, object: findObject(null) }
  const look = { objectFromResult: findObject, detailFromResult, reports: contract.reports }
  const answer = await audited(parts, entry, handle, look)
  parts.ports.emit('change.made', { surface: 'rest', operation, object: nameIn(answer), ...changedBy(caller, env) })
  return answer
}

function bearerKey(request: Request): string | null {
  const header = request.headers.get('authorization')
  if (header === null) throw new AppError('unauthorized', 'missing bearer token')
  if (!/^bearer\s+\S/i.test(header))
    throw new AppError('unauthorized', 'the Authorization header must be: Bearer <API key>')
  return authorizationKey(request)
}

function rateLimitError({ exceeded: window, retryAfterSeconds }: RateDecision): AppError {
  const message = `the limit of ${window!.quota} requests per ${window!.name} is used up`
  return new AppError('rate_limited', message, { retryAfterSeconds })
}

function rateHeaders(rate: RateDecision | null): Record<string, string> {
  return rate === null ? {} : { RateLimit: rate.rateLimit, 'RateLimit-Policy': rate.rateLimitPolicy }
}

function respond(value: unknown, status: number, request: Request): Response {
  if (value instanceof Response) return value
  if (status === 204) return new Response(null, { status })
  const text = JSON.stringify(value)
  const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }
  if (request.method !== 'GET') return new Response(text, { status, headers })
  const etag = `"${hash('sha256', text, 'base64url')}"`
  if (isCachedTag(etag, request)) return new Response(null, { status: 304, headers: { etag } })
  return new Response(text, { status, headers: { ...headers, etag } })
}

/** The methods of each path. GET includes HEAD. */
function methodsByPath(routes: readonly RestRoute[]): Map<string, string[]> {
  const methods = new Map<string, string[]>()
  for (const { contract } of routes) {
    const known = methods.get(contract.path) ?? []
    known.push(...(contract.method === 'get' ? ['GET', 'HEAD'] : [contract.method.toUpperCase()]))
    methods.set(contract.path, known)
  }
  return methods
}

function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

/** Paths of the public API that Runyard lacks, each with the reason. */

const NO_PODS = 'Runyard runs serverless endpoints and tasks of apps (@app.task), and has no other pods'

const REASONS: readonly (readonly [path: RegExp, reason: string])[] = [
  [/^\/v[12]\/pods(\/|$)/, NO_PODS],
  [/^\/v2\/clusters(\/|$)/, 'Runyard runs serverless endpoints, and has no clusters'],
  [/^\/v2\/sandboxes(\/|$)/, 'Runyard runs serverless endpoints, and has no sandboxes'],
  [
    /^\/v2\/registries\/delegations(\/|$)/,
    'Runyard takes a user name and a password for a registry, and no delegation',
  ],
  [
    /^\/v1\/(models|chat|completions|embeddings|responses|messages|rerank|images|audio)(\/|$)/,
    "the base URL of OpenAI's clients ends with /openai/v1",
  ],
  [/^\/v2\/serverless\/[^/]+\/builds(\/|$)/, 'Runyard runs images, and builds none'],
]

/** The reason, as a sentence, for which a path of the public API does not exist here; null for any other path. */
function absenceAt(path: string): string | null {
  return REASONS.find(([pattern]) => pattern.test(path))?.[1] ?? null
}

/**
 * An error as a problem document (RFC 9457), with the id of its request. `errors` are sentences, because
 * clients decode them as strings.
 */
function problemResponse(error: AppError, headers: Readonly<Record<string, string>>, requestId: string): Response {
  const body = {
    title: ERROR_CODES[error.code].title,
    status: error.status,
    detail: error.message,
    ...(error.failures.length > 0 ? { errors: error.failures } : {}),
    requestId,
  }
  return new Response(JSON.stringify(body), {
    status: error.status,
    headers: {
      'content-type': 'application/problem+json',
      ...headers,
      ...refusalHeaders(error),
    },
  })
}
