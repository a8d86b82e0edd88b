import { notFound } from '../../../core/errors.ts'
import type { Availability } from '../../../core/hardware/catalog.ts'
import type { CpuFlavor } from '../../../core/hardware/catalog-data.ts'
import type { DataCenter } from '../../../core/hardware/catalog-types.ts'
import type { Templates } from '../../../services/endpoints/templates.ts'
import type { Catalog, PricedGpu } from '../../../services/hardware/catalog.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, type Rule, route } from '../route.ts'
import {
  CpuBody,
  CpuList,
  CpuQuery,
  DataCenterBody,
  DataCenterList,
  DataCenterListQuery,
  DataCenterQuery,
  GpuBody,
  GpuList,
  GpuQuery,
  VCPU_COUNTS,
} from '../schemas/catalog.ts'
import { IdParam } from '../schemas/common.ts'
import { CatalogTemplateList, CatalogTemplateQuery } from '../schemas/template.ts'
import { templateBody } from './templates.ts'

const TAG = 'Catalog'
/** vCPUs of the smallest worker of a flavor, used for the availability if the query has no size. */
const MIN_VCPUS = 2

/** Hardware and data centers that endpoints can choose, with this machine's own hardware. */
export function catalogRoutes({ catalog, templates }: ApiParts): RestRoute[] {
  return [...gpuRoutes(catalog), ...cpuRoutes(catalog), ...dataCenterRoutes(catalog), templateRoute(templates)]
}

function gpuRoutes(catalog: Catalog): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/catalog/gpus',
        operationId: 'listGpuTypes',
        tag: TAG,
        level: 'read',
        summary: 'All GPU types; those with a pool can be chosen for serverless endpoints',
        query: GpuQuery,
        queryRules: [needsInclude(['count', 'cloud', 'countryCodes', 'cudaVersions', 'minCudaVersion']), oneCudaLimit],
        success: { status: 200, schema: GpuList },
        problems: [400],
      },
      async ({ query }) => ({ gpus: (await catalog.gpus()).map(gpu => gpuBody(catalog, gpu, query)) }),
    ),
    route(
      {
        method: 'get',
        path: '/v2/catalog/gpus/{id}',
        operationId: 'getGpuType',
        tag: TAG,
        level: 'read',
        summary: 'One GPU type',
        params: IdParam,
        query: GpuQuery,
        queryRules: [needsInclude(['count', 'cloud', 'countryCodes', 'cudaVersions', 'minCudaVersion']), oneCudaLimit],
        success: { status: 200, schema: GpuBody },
        problems: [400, 404],
      },
      async ({ params, query }) => {
        const gpu = (await catalog.gpus()).find(({ id }) => id === params.id)
        if (gpu === undefined) throw notFound('GPU type', params.id)
        return gpuBody(catalog, gpu, query)
      },
    ),
  ]
}

function cpuRoutes(catalog: Catalog): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/catalog/cpus',
        operationId: 'listCpuTypes',
        tag: TAG,
        level: 'read',
        summary: 'All CPU flavors',
        query: CpuQuery,
        queryRules: [needsInclude(['vcpuCount']), powerOfTwo],
        success: { status: 200, schema: CpuList },
        problems: [400],
      },
      async ({ query }) => ({
        cpus: await Promise.all(catalog.flavors().map(flavor => cpuBody(catalog, flavor, query))),
      }),
    ),
    route(
      {
        method: 'get',
        path: '/v2/catalog/cpus/{id}',
        operationId: 'getCpuType',
        tag: TAG,
        level: 'read',
        summary: 'One CPU flavor',
        params: IdParam,
        query: CpuQuery,
        queryRules: [needsInclude(['vcpuCount']), powerOfTwo],
        success: { status: 200, schema: CpuBody },
        problems: [400, 404],
      },
      async ({ params, query }) => {
        const flavor = catalog.flavors().find(({ id }) => id === params.id)
        if (flavor === undefined) throw notFound('CPU flavor', params.id)
        return cpuBody(catalog, flavor, query)
      },
    ),
  ]
}

function dataCenterRoutes(catalog: Catalog): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/catalog/datacenters',
        operationId: 'listDataCenters',
        tag: TAG,
        level: 'read',
        summary: 'All data centers, as names that endpoints and volumes can carry',
        query: DataCenterListQuery,
        success: { status: 200, schema: DataCenterList },
        problems: [400],
      },
      async ({ query }) => {
        const { regions, compliance, globalNetwork } = query
        const chosen = catalog
          .dataCenters()
          .filter(({ region }) => regions === undefined || regions.includes(region))
          .filter(() => (compliance ?? []).length === 0 && globalNetwork !== true)
        return { dataCenters: await Promise.all(chosen.map(place => dataCenterBody(catalog, place, query))) }
      },
    ),
    route(
      {
        method: 'get',
        path: '/v2/catalog/datacenters/{id}',
        operationId: 'getDataCenter',
        tag: TAG,
        level: 'read',
        summary: 'One data center',
        params: IdParam,
        query: DataCenterQuery,
        success: { status: 200, schema: DataCenterBody },
        problems: [400, 404],
      },
      async ({ params, query }) => {
        const place = catalog.dataCenters().find(({ id }) => id === params.id)
        if (place === undefined) throw notFound('data center', params.id)
        return dataCenterBody(catalog, place, query)
      },
    ),
  ]
}

