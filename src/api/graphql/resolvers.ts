import { GraphQLError, GraphQLScalarType } from 'graphql'
import { invalid, notFound, toAppError } from '../../core/errors.ts'
import { type EndpointId, isEndpointId, type SecretId, type TemplateId } from '../../core/ids.ts'
import type { Caller } from '../../core/permission.ts'
import type { Emit } from '../../events.ts'
import type { Store } from '../../ports/store.ts'
import type { Access } from '../../services/access.ts'
import type { Endpoints } from '../../services/endpoints.ts'
import type { Secrets } from '../../services/secrets.ts'
import type { Templates } from '../../services/templates.ts'
import {
  type EndpointInput,
  readEndpointInput,
  readTemplateFields,
  TEMPLATE_DEFAULTS,
  type TemplateFields,
  withDefaults,
} from './inputs.ts'
import { endpointView, secretView, templateView } from './views.ts'

/** What the GraphQL surface uses. */
export interface GraphqlParts {
  readonly access: Access
  readonly endpoints: Endpoints
  readonly templates: Templates
  readonly secrets: Secrets
  readonly store: Store
  readonly emit: Emit
}

/** What each resolver is given: the caller, null for an anonymous one. */
export interface GraphqlContext {
  readonly caller: Caller | null
}

type EndpointView = ReturnType<typeof endpointView>

/** The resolvers of the schema in sdl.ts. */
export function resolvers(parts: GraphqlParts) {
  return {
    Void: new GraphQLScalarType({ name: 'Void', serialize: () => null }),
    Query: { myself: (_: unknown, __: unknown, context: GraphqlContext) => myself(parts, context) },
    User: userResolvers(parts),
    Endpoint: {
      pods: async ({ endpoint }: EndpointView) =>
        (await parts.endpoints.workersOf(endpoint)).map(({ id, state }) => ({
          id,
          desiredStatus: state === 'STARTING' || state === 'READY' ? 'RUNNING' : 'EXITED',
        })),
      template: async ({ endpoint }: EndpointView) => templateView(await parts.endpoints.templateOf(endpoint)),
    },
    Mutation: mutations(parts),
  }
}

function myself({ access }: GraphqlParts, { caller }: GraphqlContext) {
  if (caller === null) return null
  return answered(async () => {
    access.requireManagement(caller, 'read')
    return { id: caller.owner, caller }
  })
}

function userResolvers({ endpoints, store }: GraphqlParts) {
  type User = { caller: Caller }
  return {
    endpoints: async ({ caller }: User) => (await endpoints.list(caller.owner)).map(endpointView),
    endpoint: async ({ caller }: User, { id }: { id: string }) => {
      const found = await store.endpoints.find(id as EndpointId)
      return found === null || found.owner !== caller.owner ? null : endpointView(found)
    },
    podTemplates: async ({ caller }: User) =>
      (await store.templates.list(caller.owner)).filter(({ listed }) => listed).map(templateView),
    secrets: async ({ caller }: User) => (await store.secrets.list(caller.owner)).map(secretView),
    serverlessDiscount: () => null,
  }
}

function mutations(parts: GraphqlParts) {
  const { templates, secrets, endpoints } = parts
  const asWriter =
    <Arguments, Result>(run: (caller: Caller, args: Arguments) => Promise<Result>) =>
    (_: unknown, args: Arguments, { caller }: GraphqlContext) =>
      answered(() => {
        if (caller === null) throw new GraphQLError('an API key is needed', { extensions: { http: { status: 401 } } })
        parts.access.requireManagement(caller, 'write')
        return run(caller, args)
      })
  return {
    saveEndpoint: asWriter((caller, { input }: { input: EndpointInput }) => saveEndpoint(parts, caller, input)),
    deleteEndpoint: asWriter(async (caller, { id }: { id: string }) => {
      if (!isEndpointId(id)) throw notFound('endpoint', id)
      await endpoints.remove(caller.owner, id)
      return null
    }),
    saveTemplate: asWriter((caller, { input }: { input?: TemplateFields | null }) =>
      saveTemplate(parts, caller, input ?? {}),
    ),
    deleteTemplate: asWriter(async (caller, { templateName }: { templateName?: string | null }) => {
      await templates.removeByName(caller.owner, templateName ?? '')
      return null
    }),
    secretCreate: asWriter(
      async (caller, { input }: { input: { name: string; value: string; description?: string | null } }) =>
        secretView(await secrets.create(caller.owner, input.name, input.value, input.description ?? null)),
    ),
    secretDelete: asWriter(async (caller, { id }: { id: string }) => {
      await secrets.remove(caller.owner, id as SecretId)
      return null
    }),
  }
}

async function saveEndpoint(parts: GraphqlParts, caller: Caller, input: EndpointInput) {
  const { endpoints, templates } = parts
  const before = input.id ? await endpoints.find(caller.owner, input.id as EndpointId) : null
  const { config, failures } = readEndpointInput(input, before)
  const problems = [...failures]
  if (before === null && !input.templateId && input.template == null)
    problems.push('templateId (or template) is needed')
  if (before === null && config.compute === undefined) problems.push('gpuIds (or instanceIds) is needed')
  if (problems.length > 0) throw invalid(problems)
  const own =
    input.template == null || input.templateId
      ? null
      : await saveTemplate(parts, caller, {
          name: `${input.name}-template`,
          volumeInGb: 0,
          isServerless: true,
          ...input.template,
        })
  const templateId = (input.templateId || own?.id) as TemplateId | undefined
  if (before !== null) {
    const changes = templateId === undefined ? config : { ...config, templateId }
    return endpointView(await endpoints.update(caller.owner, before.id, changes))
  }
  const whole = withDefaults({ ...config, name: input.name, compute: config.compute! })
  try {
    return endpointView(await endpoints.create(caller.owner, whole, templateId!))
  } catch (error) {
    if (own !== null) await templates.removeByName(caller.owner, own.name)
    throw error
  }
}

async function saveTemplate({ templates }: GraphqlParts, caller: Caller, fields: TemplateFields) {
  const given = readTemplateFields(fields)
  if (fields.id) return templateView(await templates.update(caller.owner, fields.id as TemplateId, given))
  const missing = [
    ...(given.name === undefined ? ['name is needed'] : []),
    ...(given.image === undefined ? ['imageName is needed'] : []),
    ...(given.diskGb === undefined ? ['containerDiskInGb is needed'] : []),
    ...(given.volumeGb === undefined ? ['volumeInGb is needed'] : []),
  ]
  const { name = '', image = '', diskGb = 0, volumeGb = 0 } = given
  if (missing.length > 0) throw invalid(missing)
  return templateView(
    await templates.create(caller.owner, { ...TEMPLATE_DEFAULTS, ...given, name, image, diskGb, volumeGb }),
  )
}

/** Errors for people pass with their message; the rest is masked by the server. */
async function answered<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (thrown) {
    if (thrown instanceof GraphQLError) throw thrown
    const error = toAppError(thrown)
    if (error.code === 'internal') throw thrown
    const http = error.status === 503 ? { http: { status: 503 } } : {}
    throw new GraphQLError(error.message, { extensions: { code: error.code, ...http } })
  }
}
