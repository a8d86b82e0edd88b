import { type Availability, availabilityOf, cpuAvailability } from '../core/catalog.ts'
import { CPU_FLAVORS, type CpuFlavor, GPU_POOLS } from '../core/catalog-data.ts'
import { DATA_CENTERS, type DataCenter, GPU_TYPES, type GpuType } from '../core/catalog-types.ts'
import type { Ports } from '../ports/ports.ts'

/** A GPU type with what an hour of it costs in a serverless worker and how many of it one worker can have here. */
export interface PricedGpu extends GpuType {
  /** US dollars; null where no price is known. */
  readonly pricePerHour: number | null
  readonly here: number
}

/** The catalogue of hardware and places, with what this machine really has. */
export class Catalog {
  readonly #machine: Ports['machine']

  constructor({ machine }: Pick<Ports, 'machine'>) {
    this.#machine = machine
  }

  /** All GPU types that are known. */
  async gpus(): Promise<PricedGpu[]> {
    const { gpus } = await this.#machine.parts()
    return GPU_TYPES.map(type => ({
      ...type,
      pricePerHour: GPU_POOLS.find(pool => pool.id === type.pool)?.pricePerHour ?? null,
      here: gpus.filter(gpu => gpu.name === type.id).length,
    }))
  }

  /** How many workers with `count` of a GPU type this machine can run at once. */
  gpuAvailability(gpu: PricedGpu, count: number): Availability {
    return availabilityOf(Math.floor(gpu.here / count))
  }

  /** All CPU flavors that endpoints can use. */
  flavors(): readonly CpuFlavor[] {
    return CPU_FLAVORS
  }

  /** How many workers of a flavor with so many vCPUs this machine can run at once. */
  async flavorAvailability(flavor: CpuFlavor, vcpuCount: number): Promise<Availability> {
    return cpuAvailability(flavor.id, vcpuCount, await this.#machine.parts())
  }

  /** All data centers that endpoints and volumes can name. */
  dataCenters(): readonly DataCenter[] {
    return DATA_CENTERS
  }
}
