import type { ApiParts } from '../../parts.ts'
import { type GraphqlContext, writingFor } from '../context.ts'
import { accountMutations, queryMyself, userFields } from './account.ts'
import { catalogFields, catalogQueries } from './catalog.ts'
import { endpointFields, endpointMutations, endpointVolumeFields } from './endpoints.ts'
import { registryMutations, secretMutations, templateMutations, volumeMutations } from './records.ts'
import { unsupportedMutations, unsupportedQueries } from './unsupported.ts'

/** The resolvers of the schema in sdl/schema.ts. */
export function resolversFor(parts: ApiParts) {
  const writing = writingFor(parts)
  return {
    Query: {
      myself: (_: unknown, __: unknown, context: GraphqlContext) => queryMyself(parts, context),
      ...catalogQueries(parts),
      ...unsupportedQueries,
    },
    User: userFields(parts),
    Endpoint: endpointFields,
    EndpointNetworkVolume: endpointVolumeFields,
    ...catalogFields(parts),
    Mutation: {
      ...endpointMutations(parts, writing),
      ...templateMutations(parts, writing),
      ...secretMutations(parts, writing),
      ...registryMutations(parts, writing),
      ...volumeMutations(parts, writing),
      ...accountMutations(parts, writing),
      ...unsupportedMutations,
    },
  }
}
