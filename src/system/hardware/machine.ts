import { statfs } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import { gpuKey, gpuSummary, type MachineGpu, type MachineParts } from '../../core/hardware/inventory.ts'
import type { GpuUse, MachineDisk, MachineMemory } from '../../core/hardware/machine-use.ts'
import type { Emit } from '../../events.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Machine } from '../../ports/machine.ts'
import type { Notifier } from '../../ports/notifier.ts'
import { readAmd } from './amd-gpus.ts'
import { readAmdUse, readNvidiaUse, type UseByIndex } from './gpu-use.ts'
import { readMemory } from './memory.ts'
import { describeProblems, type GpuReading, readNvidia } from './nvidia-gpus.ts'
import type { ToolOptions } from './vendor-tool.ts'

/** Timeout of a vendor's tool. */
const TOOL_MS = 10_000
/** Age from which the parts are read again at their next use. */
export const FRESH_MS = 30_000
/** Delay of a repeated read: its caller is about to start a worker, and starting a tool would delay that. */
const LATER_MS = 200
/** Time for which GPUs that can no longer be read are still listed. */
export const KEPT_MS = 600_000
/** Age from which a measurement of the use of GPUs is outdated. */
export const USE_KEPT_MS = 60_000

/** Options of {@link createMachine}. */
export interface MachineOptions {
  readonly clock: Clock
  readonly notifier: Pick<Notifier, 'publish'>
  readonly emit: Emit
  /** Environment: its PATH finds the tools; its CUDA_VISIBLE_DEVICES limits the GPUs of workers. */
  readonly env: NodeJS.ProcessEnv
  readonly toolMs?: number
  /** The folder with the data of the server, whose disk is shown; none when left out. */
  readonly dataDir?: string
}

/** This machine: processors and memory that this process may use, and the GPUs that the vendors' tools list. */
export function createMachine(options: MachineOptions): Machine {
  return new ThisMachine(options)
}

/** The GPUs of one vendor. */
interface VendorGpus {
  gpus: readonly MachineGpu[]
  /** Time of the last read of each, in monotonic milliseconds. */
  readonly seenMs: Map<string, number>
}

/** Maximum duration of {@link describeGpus}. */
const SHOWN_WITHIN_MS = 2_000

/** A line for people: the GPUs and their use by workers. Resolves within two seconds. */
export async function describeGpus(
  machine: Machine,
  clock: Clock,
  { requireGpu }: { requireGpu: boolean },
): Promise<string> {
  const late = new Promise<null>(resolve => void clock.after(SHOWN_WITHIN_MS, () => resolve(null)))
  const parts = await Promise.race([machine.parts(), late])
  if (parts === null) return 'GPUs: they are still being read'
  const problem = parts.problem === null ? '' : ` (${parts.problem})`
  if (parts.gpus.length > 0) return `GPUs: ${gpuSummary(parts.gpus)}${problem}`
  const consequence = requireGpu
    ? 'workers of GPU endpoints wait (--require-gpu)'
    : 'workers of GPU endpoints run on the CPU; --require-gpu lets them wait instead'
  return `GPUs: none${problem}; ${consequence}`
}

