import type { WorkerId } from '../src/core/ids.ts'
import type { WorkerSpec } from '../src/ports/driver.ts'
import type { ShareChecker } from './checks/share-checker.ts'
import type { PlayedGpus } from './played-gpus.ts'
import type { World } from './world.ts'

/** Variable of an endpoint: the memory that its program uses at work, in GiB. */
export const NEED_VARIABLE = 'NEED_GIB'

/** Memory of a program without the variable: it needs a whole card. */
const WHOLE_GIB = 20
/** Time in which a process is started. */
const START_MS = 400
/** Part of the memory that a program has before it works. */
const LOADED = 0.7
/** Growth of a program that does not keep to its share. */
const GREED = 1.6

/** Time after which a program that stands still is looked at again. */
const AGAIN_MS = 1_000

/** A program uses this much memory after a while. */
interface Growth {
  readonly gib: number
  readonly afterMs: number
  readonly isGreed: boolean
}

/** Parts that the programs use. */
export interface WorkerMemoryParts {
  readonly gpus: PlayedGpus
  readonly shares: ShareChecker
  /** Ends a program with this last line. */
  readonly fail: (worker: WorkerId, line: string) => void
}

/**
 * The memory of programs on cards with shares: they load, work with more, and some take more than they should. A
 * program that finds no memory ends.
 */
export class WorkerMemory {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** The program of a worker starts. */
  start({ workerId, env, placement }: WorkerSpec, parts: WorkerMemoryParts): void {
    const [gpu] = placement.gpus
    if (gpu === undefined) return
    const { clock, faults } = this.#world
    const random = this.#world.random(`memory of ${workerId}`)
    const need = env[NEED_VARIABLE] === undefined ? WHOLE_GIB : Number(env[NEED_VARIABLE])
    const isGreedy = env[NEED_VARIABLE] !== undefined && random.chance(faults.worker / 2)
    clock.after(START_MS, () => {
      const cards = placement.gpus.map(({ uuid }) => uuid ?? '')
      parts.gpus.start(workerId, cards, 0)
      this.#grow(workerId, need * LOADED, parts)
    })
    this.#growLater(workerId, { gib: need, afterMs: random.int(1_000, 20_000), isGreed: false }, parts)
    const greed = { gib: need * GREED, afterMs: random.int(2_000, 30_000), isGreed: true }
    if (isGreedy) this.#growLater(workerId, greed, parts)
  }

  /** A program that stands still grows when it runs again. Greed ends with the faults. */
  #growLater(worker: WorkerId, growth: Growth, parts: WorkerMemoryParts): void {
    this.#world.clock.after(growth.afterMs, () => {
      if (growth.isGreed && this.#world.faults.worker === 0) return
      const grown = this.#grow(worker, growth.gib, parts)
      if (grown === 'stands') this.#growLater(worker, { ...growth, afterMs: AGAIN_MS }, parts)
      if (grown === 'grown' && growth.isGreed) this.#world.count('greedy programs')
    })
  }

  #grow(worker: WorkerId, gib: number, { gpus, shares, fail }: WorkerMemoryParts): 'grown' | 'stands' | 'over' {
    const grown = gpus.grow(worker, gib)
    if (grown !== 'full') return grown
    this.#world.count('programs without GPU memory')
    shares.ranOut(worker, gib)
    fail(worker, 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.')
    return 'over'
  }
}
