/**
 * Finds out whose port a worker wanted. Workers without a network of their own share the ports of this machine, and a program with a fixed port,
 * such as the server that worker-vllm starts at 8000, then works in the first of them alone; the second one may call that of the first.
 */
import type { WorkerId } from '../../core/ids.ts'
import { portInUse } from '../../core/workers/taken-port.ts'
import type { PortConflict } from '../../core/workers/worker-exit.ts'
import { portConflictText } from '../../core/workers/worker-exit.ts'
import { sharedPortsAdvice } from '../../core/workers/worker-failure.ts'
import type { Clock } from '../../ports/clock.ts'
import type { OutputPipes } from '../../ports/output-pipes.ts'
import type { WorkerLogs } from '../../ports/worker-logs.ts'
import { conflictOf, portsOfWorkers, takenOf } from '../named-ports.ts'

/** What {@link PortWatch} needs. */
export interface PortWatchOptions {
  readonly logs: WorkerLogs
  readonly pipes: OutputPipes
  readonly clock: Clock
  /** The other workers of a worker's endpoint that run. */
  readonly siblings: (worker: WorkerId) => ReadonlySet<WorkerId>
}

/** Programs open their ports when they start. */
const FOLLOWED_MS = 10 * 60_000
const LAST_LINES = 50

/** An output that cannot be read, as on a disk that failed, is not followed: its worker works all the same. */
function watchIfReadable(logs: WorkerLogs, worker: WorkerId, listener: () => void): () => void {
  try {
    return logs.watch(worker, listener)
  } catch {
    return () => {}
  }
}

/** Reads what workers print that share the ports of this machine. */
export class PortWatch {
  readonly #options: PortWatchOptions
  /** Ends of what is followed. */
  readonly #followed = new Map<WorkerId, () => void>()
  readonly #found = new Map<WorkerId, PortConflict>()

  constructor(options: PortWatchOptions) {
    this.#options = options
  }

  /** Reads the output of a worker from now on, until it names a port that another one has, or for some minutes. */
  follow(worker: WorkerId): void {
    const { logs, clock } = this.#options
    let position: number | null = null
    let reading = Promise.resolve()
    const read = async () => {
      if (!this.#followed.has(worker)) return
      const { lines, position: end } = await logs.since(worker, position)
      position = end
      const found = await this.#conflictIn(worker, lines)
      if (found !== null && this.#followed.has(worker)) await this.#report(worker, found)
    }
    // A file that cannot be read now is read at its next growth.
    const unwatch = watchIfReadable(logs, worker, () => {
      reading = reading.then(read).catch(() => {})
    })
    const cancel = clock.after(FOLLOWED_MS, () => this.#stop(worker))
    this.#followed.set(worker, () => {
      unwatch()
      cancel()
    })
  }

  /** The conflict of a worker that runs; null for none. */
  conflictOf(worker: WorkerId): PortConflict | null {
    return this.#found.get(worker) ?? null
  }

  /** The conflict of a worker that has ended, by its last lines; null for none. */
  async ended(worker: WorkerId): Promise<PortConflict | null> {
    this.#stop(worker)
    const known = this.#found.get(worker)
    if (known !== undefined) return known
    const lines = await this.#options.logs.tail(worker, LAST_LINES).catch(() => [])
    const found = await this.#conflictIn(worker, lines)
    if (found !== null) await this.#report(worker, found)
    return found
  }

  /** Forgets a worker. */
  forget(worker: WorkerId): void {
    this.#stop(worker)
    this.#found.delete(worker)
  }

  /** Follows no worker any more. */
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

  /** Another program may have a port that the worker does without, so only another worker counts. */
  async #conflictIn(worker: WorkerId, lines: readonly { readonly line: string }[]): Promise<PortConflict | null> {
    const ports = new Set(lines.flatMap(({ line }) => portInUse(line) ?? []))
    const siblings = this.#options.siblings(worker)
    for (const port of ports) {
      const taken = port === 'unnamed' ? await portsOfWorkers(siblings) : await takenOf([{ variable: null, port }])
      const other = taken.find(found => found.worker !== null && found.worker !== worker)
      if (other !== undefined) return conflictOf(other, siblings)
    }
    return null
  }
}
