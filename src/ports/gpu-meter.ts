import type { GpuMemory } from '../core/hardware/gpu-memory.ts'

/** Measures the memory of the machine's NVIDIA cards. */
export interface GpuMeter {
  /**
   * The memory of each card now. Takes some hundredths of a second, ten seconds at most. Never rejects:
   * the result has the problem.
   * @param own the processes of our workers, by the pids that the host gives them
   */
  measure(own: ReadonlySet<number>): Promise<GpuMemory>
}
