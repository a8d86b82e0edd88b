import { toAppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import { readPrestartOutput } from '../../core/workers/failed-start.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { mayRunHooks } from '../../core/workers/worker-sdk.ts'
import { pause } from '../../ports/clock.ts'
import type { Ports } from '../../ports/ports.ts'
import { InOrder } from '../in-order.ts'
import type { Fleet } from './fleet.ts'
import type { RunningWorker } from './running-worker.ts'
import type { RunningWorkers } from './running-workers.ts'

/**
 * Drivers that copy the output of their workers, so that a line comes a moment after a call that was made behind it.
 */
const COPYING_DRIVERS: ReadonlySet<string> = new Set(['docker', 'kubernetes'])
/** Time for which the first take of a worker waits for the copy of its earlier output. */
const COPY_MS = 250

/** Facts that the take of a worker reports about it. */
interface TakeFacts {
  readonly capacity: number
  readonly sdk: string | null
}

/**
 * Workers on RunPod's SDK 2.0 ask for jobs while hooks of their program still run, such as the loading of a model.
 * Their output says so. Until the hooks are over such a worker is STARTING and gets no job; when one fails the worker
 * is ended as a failed start (docs/adr/0077).
 */
export class Prestarts {
  readonly #ports
  readonly #fleet
  readonly #running
  readonly #closed
  /** One reading of a worker's output at a time. */
  readonly #order = new InOrder<WorkerId>()

  /** @param closed aborts when the server ends */
  constructor(ports: Ports, fleet: Fleet, running: RunningWorkers, closed: AbortSignal) {
    this.#ports = ports
    this.#fleet = fleet
    this.#running = running
    this.#closed = closed
  }

  /**
   * True when hooks of a STARTING worker that takes run, or have failed. It becomes READY once they are over, with the
   * facts of its last take; its takes are woken then.
   */
  async holdBack(worker: Worker, facts: TakeFacts): Promise<boolean> {
    if (worker.state !== 'STARTING' || !mayRunHooks(facts.sdk)) return false
    const running = this.#running.of(worker)
    const isFirst = running.prestart.take === null
    running.prestart.take = facts
    await this.#read(running)
    if (isFirst && running.prestart.state === 'unknown' && COPYING_DRIVERS.has(worker.driver)) {
      await pause(this.#ports.clock, COPY_MS)
      await this.#read(running)
    }
    if (running.prestart.state === 'running') this.#follow(worker, running)
    if (running.prestart.state === 'failed') await this.#settle(worker, running)
    return running.isLoading
  }

  /** Reads the output whenever it grows, until the hooks are over or the worker has ended. */
  #follow(worker: Worker, running: RunningWorker): void {
    if (running.prestart.isFollowed) return
    running.prestart.isFollowed = true
    const { logs, notifier, emit } = this.#ports
    const ends: (() => void)[] = []
    const end = () => {
      running.prestart.isFollowed = false
      for (const stop of ends.splice(0)) stop()
    }
    const look = async () => {
      if (!running.prestart.isFollowed) return
      if (!running.hasEnded && !this.#closed.aborted) {
        await this.#read(running)
        if (running.prestart.state === 'running') return
        await this.#settle(worker, running)
      }
      end()
    }
    // After a failure the next take of the worker looks again.
    const safely = () => {
      look().catch(error => {
        emit('loop.failed', { loop: 'start of a worker', problem: toAppError(error).message })
        end()
      })
    }
    ends.push(logs.watch(worker.id, safely), notifier.subscribe(`worker:${worker.id}`, safely))
    // For lines that were printed between the last reading and the watch.
    safely()
  }

  #read(running: RunningWorker): Promise<void> {
    return this.#order.run(running.id, true, async () => {
      const { prestart } = running
      const { lines, position } = await this.#ports.logs.since(running.id, prestart.position)
      prestart.position = position
      for (const { line } of lines) {
        const report = readPrestartOutput(line)
        if (report?.kind === 'started') prestart.state = 'running'
        else if (report?.kind === 'hook') prestart.hook = report.hook
        else if (report?.kind === 'ready') prestart.state = 'over'
        else if (report?.kind === 'failed') {
          prestart.state = 'failed'
          prestart.failure = report.failure
        }
      }
    })
  }

  /** The hooks are over: the worker is READY, or its start has failed. */
  async #settle(worker: Worker, { prestart }: RunningWorker): Promise<void> {
    const { store, clock } = this.#ports
    if (prestart.state === 'failed' && prestart.failure !== null) {
      await this.#fleet.endFaulty(worker, 'failed_start', prestart.failure)
    } else if (prestart.state === 'over' && prestart.take !== null) {
      const move = await store.workers.seen(worker.id, prestart.take.capacity, prestart.take.sdk, clock.now())
      if (move !== null) this.#fleet.moved(move)
    }
  }
}
