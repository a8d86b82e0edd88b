import type { WorkerId } from '../core/ids.ts'

/**
 * The pipes into which workers that are processes print. Another process writes them to the outputs and outlives the
 * server, so that a worker neither notices the end of its server nor fills the disk. While nobody reads a pipe, its
 * worker waits as soon as it is full.
 */
export interface OutputPipes {
  /**
   * Makes the pipe of a worker that is about to start, and holds it.
   * @returns a file descriptor for its standard output and standard error, which the caller closes
   * @throws when it cannot be made
   */
  open(worker: WorkerId): Promise<number>
  /** Holds the pipe of a worker that an earlier server started; does nothing where there is none. */
  hold(worker: WorkerId): void
  /**
   * Prints a line of the server itself into the output of a running or ended worker. A line that cannot be printed is
   * lost.
   * @param line without a line end
   */
  say(worker: WorkerId, line: string): Promise<void>
  /**
   * All processes of a worker have ended: resolves when all that they printed is in its output, or after some seconds.
   */
  drained(worker: WorkerId): Promise<void>
  /** Removes the rest of the pipe of an ended worker. */
  forget(worker: WorkerId): void
  /** Lets go of all pipes, whose workers go on. */
  close(): void
}
