import { mayUseJobs } from '../../../core/accounts/permission.ts'
import type { Endpoint } from '../../../core/endpoints/endpoint.ts'
import type { Template } from '../../../core/endpoints/template.ts'
import { AppError, notFound } from '../../../core/errors.ts'
import { type EndpointId, isEndpointId, type OwnerId, type WorkerId } from '../../../core/ids.ts'
import { isAppWorker } from '../../../services/accounts/app-worker-keys.ts'
import type { ListedRelease, Rollout, ShownRelease } from '../../../services/endpoints/releases.ts'
import type { ApiParts } from '../../parts.ts'
import { changedConfig, changedTemplate, newConfig, newTemplate, templateIdFromBody } from '../endpoint-changes.ts'
import {
  containerRules,
  createKeywords,
  createRules,
  envChangeRules,
  updateKeywords,
  updateRules,
} from '../endpoint-rules.ts'
import { configurationBody, endpointBody } from '../endpoint-view.ts'
import { type RestRoute, type Rule, route } from '../route.ts'
import { DryRunQuery, IdParam, PageQuery, pagination } from '../schemas/common.ts'
import {
  CreateEndpoint,
  EndpointBody,
  EndpointList,
  ReleaseBody,
  ReleaseList,
  ReleaseParams,
  RestartBody,
  UpdateEndpoint,
} from '../schemas/endpoint.ts'

const TAG = 'Serverless'
const ONE = '/v2/serverless/{id}'

/** Endpoints, their workers and their releases. */
export function serverlessRoutes(parts: ApiParts): RestRoute[] {
  return [...collection(parts), ...single(parts), ...releasing(parts), ending(parts), restarting(parts)]
}

function collection(parts: ApiParts): RestRoute[] {
  const { endpoints } = parts
  return [
    route(
      {
        method: 'get',
        path: '/v2/serverless',
        operationId: 'listEndpoints',
        tag: TAG,
        level: 'read',
        forApps: true,
        summary: 'The endpoints of the caller, oldest first',
        query: PageQuery,
        success: { status: 200, schema: EndpointList },
        problems: [400],
      },
      async ({ caller, query }) => {
        const { items, nextCursor } = await endpoints.list(caller.owner, query)
        const templates = [...(await endpoints.readTemplates(items))]
        const shown = templates.flatMap(([endpoint, template]) => {
          if (!isAppWorker(caller)) return [endpointBody(endpoint, template, parts.addresses)]
          if (!mayUseJobs(caller, 'write', endpoint.id)) return []
          return [endpointBody({ ...endpoint, env: {} }, { ...template, env: {} }, parts.addresses)]
        })
        return { endpoints: shown, pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'post',
        path: '/v2/serverless',
        operationId: 'createEndpoint',
        tag: TAG,
        level: 'write',
        reports: true,
        summary: 'Creates an endpoint; with dryRun=true it is only checked, and shown as it would be',
        query: DryRunQuery,
        body: {
          name: 'CreateEndpointRequest',
          shape: CreateEndpoint,
          keywords: createKeywords,
          rules: [...createRules, ...(containerRules as Rule<typeof CreateEndpoint>[])],
        },
        success: { status: 201, schema: EndpointBody },
        problems: [400, 404],
      },
      async ({ caller, query, body, report }) => {
        const template = await startingTemplate(parts, caller.owner, body)
        const [config, own] = [newConfig(body, template), newTemplate(body, template)]
        const saved = await endpoints.save(caller, { config, runs: own }, query.dryRun === 'true')
        report(saved)
        return endpointBody(saved.endpoint, saved.template, parts.addresses)
      },
    ),
  ]
}

function single(parts: ApiParts): RestRoute[] {
  const { endpoints } = parts
  return [
    route(
      {
        method: 'get',
        path: ONE,
        operationId: 'getEndpoint',
        tag: TAG,
        level: 'read',
        summary: 'One endpoint',
        params: IdParam,
        success: { status: 200, schema: EndpointBody },
        problems: [404],
      },
      async ({ caller, params }) => {
        const { endpoint, template } = await endpoints.withTemplate(caller.owner, endpointId(params.id))
        return endpointBody(endpoint, template, parts.addresses)
      },
    ),
    route(
      {
        method: 'patch',
        path: ONE,
        operationId: 'updateEndpoint',
        tag: TAG,
        level: 'write',
        reports: true,
        summary:
          'Changes what is sent of an endpoint and keeps the rest; with dryRun=true the change is only checked, and shown as it would be',
        params: IdParam,
        query: DryRunQuery,
        body: {
          name: 'UpdateEndpointRequest',
          shape: UpdateEndpoint,
          keywords: updateKeywords,
          rules: [...updateRules, ...([...containerRules, ...envChangeRules] as Rule<typeof UpdateEndpoint>[])],
        },
        success: { status: 200, schema: EndpointBody },
        problems: [400, 404, 409],
      },
      async ({ caller, params, query, body, report }) => {
        const id = endpointId(params.id)
        const template = await startingTemplate(parts, caller.owner, body)
        const content = changedTemplate(body, template)
        const release = body.rollout === undefined ? {} : { release: { canary: body.rollout.canary } }
        const changes = (before: Endpoint) => changedConfig(body, before)
        const change = { id, changes, template: content, refusesUnusedIdleTimeout: true, ...release }
        const saved = await endpoints.save(caller, change, query.dryRun === 'true')
        report(saved)
        return endpointBody(saved.endpoint, saved.template, parts.addresses)
      },
    ),
    route(
      {
        method: 'delete',
        path: ONE,
        operationId: 'deleteEndpoint',
        tag: TAG,
        level: 'write',
        summary: 'Removes an endpoint: its jobs are cancelled and its workers are ended',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404],
      },
      async ({ caller, params }) => endpoints.remove(caller.owner, endpointId(params.id), true),
    ),
  ]
}

