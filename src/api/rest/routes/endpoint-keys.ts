import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { CreatedKeyBody, EndpointKeyList } from '../schemas/account.ts'
import { IdParam, PageQuery, pagination } from '../schemas/common.ts'
import { keyBody } from './account.ts'
import { endpointId } from './serverless.ts'

/** Routes of the keys that belong to endpoints. */
export function endpointKeyRoutes({ keys, endpoints }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/account/endpoint-keys',
        operationId: 'listEndpointKeys',
        tag: 'Account',
        level: 'read',
        summary: 'The keys that endpoints of the caller have of their own, never the keys themselves, oldest first',
        query: PageQuery,
        success: { status: 200, schema: EndpointKeyList },
        problems: [400],
      },
      async ({ caller, query }) => {
        const { items, nextCursor } = await keys.listOfEndpoints(caller, query)
        return { keys: items.map(keyBody), pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'post',
        path: '/v2/serverless/{id}/rotate-key',
        operationId: 'rotateEndpointKey',
        tag: 'Serverless',
        level: 'write',
        summary: 'Gives an endpoint a new key of its own; the one before counts no more',
        params: IdParam,
        success: { status: 201, schema: CreatedKeyBody },
        problems: [404],
      },
      async ({ caller, params }) => {
        const endpoint = await endpoints.find(caller.owner, endpointId(params.id))
        const { record, key } = await keys.rotateOfEndpoint(caller, endpoint)
        // The scope of such a key has no right on files.
        return { ...keyBody(record), key, s3: null }
      },
    ),
  ]
}
