import type { AppEnvironment, DeployedApp, DeployedBuild } from '../../../core/apps/app.ts'
import type { AppId, EnvironmentId } from '../../../core/ids.ts'
import type { AppEndpoint } from '../../../services/apps/app-contents.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { AppDetail, AppList, AppQuery } from '../schemas/apps.ts'
import { IdParam, pagination } from '../schemas/common.ts'

const TAG = 'Apps'

/** Routes of apps of RunPod's SDK 2.0; its command line makes them over GraphQL. */
export function appRoutes({ apps, appContents }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/account/apps',
        operationId: 'listApps',
        tag: TAG,
        level: 'read',
        summary: 'The apps of the caller with their environments, or the one of a name',
        query: AppQuery,
        success: { status: 200, schema: AppList },
        problems: [400],
      },
      async ({ caller, query: { name, ...page } }) => {
        const { items, nextCursor } = await appContents.list(caller.owner, page, name)
        const rows = items.map(({ app, environments, endpointCount }) => ({
          ...appBody(app),
          endpointCount,
          environments: environments.map(environmentBody),
        }))
        return { apps: rows, pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'get',
        path: '/v2/account/apps/{id}',
        operationId: 'getApp',
        tag: TAG,
        level: 'read',
        summary: 'One app: its environments, the build that each endpoint runs, and its newest builds',
        params: IdParam,
        success: { status: 200, schema: AppDetail },
        problems: [404],
      },
      async ({ caller, params }) => {
        const content = await appContents.find(caller.owner, params.id as AppId)
        const endpoints = Map.groupBy(content.endpoints, ({ environmentId }) => environmentId)
        return {
          ...appBody(content.app),
          endpointCount: content.endpointCount,
          environments: content.environments.map(environment => ({
            ...environmentBody(environment),
            endpoints: (endpoints.get(environment.id) ?? []).map(endpointBody),
          })),
          builds: content.builds.map(buildBody),
        }
      },
    ),
    route(
      {
        method: 'delete',
        path: '/v2/account/apps/{id}',
        operationId: 'deleteApp',
        tag: TAG,
        level: 'write',
        summary: 'Removes an app without environments, with its builds',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404, 409],
      },
      async ({ caller, params }) => apps.remove(caller.owner, params.id as AppId),
    ),
    route(
      {
        method: 'delete',
        path: '/v2/account/app-environments/{id}',
        operationId: 'deleteAppEnvironment',
        tag: TAG,
        level: 'write',
        summary: 'Removes an environment without endpoints; the builds of its app stay',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404, 409],
      },
      async ({ caller, params }) => apps.removeEnvironment(caller.owner, params.id as EnvironmentId),
    ),
  ]
}

function appBody({ id, name, createdAtMs }: DeployedApp) {
  return { id, name, createdAt: new Date(createdAtMs).toISOString() }
}

function environmentBody({ id, name, activeBuildId, createdAtMs }: AppEnvironment) {
  const state = activeBuildId === null ? 'EMPTY' : 'DEPLOYED'
  return { id, name, state, activeBuildId, createdAt: new Date(createdAtMs).toISOString() }
}

function endpointBody({ id, name, buildId, running }: AppEndpoint) {
  return { id, name, buildId, running }
}

function buildBody({ id, bytes, unpackedBytes, createdAtMs }: DeployedBuild) {
  return { id, size: bytes, unpackedSize: unpackedBytes, createdAt: new Date(createdAtMs).toISOString() }
}
