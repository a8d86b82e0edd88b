import { z } from '@hono/zod-openapi'
import { MAX_CUDA_VERSIONS } from '../../../core/endpoints/template.ts'
import { CudaVersion, Name, Pagination } from './common.ts'
import { ChangedContainerShape, ContainerShape, ContainerShown, Image } from './endpoint.ts'

const Category = z.enum(['NVIDIA', 'CPU', 'AMD']).openapi('TemplateCategory')

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

const CudaVersions = z.array(CudaVersion).max(MAX_CUDA_VERSIONS)

/** Body that creates a template. */
export const CreateTemplate = {
  ...ContainerShape,
  name: Name,
  image: Image,
  mounts: Mounts.optional(),
  serverless: z.boolean().default(false),
  public: z.boolean().default(false),
  category: Category.default('NVIDIA').openapi({ default: 'NVIDIA' }),
  startSsh: z.boolean().default(true),
  startJupyter: z.boolean().default(true),
  allowedCudaVersions: CudaVersions.optional(),
}

/** Body that changes a template. Omitted members are kept. */
export const UpdateTemplate = {
  ...ChangedContainerShape,
  name: Name.optional(),
  mounts: Mounts.optional(),
  serverless: z.boolean().optional(),
  public: z.boolean().optional(),
  category: Category.optional(),
  startSsh: z.boolean().optional(),
  startJupyter: z.boolean().optional(),
  allowedCudaVersions: CudaVersions.optional(),
}

/** A template as REST shows it. */
export const TemplateBody = z
  .object({
    id: z.string(),
    name: z.string(),
    ...ContainerShown,
    mounts: MountsShown,
    serverless: z.boolean(),
    public: z.boolean(),
    category: Category,
    startSsh: z.boolean(),
    startJupyter: z.boolean(),
    allowedCudaVersions: z.array(z.string()),
  })
  .openapi('Template')

/** The shape of {@link TemplateBody}. */
export type TemplateBody = z.infer<typeof TemplateBody>

/** A page of templates. */
export const TemplateList = z
  .object({ templates: z.array(TemplateBody), pagination: Pagination })
  .openapi('ListTemplatesResponse')

/** Templates of the catalogue. */
export const CatalogTemplateList = z
  .object({ templates: z.array(TemplateBody) })
  .openapi('ListCatalogTemplatesResponse')

/** Query of the catalogue's templates. */
export const CatalogTemplateQuery = {
  source: z.enum(['official', 'verified', 'community']).default('official').openapi({ default: 'official' }),
}