function releasing({ releases }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: `${ONE}/releases`,
        operationId: 'listEndpointReleases',
        tag: TAG,
        level: 'read',
        summary: 'The changes of an endpoint that its workers had to see, newest first',
        params: IdParam,
        success: { status: 200, schema: ReleaseList },
        problems: [404],
      },
      async ({ caller, params }) => {
        const { endpointVersion, rollout, releases: all } = await releases.list(caller.owner, endpointId(params.id))
        return { endpointVersion, rollout: rolloutBody(rollout), releases: all.map(listedRelease) }
      },
    ),
    route(
      {
        method: 'get',
        path: `${ONE}/releases/{version}`,
        operationId: 'getEndpointRelease',
        tag: TAG,
        level: 'read',
        summary: 'One release with its configuration',
        params: ReleaseParams,
        success: { status: 200, schema: ReleaseBody },
        problems: [404],
      },
      async ({ caller, params }) =>
        releaseBody(await releases.find(caller.owner, endpointId(params.id), readVersion(params))),
    ),
    route(
      {
        method: 'post',
        path: `${ONE}/releases/{version}/rollback`,
        operationId: 'rollbackEndpoint',
        tag: TAG,
        level: 'write',
        summary: 'Makes a new release that has the configuration of an older one',
        params: ReleaseParams,
        success: { status: 201, schema: ReleaseBody },
        problems: [400, 404, 409],
      },
      async ({ caller, params }) =>
        releaseBody(await releases.rollBack(caller, endpointId(params.id), readVersion(params))),
    ),
    route(
      {
        method: 'post',
        path: `${ONE}/releases/{version}/promote`,
        operationId: 'promoteRelease',
        tag: TAG,
        level: 'write',
        summary:
          'Makes a canary an ordinary release, which replaces the one before; one that was stopped because it failed its jobs goes on',
        params: ReleaseParams,
        success: { status: 200, schema: ReleaseBody },
        problems: [404, 409],
      },
      async ({ caller, params }) =>
        releaseBody(await releases.promote(caller.owner, endpointId(params.id), readVersion(params))),
    ),
  ]
}

function rolloutBody({ stop, ...rollout }: Rollout) {
  const failures =
    stop === null
      ? null
      : {
          at: new Date(stop.atMs).toISOString(),
          ended: stop.release.ended,
          failed: stop.release.failed,
          workingEnded: stop.working.ended,
          workingFailed: stop.working.failed,
        }
  return { ...rollout, failures }
}

function listedRelease(release: ListedRelease) {
  const { id, version, source, createdBy, createdAtMs, workerCount, diff, restores, image, canary } = release
  return {
    id,
    version,
    source,
    buildId: null,
    createdByUserId: createdBy,
    workerCount,
    createdAt: new Date(createdAtMs).toISOString(),
    diff,
    restoredVersion: restores,
    exactImage: image,
    canary,
  }
}

function releaseBody(release: ShownRelease) {
  const { configuration } = release
  return { ...listedRelease(release), configuration: configuration && configurationBody(configuration) }
}

/** @throws AppError `not_found` for text that is no version */
function readVersion({ id, version }: { readonly id: string; readonly version: string }): number {
  if (!/^[1-9][0-9]{0,8}$/.test(version)) throw notFound('release', `${version} of endpoint ${id}`)
  return Number(version)
}

/** An addition to the public contract. */
function ending({ endpoints }: ApiParts): RestRoute {
  return route(
    {
      method: 'delete',
      path: `${ONE}/workers/{workerId}`,
      operationId: 'deleteEndpointWorker',
      tag: TAG,
      level: 'write',
      summary: 'Ends a worker when it has finished its jobs; another one starts where it is wanted',
      params: { ...IdParam, workerId: IdParam.id },
      success: { status: 204, schema: null },
      problems: [404],
    },
    async ({ caller, params }) => endpoints.endWorker(caller.owner, endpointId(params.id), params.workerId as WorkerId),
  )
}

/** An addition to the public contract. */
function restarting({ endpoints }: ApiParts): RestRoute {
  return route(
    {
      method: 'post',
      path: `${ONE}/restart`,
      operationId: 'restartEndpoint',
      tag: TAG,
      level: 'write',
      summary:
        'Replaces the workers by those of a new release with the same configuration; the old ones finish their jobs',
      params: IdParam,
      success: { status: 200, schema: RestartBody },
      problems: [404, 409],
    },
    async ({ caller, params }): Promise<RestartBody> => {
      const { id, version } = await endpoints.restart(caller.owner, endpointId(params.id))
      return { id, version }
    },
  )
}

/** The serverless template that a request starts from; null without a template. */
async function startingTemplate(
  { templates }: ApiParts,
  owner: OwnerId,
  body: { templateId?: string | undefined },
): Promise<Template | null> {
  const id = templateIdFromBody(body)
  if (id === null) return null
  const template = await templates.find(owner, id)
  if (template.isServerless) return template
  const failure = `$.templateId: template ${id} is not a serverless template`
  throw new AppError('invalid', failure, { failures: [failure] })
}

/** @throws AppError `not_found` for text that is not an endpoint id */
export function endpointId(text: string): EndpointId {
  if (!isEndpointId(text)) throw notFound('endpoint', text)
  return text
}
