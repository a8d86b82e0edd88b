import type { WorkerId } from '../core/ids.ts'

/** One line of a worker's output. */
export interface LogLine {
  readonly line: string
  /** The job that the line says it belongs to; null when it says nothing. */
  readonly jobId: string | null
}

/** The output of workers, which they write themselves, so that it outlives the server. */
export interface WorkerLogs {
  /** The path that the worker's output is appended to; its folder exists. */
  path(worker: WorkerId): string
  /** The last `lines` lines, oldest first; empty for a worker without output. Lines over 64 KiB are cut. */
  tail(worker: WorkerId, lines: number): Promise<LogLine[]>
  /** New lines as they come, after the last `lines` old ones, until the signal aborts. */
  follow(worker: WorkerId, lines: number, signal: AbortSignal): AsyncIterable<LogLine>
  /**
   * Finished lines behind a position of the output, at most those of the last 256 KiB, and the position behind them.
   * @param from what an earlier call gave; null for all that is in reach
   */
  since(worker: WorkerId, from: number | null): Promise<{ lines: LogLine[]; position: number }>
  /** Cuts outputs that have grown past their limit, and removes those of workers that are not in `keep`. */
  trim(keep: ReadonlySet<WorkerId>): Promise<void>
}
