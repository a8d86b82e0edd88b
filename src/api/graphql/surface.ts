import { maxDepthPlugin } from '@escape.tech/graphql-armor-max-depth'
import { GraphQLError } from 'graphql'
import { createSchema, createYoga } from 'graphql-yoga'
import { toAppError } from '../../core/errors.ts'
import type { Caller } from '../../core/permission.ts'
import type { Access } from '../../services/access.ts'
import type { BodyRoom } from '../body.ts'
import { authorizationKey, reportFailure, type Surface } from '../surface.ts'
import { type GraphqlContext, type GraphqlParts, resolvers } from './resolvers.ts'
import { typeDefs } from './sdl.ts'

const MAX_BODY_BYTES = 4 * 1024 * 1024
const MAX_DEPTH = 12

/**
 * GraphQL at `/graphql`. Errors are HTTP 200 with `errors`, except a bad key and an anonymous mutation, which are 401.
 * Without a key only what is public can be asked.
 */
export function graphqlSurface(parts: GraphqlParts & { readonly room: BodyRoom }): Surface {
  const yoga = createYoga<GraphqlContext>({
    schema: createSchema<GraphqlContext>({ typeDefs, resolvers: resolvers(parts) }),
    graphqlEndpoint: '/graphql',
    graphiql: false,
    landingPage: false,
    logging: false,
    cors: false,
    multipart: false,
    maskedErrors: {
      maskError: error => {
        const original = (error as { originalError?: unknown }).originalError
        if (error instanceof Error && original === undefined) return error
        if (original instanceof Error && original.name === 'GraphQLError') return error as Error
        parts.emit('request.failed', {
          surface: 'graphql',
          method: 'POST',
          path: '/graphql',
          problem: String(original ?? error),
        })
        return new GraphQLError('an internal error occurred; the server log has the details')
      },
    },
    plugins: [maxDepthPlugin({ n: MAX_DEPTH })],
  })
  return async request => {
    try {
      const caller = await callerOf(request, parts.access)
      const ask = async (body: string | null) => {
        const init = { method: request.method, headers: request.headers, body }
        const answer = await yoga.fetch(new Request(request.url, init), { caller })
        return new Response(await answer.text(), { status: answer.status, headers: [...answer.headers] })
      }
      return await (request.method === 'POST' ? parts.room.text(request, MAX_BODY_BYTES, ask) : ask(null))
    } catch (thrown) {
      reportFailure(parts.emit, 'graphql', request, thrown)
      const error = toAppError(thrown)
      return Response.json({ errors: [{ message: error.message }], data: null }, { status: error.status })
    }
  }
}

async function callerOf(request: Request, access: Access): Promise<Caller | null> {
  const key = authorizationKey(request) ?? new URL(request.url).searchParams.get('api_key')
  return key === null || key === '' ? null : access.authenticate(key)
}
