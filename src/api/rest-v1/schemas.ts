import { z } from '@hono/zod-openapi'
import { v1Shape } from '../dialect.ts'
import { ENDPOINT_MEMBERS } from '../endpoint-fields.ts'
import { ShortText, TEMPLATE_MEMBERS, Text } from '../template-fields.ts'

const Name = ShortText
const Ids = z.array(z.string().min(1).max(191)).max(100)

const { name, workersMin, workersMax, idleTimeout, ...otherFields } = v1Shape(ENDPOINT_MEMBERS)

/** Body that creates or changes an endpoint. A change may omit every member. */
export const EndpointFields = {
  name,
  templateId: Name.optional(),
  computeType: z.enum(['GPU', 'CPU']).optional(),
  gpuTypeIds: Ids.optional(),
  /** 0 as it is shown of a CPU endpoint. */
  gpuCount: z.int().min(0).max(64).optional(),
  gpuMemoryGb: z
    .union([z.number().min(0.5).max(1_024), z.literal('auto')])
    .nullable()
    .optional(),
  cpuFlavorIds: Ids.optional(),
  /** 0 as it is shown of a GPU endpoint. */
  vcpuCount: z.int().min(0).max(32).optional(),
  instanceIds: Ids.optional(),
  workersMin,
  workersMax,
  idleTimeout,
  scalerType: z.enum(['QUEUE_DELAY', 'REQUEST_COUNT']).optional(),
  scalerValue: z.number().min(0.5).optional(),
  dataCenterIds: Ids.nullable().optional(),
  networkVolumeId: z.string().max(191).nullable().optional(),
  networkVolumeIds: Ids.nullable().optional(),
  ...otherFields,
  flashboot: z.boolean().optional(),
  allowedCudaVersions: z.array(z.string().regex(/^\d+\.\d+$/)).optional(),
  minCudaVersion: z.string().nullable().optional(),
}

const {
  name: templateName,
  imageName,
  containerDiskInGb,
  volumeInGb,
  volumeMountPath,
  ...otherMembers
} = v1Shape(TEMPLATE_MEMBERS)
const { env, ports, readme, containerRegistryAuthId, ...flags } = otherMembers

/** Body that creates or changes a template. */
export const TemplateFields = {
  name: templateName,
  imageName,
  containerDiskInGb,
  volumeInGb,
  volumeMountPath,
  dockerEntrypoint: z.array(Text).max(1_000).optional(),
  dockerStartCmd: z.array(Text).max(1_000).optional(),
  env,
  ports,
  ...flags,
  readme,
  containerRegistryAuthId,
}

/** Body that saves a registry credential. */
export const RegistryFields = {
  name: Name,
  username: z.string().min(1).max(1_000),
  password: z.string().min(1).max(65_536),
}

/** Body that creates a network volume. */
export const VolumeFields = { name: Name, size: z.int().min(10).max(4096), dataCenterId: Name }

/** Body that changes a network volume. */
export const VolumeChanges = { name: Name.optional(), size: z.int().min(10).max(4096).optional() }

/** A flag in a query. */
export const Flag = z
  .enum(['true', 'false', '1', '0', ''])
  .transform(text => text !== 'false' && text !== '0')
  .optional()
