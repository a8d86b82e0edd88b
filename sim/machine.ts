import type { MachineGpu, MachineParts } from '../src/core/hardware/inventory.ts'
import type { MachineMemory } from '../src/core/hardware/machine-use.ts'
import type { SeededRandom } from './random.ts'
import type { World } from './world.ts'

/** Maximum number of workers on the simulated machine. */
export const MACHINE_WORKERS = 14

const NAMES = { ADA_24: 'NVIDIA GeForce RTX 4090', AMPERE_24: 'NVIDIA L4' } as const

/** The machine of all workers. It has a few GPUs, of which one may fail for a while. */
export class SimMachine {
  readonly #world: World
  readonly #random: SeededRandom
  #gpus: readonly MachineGpu[]
  /** Free memory; null while the machine does not report it. */
  memory: MachineMemory | null = null

  constructor(world: World) {
    this.#world = world
    this.#random = world.random('hardware')
    const first = this.#random.int(1, 2)
    const second = this.#random.int(1, 2)
    this.#gpus = Array.from({ length: first + second }, (_, index) =>
      createGpu(index, index < first ? 'ADA_24' : 'AMPERE_24'),
    )
  }

  /** Its current parts. */
  get parts(): MachineParts {
    return { vcpus: 8, memoryGb: 24, gpus: this.#gpus, hadGpus: true, problem: null }
  }

  /** Number of GPUs of a pool. */
  countGpus(pool: keyof typeof NAMES): number {
    return this.#gpus.filter(({ name }) => name === NAMES[pool]).length
  }

  /** Makes one GPU fail. */
  breakGpu(): void {
    const { index } = this.#random.pick(this.#gpus)
    this.#world.count('failures of cards')
    this.#world.trace.add('machine', `GPU ${index} fails`)
    this.#gpus = this.#gpus.map(gpu => (gpu.index === index ? { ...gpu, problem: 'it does not answer' } : gpu))
  }

  /** Repairs all GPUs. */
  repair(): void {
    this.#world.trace.add('machine', 'all GPUs are well')
    this.#gpus = this.#gpus.map(gpu => ({ ...gpu, problem: null }))
  }
}

function createGpu(index: number, pool: keyof typeof NAMES): MachineGpu {
  return {
    index,
    uuid: `GPU-${index}`,
    name: NAMES[pool],
    vendor: 'NVIDIA',
    memoryGb: 24,
    driver: '550.54.15',
    cuda: '12.4',
    mig: null,
    problem: null,
  }
}
