import type { WorkerId } from '../core/ids.ts'

/** One line of a worker's output. */
export interface LogLine {
  readonly line: string
  /** The job that the line names as its own; null without one. */
  readonly jobId: string | null
  /** True when other text stood before it, which somebody printed without a line break. Left out otherwise. */
  readonly isMidLine?: boolean
}

/**
 * A line with its place and its time. Positions count the bytes of all that the worker ever wrote, so they stay the
 * same when the output is cut and when the server is started again.
 */
export interface PlacedLine extends LogLine {
  /** The position behind the line, unique among its lines; reading from there goes on with the next one. */
  readonly position: number
  /**
   * The time of writing, as far as it is known, in epoch milliseconds: within moments while a reader watches the
   * output, else no later than when its file was last written to. Never less than that of the line before.
   */
  readonly tsMs: number
}

/** Lines that were read at once. */
export interface LogPage {
  readonly lines: readonly PlacedLine[]
  /** Behind the last finished line that was read. */
  readonly position: number
  /** True where there was more to read. */
  readonly more: boolean
  /** Bytes in front of the lines that were asked for and are no longer kept. */
  readonly missed: number
}

/** Reads one output from a position on. */
export interface LogReader {
  /**
   * The next finished lines, at most those of about 64 KiB; none when nothing is new.
   * @param end `over` when the worker has ended, so that a last line without an end is one, too
   */
  next(end?: 'open' | 'over'): Promise<LogPage>
}

/** The output of workers, of which the last part is kept. Drivers append to it. */
export interface WorkerLogs {
  /**
   * The folder of the files of the worker's output. Whoever appends to it makes the folder, and keeps the limit of an
   * output.
   */
  folder(worker: WorkerId): string
  /** The last `lines` lines, oldest first; empty for a worker without output. Lines over 64 KiB are cut. */
  tail(worker: WorkerId, lines: number): Promise<LogLine[]>
  /** Reads on behind a position; from the first line that is kept when that one is not. */
  reader(worker: WorkerId, from: number): LogReader
  /** The position of the last `lines` finished lines of the output, those that one message has made counted as one. */
  startOfLast(worker: WorkerId, lines: number): Promise<number>
  /** The position of the first line that was written at an instant or after it. */
  startOfTime(worker: WorkerId, tsMs: number): Promise<number>
  /**
   * Divides the output here: lines in front of this moment and lines behind it get different times, also where nobody
   * reads. Does nothing while many other outputs are in use.
   * @param moment at the end of a job lines that are on their way to the output, and arrive before the next job
   * begins, count as in front
   */
  mark(worker: WorkerId, moment: 'begin' | 'end'): void
  /**
   * Calls `listener` soon after each growth of the output, until the returned function is called. It must not throw.
   */
  watch(worker: WorkerId, listener: () => void): () => void
  /**
   * Finished lines behind a position of the output, at most those of the last 256 KiB, and the position behind them.
   * @param from result of an earlier call; null for all available lines
   */
  since(worker: WorkerId, from: number | null): Promise<{ lines: LogLine[]; position: number }>
  /**
   * Notes the growth of outputs, and removes those of workers that are not in `keep`.
   * @returns bytes that each kept output has on the disk
   */
  trim(keep: ReadonlySet<WorkerId>): Promise<ReadonlyMap<WorkerId, number>>
  /** Notes the growth of some outputs. @returns bytes that each has on the disk */
  measure(workers: readonly WorkerId[]): Promise<ReadonlyMap<WorkerId, number>>
  /** Removes outputs, or cuts them to at most this many bytes: 0 removes one. */
  shrink(outputs: ReadonlyMap<WorkerId, number>): Promise<void>
}
