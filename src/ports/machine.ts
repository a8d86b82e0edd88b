import type { MachineParts } from '../core/hardware/inventory.ts'
import type { GpuUse, MachineDisk, MachineMemory } from '../core/hardware/machine-use.ts'

/**
 * The machine that workers run on. It publishes the topic `machine` when a reading differs from the one before.
 */
export interface Machine {
  /**
   * Its visible hardware. The first answer may take some seconds; later ones come at once, with the
   * last reading, and start another reading if that is old. Never rejects: the result has the problem.
   */
  parts(): Promise<MachineParts>
  /**
   * The memory that is left now; where a control group limits this server more tightly, of that. Null where the system
   * does not show it.
   */
  memory(): MachineMemory | null
  /** The disk with the data of the server; null where that is not known. */
  disk(): Promise<MachineDisk | null>
  /**
   * The use of its GPUs by `gpuKey`, as last measured. Each call starts the next measurement, so a caller that asks
   * every 20 s gets values of 20 s ago. Empty at first; without the GPUs of which nothing is known; empty where the
   * last measurement failed or is over a minute old.
   */
  gpuUse(): ReadonlyMap<string, GpuUse>
}
