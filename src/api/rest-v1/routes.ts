import { z } from '@hono/zod-openapi'
import { dollars } from '../../core/billing/prices.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { TEMPLATE_DEFAULTS, type Template } from '../../core/endpoints/template.ts'
import { type AppError, invalidRequest } from '../../core/errors.ts'
import type { EndpointId, RegistryId, TemplateId, VolumeId } from '../../core/ids.ts'
import type { Registry } from '../../core/secrets/registry.ts'
import type { Volumes } from '../../services/endpoints/volumes.ts'
import { mapConcurrently } from '../../services/map-concurrently.ts'
import { v1Sentence } from '../field-names.ts'
import type { ApiParts } from '../parts.ts'
import { type Contract, type Members, type RestRoute, type RouteCall, route, type Shape } from '../rest/route.ts'
import { billingTime, timeRule, timeText } from '../rest/routes/billing.ts'
import { endpointId } from '../rest/routes/serverless.ts'
import { BillingTimeQuery } from '../rest/schemas/billing.ts'
import { IdParam } from '../rest/schemas/common.ts'
import type { ErrorFormat } from '../rest/surface.ts'
import { refusalHeaders } from '../surface.ts'
import { changedConfig, endpointView, newConfig } from './endpoints.ts'
import { podRoutes } from './pods.ts'
import { EndpointFields, Flag, RegistryFields, TemplateFields, VolumeChanges, VolumeFields } from './schemas.ts'
import { templateChanges, templateView } from './templates.ts'
import { workerLogRoutes } from './worker-logs.ts'

const Views = { includeTemplate: Flag, includeWorkers: Flag }
type Query = Partial<Members<typeof Views>>
/** Maximum concurrent reads for a list of endpoints. */
const CONCURRENCY = 16
const TEMPLATE_DISK_GB = 50

/** REST version 1, which installed tools still call: bare lists, flat members, errors with a message. */
export function v1Routes(parts: ApiParts): RestRoute[] {
  return [
    ...endpointRoutes(parts),
    ...templateRoutes(parts),
    ...registryRoutes(parts),
    ...volumeRoutes(parts),
    ...billingRoutes(parts),
    ...workerLogRoutes(parts),
    ...podRoutes(parts),
  ]
}

/** Errors as the tools of version 1 read them. */
export const V1_ERRORS: ErrorFormat = { surface: 'restV1', response: v1Error, sentence: v1Sentence }

function v1Error(error: AppError, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json(
    { message: error.message, error: error.message, ...(error.failures.length > 0 ? { errors: error.failures } : {}) },
    { status: error.status, headers: { ...headers, ...refusalHeaders(error) } },
  )
}

type Method = Contract<Shape, Shape, Shape, Shape>['method']

/** A contract of this version. It is not published, so its name and summary are placeholders. */
function contract(method: Method, path: string) {
  const status = method === 'delete' ? 204 : method === 'post' && !path.endsWith('/update') ? 201 : 200
  return {
    method,
    path: `/v1${path}`,
    operationId: `v1 ${method} ${path}`,
    tag: 'v1',
    summary: '',
    level: method === 'get' ? ('read' as const) : ('write' as const),
    success: { status, schema: method === 'delete' ? null : z.unknown() } as const,
  }
}

function body<B extends Shape>(shape: B) {
  return { body: { name: '', shape, unknown: 'ignored' as const } }
}

