import { CATALOG_PRICES, dollars, hourlyPrice, type PriceList } from '../../core/billing/prices.ts'
import { type Availability, availabilityFromCount, cpuAvailability } from '../../core/hardware/catalog.ts'
import { CPU_FLAVORS, type CpuFlavor, GPU_POOLS } from '../../core/hardware/catalog-data.ts'
import { DATA_CENTERS, type DataCenter, GPU_TYPES, type GpuType } from '../../core/hardware/catalog-types.ts'
import { cataloged, gpuKey, typesHere } from '../../core/hardware/inventory.ts'
import { withoutGpus } from '../../core/placement/placement-fit.ts'
import { PLACEMENT_RULES, type PlacementRules } from '../../core/placement/placement-input.ts'
import type { Ports } from '../../ports/ports.ts'

/**
 * A GPU type with its price for an hour in a serverless worker and the number of them that one worker can have here.
 */
export interface PricedGpu extends GpuType {
  /** US dollars; null for an unknown price. */
  readonly pricePerHour: number | null
  readonly here: number
  /** Number of them without a worker; null where a platform places workers, which alone knows it. */
  readonly free: number | null
  /**
   * Resources of the machine that workers with GPUs share without a limit of their own; null where a platform places
   * workers.
   */
  readonly vcpusHere: number | null
  readonly memoryGbHere: number | null
  /** True if workers that ask for it run on the CPU, because this machine never had a GPU. */
  readonly onCpu: boolean
}

/** Number of GPUs of any type that one worker is expected to get on a platform: that of large machines. */
const PLATFORM_GPUS = 8
/** Stock that is reported for hardware of a platform, which is unknown: neither empty nor plenty. */
const UNKNOWN_STOCK: Availability = 'MEDIUM'

/**
 * Catalog of hardware and places, with the hardware of this machine. A platform for containers may have any hardware.
 */
export class Catalog {
  readonly #ports
  readonly #prices
  readonly #rules

  /**
   * @param prices displayed prices; those of the hosted service, for comparison, where this installation has none
   * @param rules rules of the placement
   */
  constructor(
    ports: Ports,
    prices: PriceList = CATALOG_PRICES,
    rules: Pick<PlacementRules, 'requireGpu'> = PLACEMENT_RULES,
  ) {
    this.#ports = ports
    this.#prices = prices
    this.#rules = rules
  }

  /** True if containers run on a platform that places them. */
  #isElsewhere(): boolean {
    return this.#ports.driver.placedBy('') === 'platform'
  }

  /** All GPU types that are known or that this machine has, with the pools that they have here. */
  async gpus(): Promise<PricedGpu[]> {
    if (this.#isElsewhere()) {
      const anything = { here: PLATFORM_GPUS, free: null, vcpusHere: null, memoryGbHere: null, onCpu: false }
      return [...GPU_TYPES].sort(byId).map(type => ({ ...type, pricePerHour: this.#gpuPrice(type.pool), ...anything }))
    }
    const parts = await this.#ports.machine.parts()
    const local = typesHere(parts)
    const types = [...GPU_TYPES.filter(({ id }) => !local.some(type => type.id === id)), ...local]
    const onCpu = withoutGpus({ parts, rules: this.#rules })
    const takenGpus = local.length === 0 ? new Set() : await this.#taken()
    const workingGpus = parts.gpus.filter(({ problem }) => problem === null).map(cataloged)
    return types.sort(byId).map(type => {
      const localGpus = workingGpus.filter(gpu => gpu.type === type.id)
      return {
        ...type,
        pricePerHour: this.#gpuPrice(type.pool),
        here: localGpus.length,
        free: localGpus.filter(({ gpu }) => !takenGpus.has(gpuKey(gpu))).length,
        vcpusHere: Math.floor(parts.vcpus),
        memoryGbHere: Math.floor(parts.memoryGb),
        onCpu,
      }
    })
  }

  async #taken(): Promise<ReadonlySet<string>> {
    const workers = await this.#ports.store.workers.alive()
    return new Set(workers.flatMap(({ placement }) => (placement?.gpus ?? []).map(gpuKey)))
  }

  /** Price of a vCPU for an hour in a serverless worker, in US dollars. */
  vcpuPrice({ id }: CpuFlavor): number {
    return dollars(hourlyPrice(this.#prices, `cpu:${id}`).micros)
  }

  /** Null for an unknown price. */
  #gpuPrice(pool: string | null): number | null {
    if (pool === null) return null
    const isPriced = this.#prices !== CATALOG_PRICES || GPU_POOLS.find(({ id }) => id === pool)?.pricePerHour != null
    return isPriced ? dollars(hourlyPrice(this.#prices, `gpu:${pool}`).micros) : null
  }

  /** Stock for more workers with `count` GPUs of a type, all running at once. */
  gpuAvailability({ free }: Pick<PricedGpu, 'free'>, count: number): Availability {
    return free === null ? UNKNOWN_STOCK : availabilityFromCount(Math.floor(free / count))
  }

  /**
   * Stock of a type in each data center: all of them are this installation, so an endpoint of this type may be in
   * any. An endpoint can wait for GPUs that others have, so they count as `LOW`, as do those that the CPU replaces.
   */
  gpuPlaceAvailability(gpu: PricedGpu, count: number): Availability {
    const level = this.gpuAvailability(gpu, count)
    return level === 'NONE' && (gpu.onCpu || gpu.here >= count) ? 'LOW' : level
  }

  /** All CPU flavors that endpoints can use. */
  flavors(): readonly CpuFlavor[] {
    return CPU_FLAVORS
  }

  /** Number of workers of a flavor with that many vCPUs that can run here at once. */
  async flavorAvailability(flavor: CpuFlavor, vcpuCount: number): Promise<Availability> {
    if (this.#isElsewhere()) return UNKNOWN_STOCK
    return cpuAvailability(flavor.id, vcpuCount, await this.#ports.machine.parts())
  }

  /** All data centers that endpoints and volumes can name. */
  dataCenters(): readonly DataCenter[] {
    return DATA_CENTERS
  }
}

function byId(a: GpuType, b: GpuType): number {
  return a.id < b.id ? -1 : 1
}
