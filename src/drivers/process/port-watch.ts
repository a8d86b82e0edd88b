/**
 * Finds the owner of a port that a worker wanted. Workers without a network of their own share the ports of this
 * machine. A program with a fixed port, such as the server of worker-vllm at 8000, works in the first of them alone;
 * the second worker may call the server of the first.
 */
import type { WorkerId } from '../../core/ids.ts'
import { portInUse } from '../../core/workers/taken-port.ts'
import type { PortConflict } from '../../core/workers/worker-exit.ts'
import { portConflictText } from '../../core/workers/worker-exit.ts'
import { sharedPortsAdvice } from '../../core/workers/worker-failure.ts'
import type { Clock } from '../../ports/clock.ts'
import type { OutputPipes } from '../../ports/output-pipes.ts'
import type { WorkerLogs } from '../../ports/worker-logs.ts'
import { findTaken, findWorkerPorts, portConflict } from './named-ports.ts'

/** Programs open their ports when they start. */
const FOLLOWED_MS = 10 * 60_000
const LAST_LINES = 50

/** An output that cannot be read, as on a failed disk, is not followed; its worker works all the same. */
function watchIfReadable(logs: WorkerLogs, worker: WorkerId, listener: () => void): () => void {
  try {
    return logs.watch(worker, listener)
  } catch {
    return () => {}
  }
}

/** Reads the output of workers that share the ports of this machine. */
export class PortWatch {
  readonly #options
  /** Functions that end the following of an output. */
  readonly #followed = new Map<WorkerId, () => void>()
  readonly #found = new Map<WorkerId, PortConflict>()

  constructor(options: {
    readonly logs: WorkerLogs
    readonly pipes: OutputPipes
    readonly clock: Clock
    /** The other running workers of a worker's endpoint. */
    readonly siblings: (worker: WorkerId) => ReadonlySet<WorkerId>
  }) {
    this.#options = options
  }

  /** Reads the output of a worker from now on, until it reports a port of another worker, or for some minutes. */
  follow(worker: WorkerId): void {
    const { logs, clock } = this.#options
    let position: number | null = null
    let reading = Promise.resolve()
    let isWaiting = false
    const read = async () => {
      isWaiting = false
      if (!this.#followed.has(worker)) return
      const { lines, position: end } = await logs.since(worker, position)
      position = end
      const conflict = await this.#conflictIn(worker, lines)
      if (conflict !== null && this.#followed.has(worker)) await this.#report(worker, conflict)
    }
    // A file that cannot be read now is read at its next growth.
    const unwatch = watchIfReadable(logs, worker, () => {
      // The one that waits reads all that comes before it.
      if (isWaiting) return
      isWaiting = true
      reading = reading.then(read).catch(() => {})
    })
    const cancel = clock.after(FOLLOWED_MS, () => this.#stop(worker))
    this.#followed.set(worker, () => {
      unwatch()
      cancel()
    })
  }

  /** The conflict of a running worker; null without one. */
  findConflict(worker: WorkerId): PortConflict | null {
    return this.#found.get(worker) ?? null
  }

  /** The conflict of an ended worker, by its last lines; null without one. */
  async ended(worker: WorkerId): Promise<PortConflict | null> {
    this.#stop(worker)
    const reported = this.#found.get(worker)
    if (reported !== undefined) return reported
    const lines = await this.#options.logs.tail(worker, LAST_LINES).catch(() => [])
    const conflict = await this.#conflictIn(worker, lines)
    if (conflict !== null) await this.#report(worker, conflict)
    return conflict
  }

  /** Removes all state of a worker. */
  forget(worker: WorkerId): void {
    this.#stop(worker)
    this.#found.delete(worker)
  }

  /** Stops following all workers. */
  close(): void {
    for (const worker of [...this.#followed.keys()]) this.#stop(worker)
  }

  async #report(worker: WorkerId, conflict: PortConflict): Promise<void> {
    this.#stop(worker)
    this.#found.set(worker, conflict)
    await this.#options.pipes.say(worker, `${portConflictText(conflict)}: ${sharedPortsAdvice(conflict)}`)
  }

  #stop(worker: WorkerId): void {
    this.#followed.get(worker)?.()
    this.#followed.delete(worker)
  }

  /** The worker may not need a port that another program has, so only another worker counts. */
  async #conflictIn(worker: WorkerId, lines: readonly { readonly line: string }[]): Promise<PortConflict | null> {
    const ports = new Set(lines.flatMap(({ line }) => portInUse(line) ?? []))
    const siblings = this.#options.siblings(worker)
    for (const port of ports) {
      const taken = port === 'unnamed' ? await findWorkerPorts(siblings) : await findTaken([{ variable: null, port }])
      const other = taken.find(holder => holder.worker !== null && holder.worker !== worker)
      if (other !== undefined) return portConflict(other, siblings)
    }
    return null
  }
}
