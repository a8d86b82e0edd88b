import { buildSchema, type GraphQLFieldResolver, type GraphQLSchema, isObjectType, isScalarType } from 'graphql'
import type { ApiParts } from '../parts.ts'
import { type GraphqlContext, writingFor } from './context.ts'
import { accountMutations, queryMyself, userFields } from './resolvers/account.ts'
import { appFields, appMutations, appQueries } from './resolvers/apps.ts'
import { catalogFields, catalogQueries } from './resolvers/catalog.ts'
import { endpointFields, endpointMutations, endpointVolumeFields } from './resolvers/endpoints.ts'
import { loginMutations, loginQueries } from './resolvers/logins.ts'
import { registryMutations, secretMutations, templateMutations, volumeMutations } from './resolvers/records.ts'
import { taskMutations, taskQueries } from './resolvers/tasks.ts'
import { unsupportedMutations, unsupportedQueries } from './resolvers/unsupported.ts'
import { typeDefs } from './sdl/schema.ts'

type Resolvers = Readonly<Record<string, Readonly<Record<string, GraphQLFieldResolver<unknown, GraphqlContext>>>>>

/** The schema with its resolvers. Fields without a resolver are read from the value of their type. */
export function createSchema(parts: ApiParts): GraphQLSchema {
  // Validated by test/app/surfaces/graphql.test.ts instead of at each start of a server.
  const schema = buildSchema(typeDefs.join('\n'), { assumeValidSDL: true })
  for (const [name, resolvers] of Object.entries(resolversFor(parts) as Resolvers)) {
    const type = schema.getType(name)
    if (!isObjectType(type)) throw new Error(`the schema has no type ${name} with resolvers`)
    const fields = type.getFields()
    for (const [field, resolve] of Object.entries(resolvers)) {
      const defined = fields[field]
      if (defined === undefined) throw new Error(`the schema has no field ${name}.${field}`)
      defined.resolve = resolve
    }
  }
  const nothing = schema.getType('Void')
  if (isScalarType(nothing)) nothing.serialize = () => null
  return schema
}

/** The resolvers of the schema in sdl/schema.ts. */
function resolversFor(parts: ApiParts) {
  const writing = writingFor(parts)
  return {
    Query: {
      myself: (_: unknown, __: unknown, context: GraphqlContext) => queryMyself(parts, context),
      ...catalogQueries(parts),
      ...appQueries(parts),
      ...loginQueries(parts),
      ...taskQueries(parts),
      ...unsupportedQueries,
    },
    User: userFields(parts),
    Endpoint: endpointFields,
    EndpointNetworkVolume: endpointVolumeFields,
    ...catalogFields(parts),
    ...appFields(parts),
    Mutation: {
      ...endpointMutations(parts, writing),
      ...templateMutations(parts, writing),
      ...secretMutations(parts, writing),
      ...registryMutations(parts, writing),
      ...volumeMutations(parts, writing),
      ...accountMutations(parts, writing),
      ...appMutations(parts, writing),
      ...taskMutations(parts, writing),
      ...loginMutations(parts),
      ...unsupportedMutations,
    },
  }
}
