import type { Volume } from '../../core/endpoints/volume.ts'
import { FileError } from '../../core/files/file-error.ts'
import type { VolumeId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { VolumeFiles } from '../../ports/volume-files.ts'

/** Time after which a volume is measured again: workers write and remove files, too. */
const MEASURED_MS = 300_000
/** Shortest time between two measurements of a full volume. */
const AGAIN_MS = 10_000
/** Longest time that an upload waits for a measurement; then the last known figure counts. */
const WAIT_MS = 5_000
const MAX_VOLUMES = 1_000
const GIB = 1024 ** 3

/** The known use of a volume. */
interface Use {
  /** Bytes of the last measurement, and of uploads that ended after it began. */
  bytes: number
  /** Bytes of uploads that run. */
  runningBytes: number
  measuredMs: number | null
  measuring: Promise<void> | null
}

/** Keeps uploads within the sizes of volumes, as far as measurements that take a while can. */
export class VolumeUse {
  readonly #files
  readonly #clock
  readonly #uses = new Map<VolumeId, Use>()

  constructor(files: VolumeFiles, clock: Clock) {
    this.#files = files
    this.#clock = clock
  }

  /**
   * Counts an upload while `run` adds its bytes.
   * @throws FileError `QuotaExceeded` if the volume would be larger than its size
   */
  async adding<Value>({ id, sizeGb }: Volume, bytes: number, run: () => Promise<Value>): Promise<Value> {
    const use = this.#volumeUse(id)
    const isOver = () => use.bytes + use.runningBytes + bytes > sizeGb * GIB
    const ageMs = use.measuredMs === null ? Number.POSITIVE_INFINITY : this.#clock.monotonic() - use.measuredMs
    if (ageMs > MEASURED_MS || (isOver() && ageMs > AGAIN_MS)) await this.#measured(id, use)
    if (isOver()) {
      const problem = `the network volume would be larger than its ${sizeGb} GB; remove files, or make it larger`
      throw new FileError('QuotaExceeded', problem)
    }
    use.runningBytes += bytes
    try {
      const value = await run()
      use.bytes += bytes
      return value
    } finally {
      use.runningBytes -= bytes
    }
  }

  #volumeUse(id: VolumeId): Use {
    const use = this.#uses.get(id) ?? { bytes: 0, runningBytes: 0, measuredMs: null, measuring: null }
    this.#uses.delete(id)
    this.#uses.set(id, use)
    if (this.#uses.size > MAX_VOLUMES) this.#uses.delete(this.#uses.keys().next().value!)
    return use
  }

  /** Waits for a measurement, for a while. */
  async #measured(id: VolumeId, use: Use): Promise<void> {
    use.measuring ??= this.#measure(id, use).finally(() => {
      use.measuring = null
    })
    let stop = () => {}
    const late = new Promise<void>(resolve => {
      stop = this.#clock.after(WAIT_MS, resolve)
    })
    await Promise.race([use.measuring, late])
    stop()
  }

  async #measure(id: VolumeId, use: Use): Promise<void> {
    const previousBytes = use.bytes
    try {
      const measured = await this.#files.measure(id)
      // Uploads that ended in the meantime may be counted twice, until the next measurement.
      use.bytes = measured + (use.bytes - previousBytes)
    } catch (error) {
      if (!(error instanceof FileError)) throw error
    } finally {
      use.measuredMs = this.#clock.monotonic()
    }
  }
}
