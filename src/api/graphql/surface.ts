import type { Caller } from '../../core/accounts/permission.ts'
import { LARGE_BODY_BYTES, type Pieces } from '../../core/bodies/body-readings.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import type { OwnerId } from '../../core/ids.ts'
import { isTooDeep, TOO_DEEP } from '../../core/json/json-depth.ts'
import type { BodyParser } from '../../ports/body-parser.ts'
import type { Access } from '../../services/accounts/access.ts'
import type { ApiParts } from '../parts.ts'
import { StaticPage } from '../static-page.ts'
import {
  admitTo,
  authenticatedCaller,
  authorizationKey,
  refusalHeaders,
  reportFailure,
  type Surface,
  type SurfaceEnv,
} from '../surface.ts'
import { execute } from './execution.ts'
import { SchemaResponses } from './introspection.ts'
import { maxBodyBytes } from './limits.ts'
import { loadersFor } from './loaders.ts'
import { createSchema } from './schema.ts'

/**
 * GraphQL at `/graphql`. Errors are HTTP 200 with `errors`, except a bad key and an anonymous mutation, which are 401.
 * Without a key only public fields can be queried. Browsers get GraphiQL.
 */
export function graphqlSurface(parts: ApiParts): Surface {
  const served = { schema: createSchema(parts), responses: new SchemaResponses() }
  return async (request, env) => {
    try {
      if (wantsPage(request, env.route.url)) return await graphiql(request)
      const caller = await optionalCaller(request, parts.access, env)
      const account = caller?.owner ?? null
      if (account !== null) admitTo(env, account)
      const ask = async (body: string | Record<string, unknown> | null) => {
        refuseDeep(env.route.url, body)
        const agent = request.headers.get('user-agent') ?? ''
        const context = { caller, agent, loaders: loadersFor(parts, caller), env }
        return await execute(served, { request, body, context }, cause => reportCause(parts, cause, env.requestId))
      }
      return await (request.method === 'POST'
        ? parts.room
            .of(account)
            .body({ request, env }, maxBodyBytes(caller !== null), async body =>
              ask(
                typeof body === 'string'
                  ? body
                  : await readLarge(parts.ports.bodies, request, { account, pieces: body }),
              ),
            )
        : ask(null))
    } catch (thrown) {
      reportFailure(parts.ports.emit, 'graphql', { request, env }, thrown)
      const error = toAppError(thrown)
      return Response.json(
        { errors: [{ message: error.message }], data: null },
        { status: error.status, headers: refusalHeaders(error) },
      )
    }
  }
}

/** @throws AppError `invalid` and `too_large` */
async function readLarge(
  bodies: BodyParser,
  request: Request,
  { account, pieces }: { readonly account: OwnerId | null; readonly pieces: Pieces },
): Promise<Record<string, unknown>> {
  if (!/^application\/json(;|$)/.test(request.headers.get('content-type') ?? '')) {
    throw new AppError('too_large', `a request of ${LARGE_BODY_BYTES} bytes and more must be application/json`)
  }
  const reading = await bodies.read(account, 'document', pieces)
  if (!reading.ok) throw new AppError('invalid', `the request cannot be read: ${reading.problem}`)
  const { value } = reading
  if (typeof value !== 'object' || value === null) throw new AppError('invalid', 'the request must be a JSON object')
  return value as Record<string, unknown>
}

/**
 * Refuses requests nested too deep. Variables are in the body, or in the URL.
 * @param body as text, or parsed, which has a limit of its own
 */
function refuseDeep({ searchParams }: URL, body: string | object | null): void {
  const texts = ['variables', 'extensions'].map(name => searchParams.get(name) ?? '')
  if (![...texts, typeof body === 'string' ? body : ''].some(isTooDeep)) return
  throw new AppError('invalid', `the request is too deep: ${TOO_DEEP}`)
}

/** Null without a session and a key. */
async function optionalCaller(request: Request, access: Access, env: SurfaceEnv): Promise<Caller | null> {
  const key = authorizationKey(request) ?? env.route.url.searchParams.get('api_key')
  if (env.session === undefined && (key === null || key === '')) return null
  return authenticatedCaller(access, request, env, () => key)
}

function reportCause({ ports: { emit } }: ApiParts, cause: unknown, requestId: string): void {
  const why = cause instanceof AppError && cause.cause !== undefined ? cause.cause : cause
  const problem = why instanceof Error ? (why.stack ?? why.message) : String(why)
  const { status } = toAppError(cause)
  emit('request.failed', { surface: 'graphql', method: 'POST', path: '/graphql', status, problem, requestId })
}

/** Content Security Policy: the page may run its own scripts and connect to this server. */
const POLICY = [
  ...["default-src 'none'", "script-src 'unsafe-inline' blob:", 'worker-src blob:', "style-src 'unsafe-inline'"],
  ...["img-src 'self' data:", 'font-src data:', "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ')

const QUERY = `# Put an API key into the headers below: {"Authorization": "Bearer rpa_..."}
{
  myself {
    endpoints {
      id
      name
      workersMin
      workersMax
    }
  }
}
`

/** True for a request of a browser that wants the page. */
function wantsPage(request: Request, { pathname }: URL): boolean {
  return (
    request.method === 'GET' && pathname === '/graphql' && (request.headers.get('accept') ?? '').includes('text/html')
  )
}

/** GraphiQL as one page without external resources. It has no key: people enter theirs in its headers editor. */
function graphiql(request: Request): Promise<Response> {
  return page.answer(request)
}

const page = new StaticPage(render, {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
})

/** Nine megabytes, so it is loaded only when the page is opened. */
async function render(): Promise<string> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql')
  return renderGraphiQL({
    title: 'Runyard GraphQL',
    defaultQuery: QUERY,
    headers: JSON.stringify({ Authorization: 'Bearer ' }, null, 2),
    defaultEditorToolsVisibility: 'headers',
    shouldPersistHeaders: false,
    credentials: 'omit',
  })
}
