import { z } from '@hono/zod-openapi'

const Text = z.string().max(65_536)
const Name = z.string().min(1).max(191)
const Ids = z.array(z.string().min(1).max(191)).max(100)
const Environment = z.record(z.string(), z.string())

/** Body that creates or changes an endpoint. A change may omit every member. */
export const EndpointFields = {
  name: Name.optional(),
  templateId: Name.optional(),
  computeType: z.enum(['GPU', 'CPU']).optional(),
  gpuTypeIds: Ids.optional(),
  /** 0 as it is shown of a CPU endpoint. */
  gpuCount: z.int().min(0).max(64).optional(),
  cpuFlavorIds: Ids.optional(),
  /** 0 as it is shown of a GPU endpoint. */
  vcpuCount: z.int().min(0).max(32).optional(),
  instanceIds: Ids.optional(),
  workersMin: z.int().min(0).optional(),
  workersMax: z.int().min(0).optional(),
  idleTimeout: z.int().min(1).max(3600).optional(),
  scalerType: z.enum(['QUEUE_DELAY', 'REQUEST_COUNT']).optional(),
  scalerValue: z.number().min(0.5).optional(),
  dataCenterIds: Ids.nullable().optional(),
  networkVolumeId: z.string().max(191).nullable().optional(),
  networkVolumeIds: Ids.nullable().optional(),
  executionTimeoutMs: z.int().optional(),
  env: Environment.optional(),
  flashboot: z.boolean().optional(),
  allowedCudaVersions: z.array(z.string().regex(/^\d+\.\d+$/)).optional(),
  minCudaVersion: z.string().nullable().optional(),
}

/** Body that creates or changes a template. */
export const TemplateFields = {
  name: Name.optional(),
  imageName: Text.min(1).optional(),
  containerDiskInGb: z.int().min(1).optional(),
  volumeInGb: z.int().min(0).optional(),
  volumeMountPath: Text.optional(),
  dockerEntrypoint: z.array(Text).max(1_000).optional(),
  dockerStartCmd: z.array(Text).max(1_000).optional(),
  env: Environment.optional(),
  ports: z.array(z.string()).max(50).optional(),
  isServerless: z.boolean().optional(),
  isPublic: z.boolean().optional(),
  category: z.enum(['NVIDIA', 'CPU', 'AMD']).optional(),
  readme: Text.optional(),
  containerRegistryAuthId: z.string().max(191).nullable().optional(),
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
