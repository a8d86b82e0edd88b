/** Memory of cards for tests without a driver. */
import type { GpuMemory, ProcessOnCard } from '../../src/core/hardware/gpu-memory.ts'
import { withOwners } from '../../src/core/hardware/gpu-memory.ts'
import type { GpuMeter } from '../../src/ports/gpu-meter.ts'

const MIB = 2 ** 20
const TOTAL_BYTES = 24_576 * MIB

/** One card of 24 GB with the id of `aGpu(0)`, of which a test sets the use. */
export class PlayedCard implements GpuMeter {
  /** Number of readings. */
  readings = 0
  /** Programs on the card, with MiB. */
  programs: readonly { readonly pid: number; readonly name: string; readonly mib: number }[] = []
  /** The reason why a reading fails; null if it works. */
  problem: string | null = null
  /** Awaited by each reading. */
  delay: () => Promise<void> = async () => {}

  async measure(own: ReadonlySet<number>): Promise<GpuMemory> {
    this.readings += 1
    await this.delay()
    if (this.problem !== null) return { cards: [], problem: this.problem }
    const processes = this.programs.map(({ mib, ...program }): ProcessOnCard => ({ ...program, bytes: mib * MIB }))
    const usedBytes = processes.reduce((sum, { bytes }) => sum + bytes!, 0)
    const freeBytes = TOTAL_BYTES - usedBytes
    const card = { uuid: 'GPU-0', index: 0, totalBytes: TOTAL_BYTES, usedBytes, freeBytes, processes }
    return { cards: [withOwners(card, own)], problem: null }
  }
}