class ThisMachine implements Machine {
  readonly #options
  readonly #vendors: readonly VendorGpus[] = [
    { gpus: [], seenMs: new Map() },
    { gpus: [], seenMs: new Map() },
  ]
  readonly #hung: ToolOptions['hung'] = new Map()
  #parts: MachineParts | null = null
  #reading: Promise<MachineParts> | null = null
  #readMs = Number.NEGATIVE_INFINITY
  #use: ReadonlyMap<string, GpuUse> = new Map()
  #measuredMs = Number.NEGATIVE_INFINITY
  #isMeasuring = false

  constructor(options: MachineOptions) {
    this.#options = options
  }

  parts(): Promise<MachineParts> {
    const isOld = this.#options.clock.monotonic() - this.#readMs >= FRESH_MS
    if (isOld && this.#reading === null) {
      const reading = this.#parts === null ? this.#read() : this.#later().then(() => this.#read())
      this.#reading = reading.finally(() => {
        this.#reading = null
        this.#readMs = this.#options.clock.monotonic()
      })
    }
    return this.#parts === null ? this.#reading! : Promise.resolve(this.#parts)
  }

  memory(): MachineMemory | null {
    return readMemory()
  }

  async disk(): Promise<MachineDisk | null> {
    const { dataDir } = this.#options
    if (dataDir === undefined) return null
    try {
      const { bavail, blocks, bsize } = await statfs(dataDir)
      return { availableBytes: bavail * bsize, totalBytes: blocks * bsize }
    } catch {
      return null
    }
  }

  gpuUse(): ReadonlyMap<string, GpuUse> {
    if (!this.#isMeasuring) {
      this.#isMeasuring = true
      void this.#measure().finally(() => {
        this.#isMeasuring = false
      })
    }
    const isOld = this.#options.clock.monotonic() - this.#measuredMs >= USE_KEPT_MS
    return isOld ? new Map() : this.#use
  }

  async #measure(): Promise<void> {
    const tool = this.#tool()
    const readings = [readNvidiaUse, readAmdUse].map(async (read, index) => {
      const { gpus } = this.#vendors[index]!
      return gpus.length === 0 ? [] : useByGpu(gpus, await read(tool))
    })
    this.#use = new Map((await Promise.all(readings)).flat())
    this.#measuredMs = this.#options.clock.monotonic()
  }

  #tool(): ToolOptions {
    const { clock, env, toolMs = TOOL_MS } = this.#options
    return { clock, env, timeoutMs: toolMs, hung: this.#hung }
  }

  #later(): Promise<void> {
    return new Promise(resolve => void this.#options.clock.after(LATER_MS, resolve))
  }

  async #read(): Promise<MachineParts> {
    const { env } = this.#options
    const memoryGb = Math.floor(ownMemory() / 2 ** 30)
    const tool = this.#tool()
    const readings = await Promise.all([readNvidia(tool, memoryGb), readAmd(tool)])
    const merged = readings.map((reading, index) => this.#merge(this.#vendors[index]!, reading))
    const problems = [...merged.flatMap(({ problem }) => problem ?? [])]
    const gpus = merged.flatMap(vendor => vendor.gpus).filter(visibleTo(env.CUDA_VISIBLE_DEVICES))
    const parts: MachineParts = {
      vcpus: availableParallelism(),
      memoryGb,
      gpus,
      problem: problems.length === 0 ? null : problems.join('; '),
      hadGpus: gpus.length > 0 || this.#parts?.hadGpus === true,
    }
    this.#report(parts)
    this.#parts = parts
    return parts
  }

  /** The GPUs of this read, and those of earlier reads that are missing in it for only a short time. */
  #merge(
    vendor: VendorGpus,
    { state, gpus, lost, problem }: GpuReading,
  ): { gpus: readonly MachineGpu[]; problem: string | null } {
    const nowMs = this.#options.clock.monotonic()
    const listed = new Set(gpus.map(gpuKey))
    const recent = vendor.gpus.filter(
      gpu => !listed.has(gpuKey(gpu)) && nowMs - (vendor.seenMs.get(gpuKey(gpu)) ?? 0) < KEPT_MS,
    )
    for (const key of listed) vendor.seenMs.set(key, nowMs)
    if (state === 'failed' || (state === 'missing' && vendor.gpus.length > 0)) {
      vendor.gpus = recent
      return { gpus: recent, problem: problem ?? 'the tool that lists the GPUs is gone' }
    }
    const missingGpus = recent.map(gpu => ({
      ...gpu,
      problem: isAmong(lost, gpu) ? 'it does not answer' : 'it is no longer listed',
    }))
    vendor.gpus = [...gpus, ...missingGpus].sort((a, b) => a.index - b.index)
    return {
      gpus: vendor.gpus,
      problem: describeProblems(
        vendor.gpus,
        lost.filter(id => !missingGpus.some(gpu => isAmong([id], gpu))),
      ),
    }
  }

  #report(parts: MachineParts): void {
    const { emit, notifier } = this.#options
    const previous = this.#parts
    if (previous !== null && JSON.stringify(previous) === JSON.stringify(parts)) return
    const { vcpus, memoryGb, gpus, problem } = parts
    emit('machine.changed', { vcpus, memoryGb, gpus: gpuSummary(gpus) })
    if (problem !== null && problem !== previous?.problem) emit('machine.problem', { problem })
    if (previous !== null) notifier.publish('machine')
  }
}

/** The use of the whole cards among these. The use of a partitioned card is not that of any of its parts. */
function useByGpu(gpus: readonly MachineGpu[], readings: UseByIndex): [string, GpuUse][] {
  return gpus.flatMap(gpu => {
    const use = gpu.mig === null ? readings.get(gpu.index) : undefined
    return use === undefined ? [] : [[gpuKey(gpu), use]]
  })
}

function isAmong(lost: readonly string[], { index, uuid }: MachineGpu): boolean {
  return lost.some(id => id === uuid || id === String(index))
}

/**
 * True for the GPUs that the variable names, by index or by the beginning of an id, as in CUDA; for all when it is
 * not set.
 */
function visibleTo(variable: string | undefined): (gpu: MachineGpu) => boolean {
  if (variable === undefined) return () => true
  const names = variable.split(',').map(name => name.trim())
  return ({ index, uuid }) =>
    names.some(name => (/^\d+$/.test(name) ? Number(name) === index : name !== '' && uuid?.startsWith(name) === true))
}

/** The memory that this process may use, in bytes. */
function ownMemory(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}
