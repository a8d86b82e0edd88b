import type { WorkerId } from '../src/core/ids.ts'
import type { LogLine, LogPage, LogReader, PlacedLine, WorkerLogs } from '../src/ports/worker-logs.ts'

const PAGE_LINES = 100

/**
 * The output of simulated workers in memory. It outlives the server, like the real files. A
 * position is the number of a line.
 */
export class SimLogs implements WorkerLogs {
  readonly #now: () => number
  readonly #outputs = new Map<WorkerId, PlacedLine[]>()
  readonly #watches = new Map<WorkerId, Set<() => void>>()

  /** @param now the time of a printed line */
  constructor(now: () => number) {
    this.#now = now
  }

  /** A worker prints a line. */
  append(worker: WorkerId, line: string, jobId: string | null = null, isMidLine = false): void {
    const lines = this.#outputs.get(worker) ?? []
    this.#outputs.set(worker, lines)
    const position = (lines.at(-1)?.position ?? 0) + 1
    lines.push({ line, jobId, ...(isMidLine ? { isMidLine } : {}), position, tsMs: this.#now() })
    for (const listener of [...(this.#watches.get(worker) ?? [])]) listener()
  }

  /** Keeps only the last lines of an output, like the cut of a long file. */
  cut(worker: WorkerId, keep: number): void {
    this.#outputs.set(worker, this.#output(worker).slice(-keep))
  }

  /** The workers that have an output. */
  workers(): WorkerId[] {
    return [...this.#outputs.keys()]
  }

  /** Number of listeners on all outputs. */
  watching(): number {
    return [...this.#watches.values()].reduce((sum, { size }) => sum + size, 0)
  }

  mark(): void {}

  folder(worker: WorkerId): string {
    return `/sim/logs/${worker}`
  }

  async tail(worker: WorkerId, lines: number): Promise<LogLine[]> {
    return lines === 0 ? [] : this.#output(worker).slice(-lines).map(bare)
  }

  reader(worker: WorkerId, from: number): LogReader {
    let behind = from
    const next = async (): Promise<LogPage> => {
      const output = this.#output(worker)
      behind = Math.min(behind, output.at(-1)?.position ?? 0)
      const missed = Math.max(0, (output[0]?.position ?? 1) - 1 - behind)
      const fresh = output.filter(({ position }) => position > behind)
      const lines = fresh.slice(0, PAGE_LINES)
      behind = lines.at(-1)?.position ?? behind
      return { lines, position: behind, more: lines.length < fresh.length, missed }
    }
    return { next }
  }

  async startOfLast(worker: WorkerId, lines: number): Promise<number> {
    const output = this.#output(worker)
    return (output[Math.max(0, output.length - lines)]?.position ?? (output.at(-1)?.position ?? 0) + 1) - 1
  }

  async startOfTime(worker: WorkerId, tsMs: number): Promise<number> {
    const output = this.#output(worker)
    return (output.find(line => line.tsMs >= tsMs)?.position ?? (output.at(-1)?.position ?? 0) + 1) - 1
  }

  watch(worker: WorkerId, listener: () => void): () => void {
    const listeners = this.#watches.get(worker) ?? new Set()
    this.#watches.set(worker, listeners.add(listener))
    return () => listeners.delete(listener)
  }

  async since(worker: WorkerId, from: number | null): Promise<{ lines: LogLine[]; position: number }> {
    const output = this.#output(worker)
    const lines = output.filter(({ position }) => position > (from ?? 0)).map(bare)
    return { lines, position: output.at(-1)?.position ?? 0 }
  }

  async trim(keep: ReadonlySet<WorkerId>): Promise<ReadonlyMap<WorkerId, number>> {
    for (const worker of this.#outputs.keys()) if (!keep.has(worker)) this.#outputs.delete(worker)
    return new Map(this.#outputs.entries().map(([worker, lines]) => [worker, countBytes(lines)]))
  }

  async measure(workers: readonly WorkerId[]): Promise<ReadonlyMap<WorkerId, number>> {
    return new Map(workers.map(worker => [worker, countBytes(this.#output(worker))]))
  }

  async shrink(outputs: ReadonlyMap<WorkerId, number>): Promise<void> {
    for (const [worker, most] of outputs) {
      const lines = this.#output(worker)
      let bytes = countBytes(lines)
      const firstKeptIndex = lines.findIndex(({ line }) => {
        if (bytes <= most) return true
        bytes -= line.length + 1
        return false
      })
      lines.splice(0, firstKeptIndex === -1 ? lines.length : firstKeptIndex)
      if (most === 0) this.#outputs.delete(worker)
    }
  }

  #output(worker: WorkerId): PlacedLine[] {
    return this.#outputs.get(worker) ?? []
  }
}

function countBytes(lines: readonly PlacedLine[]): number {
  return lines.reduce((sum, { line }) => sum + line.length + 1, 0)
}

function bare({ position: _position, tsMs: _tsMs, ...line }: PlacedLine): LogLine {
  return line
}