/** Public templates of the accounts of this installation. Official templates do not exist. */
function templateRoute(templates: Templates): RestRoute {
  return route(
    {
      method: 'get',
      path: '/v2/catalog/templates',
      operationId: 'listCatalogTemplates',
      tag: TAG,
      level: 'read',
      summary: 'Public templates; official and verified ones do not exist here',
      query: CatalogTemplateQuery,
      success: { status: 200, schema: CatalogTemplateList },
      problems: [400],
    },
    async ({ query }) => ({
      templates: query.source === 'community' ? (await templates.listPublic()).items.map(templateBody) : [],
    }),
  )
}

/** Filters of the availability require the availability, which requires the product. */
function needsInclude(filters: readonly string[]): Rule<Record<never, never>> {
  return (_, sent) => {
    const failures = sent.has('include')
      ? []
      : [...filters, 'product'].filter(name => sent.has(name)).map(name => `query.${name}: needs include=AVAILABILITY`)
    if (sent.has('include') && !sent.has('product')) failures.push('query.product: is required with include')
    return failures
  }
}

const oneCudaLimit: Rule<Record<never, never>> = (_, sent) =>
  sent.has('cudaVersions') && sent.has('minCudaVersion')
    ? ['query.minCudaVersion: excludes cudaVersions; send one of them']
    : []

const powerOfTwo: Rule<Pick<typeof CpuQuery, 'vcpuCount'>> = ({ vcpuCount }) =>
  vcpuCount === undefined || VCPU_COUNTS.includes(vcpuCount)
    ? []
    : ['query.vcpuCount: must be a power of two up to 1024']

function gpuBody(catalog: Catalog, gpu: PricedGpu, query: Partial<Members<typeof GpuQuery>>): GpuBody {
  const { id, name, pool, manufacturer, memoryGb, pricePerHour, here } = gpu
  // This machine counts as secure cloud. Community cloud and pods do not exist.
  const count = query.count ?? 1
  const wanted = query.cloud !== 'COMMUNITY' && (query.product ?? []).includes('SERVERLESS')
  return {
    id,
    name,
    pool,
    manufacturer,
    memory: memoryGb,
    secure: true,
    community: false,
    price: { secure: 0, community: 0, ...(pricePerHour === null ? {} : { serverless: pricePerHour }) },
    maxCount: { secure: here, community: 0 },
    ...(query.include === undefined
      ? {}
      : {
          availability: wanted ? catalog.gpuAvailability(gpu, count) : ('NONE' as const),
          dataCenters: wanted ? places(catalog, catalog.gpuPlaceAvailability(gpu, count)) : [],
        }),
  }
}

/** The data centers with this stock, which is that of all: they are names of this installation. */
function places(catalog: Catalog, availability: Availability) {
  if (availability === 'NONE') return []
  return catalog.dataCenters().map(({ id, name }) => ({ id, name, availability }))
}

async function cpuBody(
  catalog: Catalog,
  flavor: CpuFlavor,
  query: Partial<Members<typeof CpuQuery>>,
): Promise<CpuBody> {
  const { id, name, group, ramGbPerVcpu } = flavor
  const wanted = (query.product ?? []).includes('SERVERLESS')
  const availability = wanted ? await catalog.flavorAvailability(flavor, query.vcpuCount ?? MIN_VCPUS) : 'NONE'
  return {
    id,
    name,
    group,
    vcpu: { min: 2, max: 32 },
    ramGbPerVcpu: ramGbPerVcpu ?? 4,
    price: { securePerVcpu: 0, serverlessPerVcpu: catalog.vcpuPrice(flavor) },
    ...(query.include === undefined ? {} : { availability, dataCenters: wanted ? places(catalog, availability) : [] }),
  }
}

async function dataCenterBody(
  catalog: Catalog,
  { id, name, region }: DataCenter,
  { include = [] }: Partial<Members<typeof DataCenterQuery>>,
): Promise<DataCenterBody> {
  const gpus = include.includes('GPU_AVAILABILITY') ? await catalog.gpus() : null
  const flavors = include.includes('CPU_AVAILABILITY') ? catalog.flavors() : null
  return {
    id,
    name,
    region,
    globalNetwork: false,
    networkVolumeTypes: ['STANDARD', 'HIGH_PERFORMANCE'],
    compliance: [],
    ...(gpus === null
      ? {}
      : {
          gpuAvailability: gpus.map(gpu => ({
            id: gpu.id,
            name: gpu.name,
            availability: catalog.gpuAvailability(gpu, 1),
          })),
        }),
    ...(flavors === null
      ? {}
      : {
          cpuAvailability: await Promise.all(
            flavors.map(async flavor => ({
              id: flavor.id,
              name: flavor.name,
              availability: await catalog.flavorAvailability(flavor, MIN_VCPUS),
            })),
          ),
        }),
  }
}