function endpointRoutes(parts: ApiParts): RestRoute[] {
  const { endpoints } = parts
  const view = async (endpoint: Endpoint, { includeWorkers }: Query, template?: Template) =>
    endpointView(endpoint, {
      ...(template === undefined ? {} : { template }),
      ...(includeWorkers ? { workers: await endpoints.listWorkers(endpoint) } : {}),
    })
  type Change = RouteCall<typeof IdParam, Record<never, never>, Record<never, never>, typeof EndpointFields>
  const update = async ({ caller, params, body: fields, report }: Change) => {
    const id = endpointId(params.id)
    const { templateId } = fields
    const link = templateId === undefined ? {} : { templateId: templateId as TemplateId }
    const changes = (now: Endpoint) => ({ ...changedConfig(fields, now), ...link })
    const saved = await endpoints.save(caller, { id, changes })
    report(saved)
    return view(saved.endpoint, {})
  }
  return [
    route({ ...contract('get', '/endpoints'), query: Views }, async ({ caller, query }) => {
      const { items } = await endpoints.list(caller.owner)
      if (!query.includeTemplate) return mapConcurrently(items, CONCURRENCY, endpoint => view(endpoint, query))
      const templates = [...(await endpoints.readTemplates(items))]
      return mapConcurrently(templates, CONCURRENCY, ([endpoint, template]) => view(endpoint, query, template))
    }),
    route(
      { ...contract('post', '/endpoints'), reports: true, ...body(EndpointFields) },
      async ({ caller, body: fields, report }) => {
        if (fields.templateId === undefined) throw invalidRequest(['templateId is needed'])
        // Tools of this version send false by default, without an intention.
        const config = newConfig(fields.flashboot === false ? { ...fields, flashboot: undefined } : fields)
        const saved = await endpoints.save(caller, { config, runs: fields.templateId as TemplateId })
        report(saved)
        return view(saved.endpoint, {})
      },
    ),
    route(
      { ...contract('get', '/endpoints/{id}'), params: IdParam, query: Views },
      async ({ caller, params, query }) => {
        const { endpoint, template } = await endpoints.withTemplate(caller.owner, endpointId(params.id))
        return view(endpoint, query, query.includeTemplate ? template : undefined)
      },
    ),
    route({ ...contract('patch', '/endpoints/{id}'), reports: true, params: IdParam, ...body(EndpointFields) }, update),
    route(
      { ...contract('post', '/endpoints/{id}/update'), reports: true, params: IdParam, ...body(EndpointFields) },
      update,
    ),
    route({ ...contract('delete', '/endpoints/{id}'), params: IdParam }, async ({ caller, params }) =>
      endpoints.remove(caller.owner, endpointId(params.id), true),
    ),
  ]
}

function templateRoutes({ templates }: ApiParts): RestRoute[] {
  type Change = RouteCall<typeof IdParam, Record<never, never>, Record<never, never>, typeof TemplateFields>
  const update = async ({ caller, params, body: fields, report }: Change) => {
    const changes = ({ args }: Template) => templateChanges(fields, args)
    const saved = await templates.save(caller, { id: params.id as TemplateId, changes })
    report(saved)
    return templateView(saved.template)
  }
  return [
    route(contract('get', '/templates'), async ({ caller }) =>
      (await templates.list(caller.owner)).items.map(templateView),
    ),
    route(
      { ...contract('post', '/templates'), reports: true, ...body(TemplateFields) },
      async ({ caller, body: fields, report }) => {
        const { name, imageName, isServerless = false } = fields
        const missing = [
          ...(name === undefined ? ['name is needed'] : []),
          ...(imageName === undefined ? ['imageName is needed'] : []),
        ]
        if (name === undefined || imageName === undefined) throw invalidRequest(missing)
        const defaults = { ...TEMPLATE_DEFAULTS, diskGb: TEMPLATE_DISK_GB, volumeGb: isServerless ? 0 : 20 }
        const config = { ...defaults, ...templateChanges(fields, ''), name, image: imageName }
        const saved = await templates.save(caller, { config })
        report(saved)
        return templateView(saved.template)
      },
    ),
    route({ ...contract('get', '/templates/{id}'), params: IdParam }, async ({ caller, params }) =>
      templateView(await templates.findVisible(caller.owner, params.id as TemplateId)),
    ),
    route({ ...contract('patch', '/templates/{id}'), reports: true, params: IdParam, ...body(TemplateFields) }, update),
    route(
      { ...contract('post', '/templates/{id}/update'), reports: true, params: IdParam, ...body(TemplateFields) },
      update,
    ),
    route({ ...contract('delete', '/templates/{id}'), params: IdParam }, async ({ caller, params }) =>
      templates.remove(caller.owner, params.id as TemplateId),
    ),
  ]
}

