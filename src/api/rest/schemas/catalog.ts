import { z } from '@hono/zod-openapi'
import { commaList } from '../validate.ts'
import { CudaVersion } from './common.ts'

const Level = z.enum(['NONE', 'LOW', 'MEDIUM', 'HIGH']).openapi('AvailabilityLevel')
const Price = z.number().openapi({ format: 'float' })
const Place = z.object({ id: z.string(), name: z.string(), availability: Level }).openapi('DataCenterAvailability')

/** A GPU type of the catalog. */
export const GpuBody = z
  .object({
    id: z.string(),
    name: z.string(),
    pool: z.string().nullable(),
    manufacturer: z.enum(['NVIDIA', 'AMD', 'UNKNOWN']).openapi('GpuManufacturer'),
    memory: z.int(),
    secure: z.boolean(),
    community: z.boolean(),
    price: z.object({ secure: Price, community: Price, serverless: Price.optional() }),
    maxCount: z.object({ secure: z.int(), community: z.int() }),
    availability: Level.optional(),
    dataCenters: z.array(Place).optional(),
    cudaVersions: z
      .array(z.object({ version: CudaVersion, available: z.boolean() }).openapi('CudaVersionAvailability'))
      .optional(),
  })
  .openapi('GpuType')

/** The shape of {@link GpuBody}. */
export type GpuBody = z.infer<typeof GpuBody>

/** All GPU types. */
export const GpuList = z.object({ gpus: z.array(GpuBody) }).openapi('ListGpuTypesResponse')

/** A CPU flavor of the catalog. */
export const CpuBody = z
  .object({
    id: z.string(),
    name: z.string(),
    group: z.string(),
    vcpu: z.object({ min: z.int(), max: z.int() }),
    ramGbPerVcpu: z.number().openapi({ format: 'float' }),
    price: z.object({ securePerVcpu: Price, serverlessPerVcpu: Price }),
    availability: Level.optional(),
    dataCenters: z.array(Place).optional(),
  })
  .openapi('CpuType')

/** The shape of {@link CpuBody}. */
export type CpuBody = z.infer<typeof CpuBody>

/** All CPU flavors. */
export const CpuList = z.object({ cpus: z.array(CpuBody) }).openapi('ListCpuTypesResponse')

const Resource = z
  .object({ id: z.string(), name: z.string(), availability: Level })
  .openapi('CatalogResourceAvailability')

const Region = z
  .enum([
    'NORTH_AMERICA',
    'SOUTH_AMERICA',
    'EUROPE',
    'ASIA',
    'MIDDLE_EAST',
    'AFRICA',
    'OCEANIA',
    'ANTARCTICA',
    'UNKNOWN',
  ])
  .openapi('DataCenterRegion')

const VolumeType = z.enum(['STANDARD', 'HIGH_PERFORMANCE']).openapi('VolumeType')

const Compliance = z
  .enum([
    ...(['GDPR', 'ISO_IEC_27001', 'ISO_14001', 'PCI_DSS', 'HITRUST', 'SOC_1_TYPE_2', 'SOC_2_TYPE_2'] as const),
    ...(['SOC_3_TYPE_2', 'ITAR', 'FISMA_HIGH', 'HIPAA', 'RENEWABLE'] as const),
  ])
  .openapi('Compliance')

/** A data center of the catalog. */
export const DataCenterBody = z
  .object({
    id: z.string(),
    name: z.string(),
    region: Region,
    globalNetwork: z.boolean(),
    networkVolumeTypes: z.array(VolumeType),
    compliance: z.array(Compliance),
    gpuAvailability: z.array(Resource).optional(),
    cpuAvailability: z.array(Resource).optional(),
  })
  .openapi('DataCenter')

/** The shape of {@link DataCenterBody}. */
export type DataCenterBody = z.infer<typeof DataCenterBody>

/** All data centers. */
export const DataCenterList = z.object({ dataCenters: z.array(DataCenterBody) }).openapi('ListDataCentersResponse')

const Include = commaList(z.enum(['AVAILABILITY']), 1)

function integer(min: number) {
  const maximum = Number.MAX_SAFE_INTEGER
  return z.coerce.number().int().min(min).max(maximum).openapi({ type: 'integer', minimum: min, maximum })
}

/** Accepted numbers of vCPUs: powers of two. */
export const VCPU_COUNTS = Array.from({ length: 10 }, (_, n) => 2 ** (n + 1))

/** Query of the list of GPU types. */
export const GpuQuery = {
  include: Include,
  product: commaList(z.enum(['POD', 'CLUSTER', 'SERVERLESS'])),
  count: integer(1).optional().openapi({ default: 1 }),
  cloud: z.enum(['SECURE', 'COMMUNITY']).optional(),
  countryCodes: commaList(z.string().regex(/^[A-Z]{2}$/, 'must be two capital letters')),
  cudaVersions: commaList(CudaVersion),
  minCudaVersion: z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'must be of the form major.minor')
    .optional(),
}

/** Query of the list of CPU flavors. */
export const CpuQuery = {
  include: Include,
  product: commaList(z.enum(['POD', 'SERVERLESS'])),
  vcpuCount: integer(2).optional().openapi({ enum: VCPU_COUNTS }),
}

const DataCenterInclude = commaList(z.enum(['GPU_AVAILABILITY', 'CPU_AVAILABILITY']))

/** Query of one data center. */
export const DataCenterQuery = { include: DataCenterInclude }

/** Query of the list of data centers. */
export const DataCenterListQuery = {
  include: DataCenterInclude,
  regions: commaList(Region),
  networkVolumeTypes: commaList(VolumeType),
  compliance: commaList(Compliance),
  globalNetwork: z
    .enum(['true', 'false'])
    .transform(text => text === 'true')
    .optional()
    .openapi({ type: 'boolean' }),
}
