import { mayManage } from '../../../core/accounts/permission.ts'
import { parseInstanceId } from '../../../core/endpoints/instance-id.ts'
import type { Availability } from '../../../core/hardware/catalog.ts'
import { type CpuFlavor, GPU_POOLS } from '../../../core/hardware/catalog-data.ts'
import type { DataCenter } from '../../../core/hardware/catalog-types.ts'
import type { TemplateId } from '../../../core/ids.ts'
import type { Catalog, PricedGpu } from '../../../services/hardware/catalog.ts'
import type { ApiParts } from '../../parts.ts'
import type { GraphqlContext } from '../context.ts'
import type { NullableFields } from '../inputs.ts'
import { templateView } from '../views.ts'

/** Requirements of a worker besides its GPU. */
export interface WantedGpus {
  readonly gpuCount: number
  readonly secureCloud: boolean
  readonly minMemoryInGb: number
  readonly minVcpuCount: number
}

type Input<Fields> = { readonly input?: NullableFields<Fields> | null }

const STOCK: Readonly<Record<Availability, string | null>> = { NONE: null, LOW: 'Low', MEDIUM: 'Medium', HIGH: 'High' }
/** vCPUs of the smallest worker of a flavor, used for the stock if no size is given. */
const MIN_VCPUS = 1
const MAX_VCPUS = 32

/** Queries that need no key. */
export function catalogQueries({ ports: { store }, catalog, templates }: ApiParts) {
  return {
    gpuTypes: async (_: unknown, { input }: Input<{ id: string; ids: string[] }>, { loaders }: GraphqlContext) => {
      const gpus = await loaders.gpus()
      const wanted = gpus.filter(
        ({ id }) => (input?.id == null || input.id === id) && (input?.ids == null || input.ids.includes(id)),
      )
      return wanted.map(gpuView)
    },
    cpuFlavors: (_: unknown, { input }: Input<{ id: string }>) =>
      catalog
        .flavors()
        .filter(({ id }) => input?.id == null || input.id === id)
        .map(flavorView),
    dataCenters: () => catalog.dataCenters().map(dataCenterView),
    serverlessGpuPools: () =>
      GPU_POOLS.map(({ id, gpuTypes, memoryGb }) => ({ id, gpuTypeIds: gpuTypes, memoryInGb: memoryGb })),
    podTemplates: async (_: unknown, { input }: Input<{ isRunpod: boolean }>) =>
      input?.isRunpod === true ? [] : (await templates.listPublic()).items.map(templateView),
    podTemplate: async (_: unknown, { id }: { id: string }, { caller }: GraphqlContext) => {
      const own =
        caller !== null && mayManage(caller, 'read') ? await store.templates.find(caller.owner, id as TemplateId) : null
      if (own !== null) return templateView(own)
      const template = await store.templates.findPublic(id as TemplateId)
      return template === null ? null : templateView({ ...template, registry: null })
    },
  }
}

/** Catalog fields that depend on arguments. */
export function catalogFields({ catalog }: ApiParts) {
  return {
    GpuType: {
      lowestPrice: ({ gpu }: { gpu: PricedGpu }, { input }: Input<WantedGpus>) =>
        lowestPrice(catalog, gpu, input ?? {}),
    },
    CpuFlavor: {
      specifics: async ({ flavor }: { flavor: CpuFlavor }, { input }: Input<{ instanceId: string }>) => {
        const config = input?.instanceId ? parseInstanceId(input.instanceId) : null
        const known = !input?.instanceId || config?.flavor === flavor.id
        const stock = known ? await catalog.flavorAvailability(flavor, config?.vcpuCount ?? MIN_VCPUS) : 'NONE'
        return { stockStatus: STOCK[stock], securePrice: 0, slsPrice: 0 }
      },
    },
    DataCenter: {
      gpuAvailability: async (_: unknown, { input }: Input<{ gpuCount: number }>, { loaders }: GraphqlContext) =>
        (await loaders.gpus()).map(gpu => {
          const stockStatus = STOCK[catalog.gpuAvailability(gpu, Math.max(1, input?.gpuCount ?? 1))]
          return {
            id: gpu.id,
            gpuTypeId: gpu.id,
            gpuTypeDisplayName: gpu.name,
            displayName: gpu.name,
            stockStatus,
            available: stockStatus !== null,
          }
        }),
    },
  }
}

/**
 * The share of a GPU type that one worker can have on this machine. It counts as secure cloud; a community cloud does
 * not exist.
 */
function lowestPrice(catalog: Catalog, gpu: PricedGpu, wanted: NullableFields<WantedGpus>) {
  const { vcpusHere, memoryGbHere } = gpu
  const isHere = wanted.secureCloud !== false
  const isEnough =
    (memoryGbHere === null || (wanted.minMemoryInGb ?? 0) <= memoryGbHere) &&
    (vcpusHere === null || (wanted.minVcpuCount ?? 0) <= vcpusHere)
  const free = isHere && isEnough ? gpu.free : 0
  const stock = catalog.gpuAvailability({ ...gpu, free }, Math.max(1, wanted.gpuCount ?? 1))
  const machine = stock === 'NONE' ? { memory: null, vcpus: null } : { memory: memoryGbHere, vcpus: vcpusHere }
  return {
    gpuName: gpu.name,
    gpuTypeId: gpu.id,
    minimumBidPrice: null,
    uninterruptablePrice: 0,
    minMemory: machine.memory,
    minVcpu: machine.vcpus,
    rentedCount: null,
    totalCount: isHere ? gpu.here : 0,
    supportPublicIp: false,
    compliance: [],
    maxGpuCount: isHere ? gpu.here : 0,
    maxUnreservedGpuCount: free,
    availableGpuCounts: Array.from({ length: free ?? gpu.here }, (_, index) => index + 1),
    gpuTypeDatacenters: () =>
      catalog.dataCenters().map(({ id }) => ({
        dataCenterId: id,
        supportNetworkVolumes: true,
        availability: stock === 'NONE' ? 'UNAVAILABLE' : 'AVAILABLE',
      })),
    gpuTypeCudaVersions: [],
    stockStatus: STOCK[stock],
  }
}

function gpuView(gpu: PricedGpu) {
  const { id, name, manufacturer, memoryGb, here } = gpu
  return {
    gpu,
    id,
    displayName: name,
    manufacturer: manufacturer === 'AMD' ? 'AMD' : 'Nvidia',
    memoryInGb: memoryGb,
    cudaCores: null,
    secureCloud: true,
    communityCloud: false,
    securePrice: 0,
    communityPrice: 0,
    oneWeekPrice: null,
    oneMonthPrice: null,
    threeMonthPrice: null,
    secureSpotPrice: null,
    communitySpotPrice: null,
    maxGpuCount: here,
    maxGpuCountSecureCloud: here,
    maxGpuCountCommunityCloud: 0,
    minPodGpuCount: 1,
    nodeGroupGpuSizes: [],
    nodeGroupDatacenters: [],
  }
}

function flavorView(flavor: CpuFlavor) {
  const { id, name, group, ramGbPerVcpu } = flavor
  return {
    flavor,
    id,
    groupId: id.slice(0, -1),
    groupName: group,
    displayName: name,
    minVcpu: MIN_VCPUS,
    maxVcpu: MAX_VCPUS,
    vcpuBurstable: false,
    ramMultiplier: ramGbPerVcpu ?? 4,
    diskLimitPerVcpu: null,
  }
}

function dataCenterView({ id, name, region, country }: DataCenter) {
  return {
    id,
    name,
    location: country,
    region,
    listed: true,
    storageSupport: true,
    globalNetwork: false,
    compliance: [],
  }
}
