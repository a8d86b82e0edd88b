import type { WorkerId } from '../src/core/ids.ts'
import type { LogLine, WorkerLogs } from '../src/ports/worker-logs.ts'

/** The output of simulated workers, in memory; like the files that it stands for, it outlives the server. */
export class SimLogs implements WorkerLogs {
  readonly #lines = new Map<WorkerId, LogLine[]>()

  /** A worker prints a line. */
  append(worker: WorkerId, line: string, jobId: string | null = null): void {
    const lines = this.#lines.get(worker)
    if (lines === undefined) this.#lines.set(worker, [{ line, jobId }])
    else lines.push({ line, jobId })
  }

  path(worker: WorkerId): string {
    return `/sim/logs/${worker}`
  }

  async tail(worker: WorkerId, lines: number): Promise<LogLine[]> {
    return (this.#lines.get(worker) ?? []).slice(-lines)
  }

  async since(worker: WorkerId, from: number | null): Promise<{ lines: LogLine[]; position: number }> {
    const lines = this.#lines.get(worker) ?? []
    return { lines: lines.slice(from ?? 0), position: lines.length }
  }

  async *follow(worker: WorkerId, lines: number): AsyncIterable<LogLine> {
    yield* await this.tail(worker, lines)
  }

  async trim(keep: ReadonlySet<WorkerId>): Promise<void> {
    for (const worker of this.#lines.keys()) if (!keep.has(worker)) this.#lines.delete(worker)
  }
}
