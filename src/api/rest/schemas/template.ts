import { z } from '@hono/zod-openapi'
import { restShape } from '../../dialect.ts'
import { Image, OWN_MEMBERS } from '../../template-fields.ts'
import { Name, Pagination } from './common.ts'
import { ChangedContainerShape, ContainerShape, ContainerShown } from './endpoint.ts'

const Mounts = z
  .strictObject({
    persistent: z
      .strictObject({ size: z.int().min(10).max(1_000_000), path: z.string().min(1).max(1_000) })
      .openapi('PersistentMount')
      .optional(),
  })
  .openapi('TemplateMounts')

/** Other surfaces accept smaller volumes. */
const MountsShown = z
  .strictObject({ persistent: z.strictObject({ size: z.int().min(1), path: z.string() }).optional() })
  .openapi('TemplateMountsShown')

/** Body that creates a template. */
export const CreateTemplate = {
  ...ContainerShape,
  name: Name,
  image: Image,
  mounts: Mounts.optional(),
  ...restShape(OWN_MEMBERS, 'created'),
}

/** Body that changes a template. Omitted members are kept. */
export const UpdateTemplate = {
  ...ChangedContainerShape,
  name: Name.optional(),
  mounts: Mounts.optional(),
  ...restShape(OWN_MEMBERS, 'changed'),
}

/** A template as REST shows it. */
export const TemplateBody = z
  .object({
    id: z.string(),
    name: z.string(),
    ...ContainerShown,
    mounts: MountsShown,
    ...restShape(OWN_MEMBERS, 'shown'),
  })
  .openapi('Template')

/** The shape of {@link TemplateBody}. */
export type TemplateBody = z.infer<typeof TemplateBody>

/** A page of templates. */
export const TemplateList = z
  .object({ templates: z.array(TemplateBody), pagination: Pagination })
  .openapi('ListTemplatesResponse')

/** Templates of the catalog. */
export const CatalogTemplateList = z
  .object({ templates: z.array(TemplateBody) })
  .openapi('ListCatalogTemplatesResponse')

/** Query of the catalog's templates. */
export const CatalogTemplateQuery = {
  source: z.enum(['official', 'verified', 'community']).default('official').openapi({ default: 'official' }),
}
