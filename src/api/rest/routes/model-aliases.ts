import type { ShownAlias } from '../../../services/openai/model-aliases.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import {
  AliasQuery,
  ModelAliasBody,
  ModelAliasList,
  SaveModelAlias,
  WarmedModel,
  WarmModel,
} from '../schemas/model-aliases.ts'

const TAG = 'Account'
const PATH = '/v2/account/model-aliases'

/** Routes of models by their names: other names, and the start of a worker. */
export function modelAliasRoutes({ modelAliases, modelCatalog }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: PATH,
        operationId: 'listModelAliases',
        tag: TAG,
        level: 'read',
        summary: 'Other names of models, with their endpoints in order of preference',
        success: { status: 200, schema: ModelAliasList },
      },
      async ({ caller }) => ({ aliases: (await modelAliases.list(caller.owner)).map(aliasBody) }),
    ),
    route(
      {
        method: 'put',
        path: PATH,
        operationId: 'saveModelAlias',
        tag: TAG,
        level: 'write',
        summary:
          'Makes another name for models, or replaces its endpoints: the first that is ready answers, else the first',
        body: { name: 'SaveModelAliasRequest', shape: SaveModelAlias },
        success: { status: 200, schema: ModelAliasBody },
        problems: [400, 404, 409],
      },
      async ({ caller, body: { name, endpoints } }) =>
        aliasBody(await modelAliases.save(caller.owner, name, endpoints)),
    ),
    route(
      {
        method: 'delete',
        path: PATH,
        operationId: 'deleteModelAlias',
        tag: TAG,
        level: 'write',
        summary: 'Removes another name of models; the endpoints stay',
        query: AliasQuery,
        success: { status: 204, schema: null },
        problems: [400, 404],
      },
      async ({ caller, query: { name } }) => modelAliases.remove(caller.owner, name),
    ),
    route(
      {
        method: 'post',
        path: '/v2/account/models/warm',
        operationId: 'warmEndpointModel',
        tag: TAG,
        level: 'write',
        summary: 'Starts a worker for a model, by its name in requests, and changes nothing of its endpoint',
        body: { name: 'WarmModelRequest', shape: WarmModel },
        success: { status: 200, schema: WarmedModel },
        problems: [400, 404, 409],
      },
      async ({ caller, body: { model } }) => {
        const { endpoint, state } = await modelCatalog.warm(caller, model)
        return { id: endpoint.id, name: endpoint.name, state }
      },
    ),
  ]
}

function aliasBody({ name, endpoints, createdAtMs }: ShownAlias): ModelAliasBody {
  return {
    name,
    endpoints: endpoints.map(({ id, name: endpointName }) => ({ id, name: endpointName })),
    createdAt: new Date(createdAtMs).toISOString(),
  }
}
