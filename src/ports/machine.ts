import type { MachineParts } from '../core/hardware/inventory.ts'

/**
 * The machine that workers run on. It publishes the topic `machine` when a reading differs from the one before.
 */
export interface Machine {
  /**
   * What it has, as far as it can be seen. The first answer may take some seconds; later ones come at once, with what
   * was read last, and lead to another read where that is old. Never rejects: the result has the problem.
   */
  parts(): Promise<MachineParts>
}