function registryRoutes({ registries }: ApiParts): RestRoute[] {
  const path = '/containerregistryauth'
  // The user name is not secret: it is useless without the password, and tools compare it with the one that they
  // sent.
  const view = ({ id, name, username }: Registry) => ({ id, name, username })
  return [
    route(contract('get', path), async ({ caller }) => (await registries.list(caller.owner)).items.map(view)),
    route({ ...contract('post', path), ...body(RegistryFields) }, async ({ caller, body: fields }) =>
      view(await registries.create(caller.owner, fields)),
    ),
    route({ ...contract('get', `${path}/{id}`), params: IdParam }, async ({ caller, params }) =>
      view(await registries.find(caller.owner, params.id as RegistryId)),
    ),
    route({ ...contract('delete', `${path}/{id}`), params: IdParam }, async ({ caller, params }) =>
      registries.remove(caller.owner, params.id as RegistryId),
    ),
  ]
}

function volumeRoutes({ volumes }: ApiParts): RestRoute[] {
  const path = '/networkvolumes'
  const view = ({ id, name, sizeGb, dataCenter }: Awaited<ReturnType<Volumes['find']>>) => ({
    id,
    name,
    size: sizeGb,
    dataCenterId: dataCenter,
  })
  return [
    route(contract('get', path), async ({ caller }) => (await volumes.list(caller.owner)).items.map(view)),
    route({ ...contract('post', path), ...body(VolumeFields) }, async ({ caller, body: fields }) => {
      const { name, size, dataCenterId } = fields
      return view(
        await volumes.create(caller.owner, { name, sizeGb: size, dataCenter: dataCenterId, type: 'STANDARD' }),
      )
    }),
    route({ ...contract('get', `${path}/{id}`), params: IdParam }, async ({ caller, params }) =>
      view(await volumes.find(caller.owner, params.id as VolumeId)),
    ),
    route(
      { ...contract('patch', `${path}/{id}`), params: IdParam, ...body(VolumeChanges) },
      async ({ caller, params, body: { name, size } }) => {
        const changes = { ...(name === undefined ? {} : { name }), ...(size === undefined ? {} : { sizeGb: size }) }
        return view(await volumes.update(caller.owner, params.id as VolumeId, changes))
      },
    ),
    route({ ...contract('delete', `${path}/{id}`), params: IdParam }, async ({ caller, params }) =>
      volumes.remove(caller.owner, params.id as VolumeId),
    ),
  ]
}

/** Bills of endpoints: a record for each time bucket and endpoint. Pods do not exist, and volumes cost nothing. */
function billingRoutes({ billing }: ApiParts): RestRoute[] {
  const BillingQuery = { ...BillingTimeQuery, endpointId: z.string().max(191).optional() }
  return [
    route(
      { ...contract('get', '/billing/endpoints'), query: BillingQuery, queryRules: [timeRule(() => billing)] },
      async ({ caller, query }) => {
        const endpoint = (query.endpointId ?? null) as EndpointId | null
        const { records } = await billing.bill(caller.owner, billingTime(query), endpoint)
        return records.map(({ startMs, endpointId: id, gpu, cpu, billedMs }) => ({
          time: timeText(startMs),
          endpointId: id,
          amount: dollars(gpu + cpu),
          timeBilledMs: billedMs,
          diskSpaceBilledGb: 0,
        }))
      },
    ),
    ...['pods', 'networkvolumes'].map(kind => route(contract('get', `/billing/${kind}`), async () => [])),
  ]
}
