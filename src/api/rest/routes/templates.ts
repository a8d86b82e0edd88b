import { changedEnv } from '../../../core/endpoints/saved-env.ts'
import { TEMPLATE_DEFAULTS, type Template, type TemplateInput } from '../../../core/endpoints/template.ts'
import type { TemplateId } from '../../../core/ids.ts'
import { readFields, restMembers } from '../../dialect.ts'
import type { ApiParts } from '../../parts.ts'
import { CONTAINER_MEMBERS, OWN_MEMBERS, TEMPLATE_MEMBERS } from '../../template-fields.ts'
import { containerRules, envChangeRules } from '../endpoint-rules.ts'
import { type Members, type RestRoute, type Rule, route } from '../route.ts'
import { DryRunQuery, IdParam, PageQuery, pagination } from '../schemas/common.ts'
import { CreateTemplate, TemplateBody, TemplateList, UpdateTemplate } from '../schemas/template.ts'

const TAG = 'Templates'
/** Default disk of a new template, in GB. */
const DISK_GB = 10
const ONE = '/v2/templates/{id}'

/** Routes of the caller's templates. */
export function templateRoutes({ templates }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/templates',
        operationId: 'listTemplates',
        tag: TAG,
        level: 'read',
        summary: 'The templates of the caller, oldest first',
        query: PageQuery,
        success: { status: 200, schema: TemplateList },
        problems: [400],
      },
      async ({ caller, query }) => {
        const { items, nextCursor } = await templates.list(caller.owner, query)
        return { templates: items.map(templateBody), pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'post',
        path: '/v2/templates',
        operationId: 'createTemplate',
        tag: TAG,
        level: 'write',
        reports: true,
        summary: 'Creates a template; with dryRun=true it is only checked, and shown as it would be',
        query: DryRunQuery,
        body: {
          name: 'CreateTemplateRequest',
          shape: CreateTemplate,
          rules: [noVolume as Rule<typeof CreateTemplate>, ...(containerRules as Rule<typeof CreateTemplate>[])],
        },
        success: { status: 201, schema: TemplateBody },
        problems: [400],
      },
      async ({ caller, query, body, report }) => {
        const defaults = { ...TEMPLATE_DEFAULTS, diskGb: DISK_GB, volumeGb: 0, ...changes(body) }
        const input = { ...defaults, name: body.name, image: body.image }
        const saved = await templates.save(caller, { config: input }, query.dryRun === 'true')
        report(saved)
        return templateBody(saved.template)
      },
    ),
    route(
      {
        method: 'get',
        path: ONE,
        operationId: 'getTemplate',
        tag: TAG,
        level: 'read',
        summary: 'One template',
        params: IdParam,
        success: { status: 200, schema: TemplateBody },
        problems: [404],
      },
      async ({ caller, params }) => templateBody(await templates.findVisible(caller.owner, params.id as TemplateId)),
    ),
    route(
      {
        method: 'patch',
        path: ONE,
        operationId: 'updateTemplate',
        tag: TAG,
        level: 'write',
        reports: true,
        summary:
          'Changes what is sent of a template; endpoints that use it get a new version. With dryRun=true the change is only checked, and shown',
        params: IdParam,
        query: DryRunQuery,
        body: {
          name: 'UpdateTemplateRequest',
          shape: UpdateTemplate,
          rules: [
            noVolume as Rule<typeof UpdateTemplate>,
            ...([...containerRules, ...envChangeRules] as Rule<typeof UpdateTemplate>[]),
          ],
        },
        success: { status: 200, schema: TemplateBody },
        problems: [400, 404],
      },
      async ({ caller, params, query, body, report }) => {
        const id = params.id as TemplateId
        const { envChanges } = body
        const given = (before: Template) => {
          return { ...changes(body), ...(envChanges && { env: changedEnv(before.env, envChanges) }) }
        }
        const saved = await templates.save(caller, { id, changes: given }, query.dryRun === 'true')
        report(saved)
        return templateBody(saved.template)
      },
    ),
    route(
      {
        method: 'delete',
        path: ONE,
        operationId: 'deleteTemplate',
        tag: TAG,
        level: 'write',
        summary: 'Removes a template that no endpoint uses',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [400, 404],
      },
      async ({ caller, params }) => templates.remove(caller.owner, params.id as TemplateId),
    ),
  ]
}

const noVolume: Rule<Pick<typeof UpdateTemplate, 'serverless' | 'mounts'>> = ({ serverless, mounts }) =>
  serverless === true && mounts?.persistent !== undefined
    ? ['$.mounts.persistent: a serverless template has no volume of its own']
    : []

function changes(body: Partial<Members<typeof UpdateTemplate>>): Partial<TemplateInput> {
  const { mounts } = body
  return {
    ...readFields<TemplateInput>(TEMPLATE_MEMBERS, 'rest', body),
    ...(mounts === undefined ? {} : volume(mounts.persistent)),
  }
}

function volume(mount: { size: number; path: string } | undefined): Partial<TemplateInput> {
  return mount === undefined ? { volumeGb: 0 } : { volumeGb: mount.size, volumeMountPath: mount.path }
}

/** A template as REST shows it. */
export function templateBody(template: Template): TemplateBody {
  const { id, name, volumeGb, volumeMountPath } = template
  const { image, ...container } = restMembers(CONTAINER_MEMBERS, template)
  return {
    id,
    name,
    image,
    ...container,
    mounts: volumeGb === 0 ? {} : { persistent: { size: volumeGb, path: volumeMountPath } },
    ...restMembers(OWN_MEMBERS, template),
  }
}
