import type { Caller } from '../../../core/accounts/permission.ts'
import { type Endpoint, endpointProblems, withDefaults } from '../../../core/endpoints/endpoint.ts'
import type { TemplateInput } from '../../../core/endpoints/template.ts'
import { invalidRequest, notFound } from '../../../core/errors.ts'
import { type EndpointId, isEndpointId, type TemplateId, type VolumeId } from '../../../core/ids.ts'
import type { Endpoints, SavedEndpoint } from '../../../services/endpoints/endpoints.ts'
import { graphqlSentence } from '../../field-names.ts'
import type { ApiParts } from '../../parts.ts'
import type { GraphqlContext, Writing } from '../context.ts'
import { type EndpointInput, readEndpointInput, readTemplateFields } from '../inputs.ts'
import { type EndpointView, endpointView, queuedView, templateView, volumeView, workerView } from '../views.ts'

/** Endpoint fields that are read only if requested. */
export const endpointFields = {
  template: async ({ endpoint }: EndpointView, _: unknown, { loaders }: GraphqlContext) => {
    const template = await loaders.template(endpoint)
    return template === null ? null : templateView(template)
  },
  pods: async ({ endpoint }: EndpointView, _: unknown, { loaders }: GraphqlContext) => [
    ...(await loaders.workers(endpoint)).map(workerView),
    ...(await loaders.queued(endpoint)).map(queuedView),
  ],
  aiKey: ({ endpoint }: EndpointView, _: unknown, { loaders }: GraphqlContext) => loaders.key(endpoint),
  networkVolume: async ({ endpoint }: EndpointView, _: unknown, { loaders }: GraphqlContext) => {
    const [id] = endpoint.networkVolumeIds
    const volume = id === undefined ? null : await loaders.volume(id)
    return volume === null ? null : volumeView(volume)
  },
  networkVolumes: async ({ endpoint }: EndpointView, _: unknown, { loaders }: GraphqlContext) => {
    const volumes = await Promise.all(endpoint.networkVolumeIds.map(id => loaders.volume(id)))
    return volumes.flatMap(volume => (volume === null ? [] : volumeView(volume)))
  },
  networkVolumeIds: ({ endpoint }: EndpointView) =>
    endpoint.networkVolumeIds.map(networkVolumeId => ({ networkVolumeId })),
}

/** Data center of a volume of an endpoint. */
export const endpointVolumeFields = {
  dataCenterId: async ({ networkVolumeId }: { networkVolumeId: VolumeId }, _: unknown, { loaders }: GraphqlContext) =>
    (await loaders.volume(networkVolumeId))?.dataCenter ?? null,
}

/** Mutations on endpoints. */
export function endpointMutations({ endpoints }: ApiParts, writing: Writing) {
  return {
    saveEndpoint: writing(async (caller, { input }: { input: EndpointInput }, report) => {
      const { id } = input
      const saved = await (id ? change(endpoints, caller, id as EndpointId, input) : create(endpoints, caller, input))
      report(saved)
      return endpointView(saved.endpoint)
    }, 'reports'),
    updateEndpointTemplate: writing(
      async (caller, { input }: { input?: { endpointId: string; templateId: string } | null }, report) => {
        if (input == null) throw invalidRequest(['input is needed'])
        const changes = { templateId: input.templateId as TemplateId }
        const saved = await endpoints.save(caller, { id: input.endpointId as EndpointId, changes })
        report(saved)
        return endpointView(saved.endpoint)
      },
      'reports',
    ),
    deleteEndpoint: writing(async (caller, { id }: { id: string }) => {
      if (!isEndpointId(id)) throw notFound('endpoint', id)
      await endpoints.remove(caller.owner, id)
      return null
    }),
  }
}

async function create(endpoints: Endpoints, caller: Caller, input: EndpointInput): Promise<SavedEndpoint> {
  const { config, failures } = readEndpointInput(input, null)
  const own = ownTemplate(input)
  const problems = [...failures, ...own.failures]
  if (!input.templateId && input.template == null) problems.push('templateId (or template) is needed')
  const whole =
    config.compute === undefined ? null : withDefaults({ ...config, name: input.name, compute: config.compute })
  if (whole === null) problems.push('gpuIds (or instanceIds) is needed')
  const wrongFields = whole === null ? [] : endpointProblems(whole, null).map(graphqlSentence)
  if (problems.length > 0) throw invalidRequest([...problems, ...wrongFields])
  const runs =
    own.template === null ? (input.templateId as TemplateId) : { ...own.template, image: own.template.image ?? '' }
  return endpoints.save(caller, { config: whole!, runs })
}

async function change(
  endpoints: Endpoints,
  caller: Caller,
  id: EndpointId,
  input: EndpointInput,
): Promise<SavedEndpoint> {
  const own = ownTemplate(input)
  const link = input.templateId ? { templateId: input.templateId as TemplateId } : {}
  const changes = (now: Endpoint) => {
    const { config, failures } = readEndpointInput(input, now)
    if (failures.length + own.failures.length > 0) throw invalidRequest([...failures, ...own.failures])
    // GraphQL keeps the endpoint's variables apart from those of its template.
    return own.template === null ? { ...config, ...link } : { env: now.env, ...config }
  }
  return endpoints.save(caller, { id, changes, template: own.template ?? {} })
}

/** A template given inline instead of by id. A template with an id is ignored. */
function ownTemplate(input: EndpointInput): { template: Partial<TemplateInput> | null; failures: readonly string[] } {
  if (input.templateId || input.template == null) return { template: null, failures: [] }
  return readTemplateFields({ ...input.template, volumeInGb: input.template.volumeInGb ?? 0, isServerless: true })
}
