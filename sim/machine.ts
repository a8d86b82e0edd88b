import type { MachineGpu, MachineParts } from '../src/core/hardware/inventory.ts'
import type { MachineMemory } from '../src/core/hardware/machine-use.ts'
import { type PlayedGpuOptions, PlayedGpus } from './played-gpus.ts'
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
  /** The driver of its cards; null where it suspends nothing. */
  readonly gpus: PlayedGpus | null

  /** @param gpus the part of its workers in the driver of the cards; null where it suspends nothing */
  constructor(world: World, gpus: Pick<PlayedGpuOptions, 'isFrozen' | 'isAlive' | 'onHold'> | null = null) {
    this.gpus = world.suspends && gpus !== null ? createGpus(world, gpus, () => this.#gpus) : null
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

  /** Another program takes memory of a card, or ends. @param gib 0 for its end */
  useForeign(gib: number): void {
    const { uuid, index } = this.#random.pick(this.#gpus)
    if (gib > 0) this.#world.count('foreign programs on cards')
    this.#world.trace.add('machine', `another program has ${gib} GiB of GPU ${index}`)
    this.gpus?.takeForeign(uuid!, gib * 2 ** 30)
  }

  /** All programs that are not workers end. */
  endForeign(): void {
    this.gpus?.foreign.clear()
  }

  /** Repairs all GPUs. */
  repair(): void {
    this.#world.trace.add('machine', 'all GPUs are well')
    this.#gpus = this.#gpus.map(gpu => ({ ...gpu, problem: null }))
  }
}

/** Copies take up to some seconds, and each step fails now and then. */
function createGpus(
  world: World,
  parts: Pick<PlayedGpuOptions, 'isFrozen' | 'isAlive' | 'onHold'>,
  cards: () => readonly MachineGpu[],
): PlayedGpus {
  const random = world.random('suspends')
  const gpus: PlayedGpus = new PlayedGpus({
    ...parts,
    clock: world.clock,
    copyMs: () => random.int(20, 3_000),
    fails: step => {
      const fails = random.chance(world.faults.worker / 8)
      if (fails) world.count(`suspends: ${step} failed`)
      return fails
    },
    onChange: () => {
      for (const { uuid, index } of cards())
        if (gpus.workerBytes(uuid!) > gpus.totalBytes)
          world.report(`workers use more memory of GPU ${index} than it has`)
    },
  })
  return gpus
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
