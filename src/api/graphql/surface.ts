import { createSchema, createYoga, type Plugin } from 'graphql-yoga'
import type { Caller } from '../../core/accounts/permission.ts'
import { LARGE_BODY_BYTES, type Pieces } from '../../core/bodies/body-readings.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import { isTooDeep, TOO_DEEP } from '../../core/json/json-depth.ts'
import type { BodyParser } from '../../ports/body-parser.ts'
import type { Access } from '../../services/accounts/access.ts'
import type { BodyRoom } from '../body.ts'
import { admitTo, authorizationKey, refusalHeaders, reportFailure, type Surface, type SurfaceEnv } from '../surface.ts'
import type { GraphqlContext } from './context.ts'
import { shownError } from './errors.ts'
import { graphiql, wantsPage } from './graphiql.ts'
import { limitPlugins, maxBodyBytes } from './limits.ts'
import { loadersFor } from './loaders.ts'
import type { GraphqlParts } from './parts.ts'
import { withoutSecrets } from './redaction.ts'
import { resolversFor } from './resolvers/all.ts'
import { typeDefs } from './sdl/schema.ts'

type SurfaceParts = GraphqlParts & { readonly room: BodyRoom; readonly bodies: BodyParser }

/**
 * GraphQL at `/graphql`. Errors are HTTP 200 with `errors`, except a bad key and an anonymous mutation, which are 401.
 * Without a key only public fields can be queried. Browsers get GraphiQL.
 */
export function graphqlSurface(parts: SurfaceParts): Surface {
  const yoga = createYoga<GraphqlContext>({
    schema: createSchema<GraphqlContext>({ typeDefs: [...typeDefs], resolvers: resolversFor(parts) }),
    graphqlEndpoint: '/graphql',
    graphiql: false,
    landingPage: false,
    logging: false,
    cors: false,
    multipart: false,
    // No parser cache: clients write their values into the documents, so documents rarely repeat.
    parserAndValidationCache: false,
    maxRequestBodySize: false,
    maskedErrors: { maskError: error => shownError(error, cause => reportCause(parts, cause)) },
    plugins: [...limitPlugins(), largeRequests],
  })
  return async (request, env) => {
    try {
      if (wantsPage(request)) return await graphiql(request)
      const caller = await callerOf(request, parts.access, env)
      if (caller !== null) admitTo(env, caller.owner)
      const ask = async (body: string | null, large?: object) => {
        refuseDeep(request, body)
        const init = { method: request.method, headers: request.headers, body }
        const address = () => env.address?.() ?? null
        const context = { caller, loaders: loadersFor(parts, caller), address, large }
        const answer = await yoga.fetch(new Request(request.url, init), context)
        const text = withoutSecrets(await answer.text(), large ?? body ?? '')
        const headers = new Headers([...answer.headers])
        // The length is that of the text before redaction.
        headers.delete('content-length')
        return new Response(text, { status: statusOf(answer, text), headers })
      }
      return await (request.method === 'POST'
        ? parts.room
            .of(caller?.owner ?? null)
            .body(request, maxBodyBytes(caller !== null), async body =>
              typeof body === 'string' ? ask(body) : ask('{}', await readLarge(parts.bodies, request, body)),
            )
        : ask(null))
    } catch (thrown) {
      reportFailure(parts.emit, 'graphql', request, thrown)
      const error = toAppError(thrown)
      return Response.json(
        { errors: [{ message: error.message }], data: null },
        { status: error.status, headers: refusalHeaders(error) },
      )
    }
  }
}

/**
 * Status of a response. Invalid variables are ordinary errors (200) for clients of plain JSON: a client that checks the status first
 * would not show the message.
 */
function statusOf({ status, headers }: Response, text: string): number {
  const plain = (headers.get('content-type') ?? '').startsWith('application/json')
  return status === 400 && plain && text.startsWith('{"errors":[{"message":"Variable \\"$') ? 200 : status
}

/** Replaces the parser for large requests, which are parsed already. */
const largeRequests: Plugin<object, GraphqlContext & { readonly large?: object }> = {
  onRequestParse({ serverContext, setRequestParser }) {
    const { large } = serverContext
    if (large !== undefined) setRequestParser(() => large)
  },
}

/** @throws AppError `invalid` and `too_large` */
async function readLarge(bodies: BodyParser, request: Request, pieces: Pieces): Promise<object> {
  if (!/^application\/(graphql\+)?json(;|,|$)/.test(request.headers.get('content-type') ?? '')) {
    throw new AppError('too_large', `a request of ${LARGE_BODY_BYTES} bytes and more must be application/json`)
  }
  const reading = await bodies.read('document', pieces)
  if (!reading.ok) throw new AppError('invalid', `the request cannot be read: ${reading.problem}`)
  const { value } = reading
  if (typeof value !== 'object' || value === null) throw new AppError('invalid', 'the request must be a JSON object')
  return value
}

/** Refuses requests nested too deep. Variables are in the body (JSON or form) or in the URL. */
function refuseDeep(request: Request, body: string | null): void {
  const isForm = (request.headers.get('content-type') ?? '').startsWith('application/x-www-form-urlencoded')
  const fields = [new URL(request.url).searchParams, ...(isForm && body !== null ? [new URLSearchParams(body)] : [])]
  const texts = fields.flatMap(params => [params.get('variables') ?? '', params.get('extensions') ?? ''])
  if (![...texts, isForm ? '' : (body ?? '')].some(isTooDeep)) return
  throw new AppError('invalid', `the request is too deep: ${TOO_DEEP}`)
}

async function callerOf(request: Request, access: Access, { address }: SurfaceEnv): Promise<Caller | null> {
  const key = authorizationKey(request) ?? new URL(request.url).searchParams.get('api_key')
  return key === null || key === '' ? null : access.authenticate(key, address)
}

function reportCause({ emit }: GraphqlParts, cause: unknown): void {
  const problem = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  emit('request.failed', { surface: 'graphql', method: 'POST', path: '/graphql', problem })
}
