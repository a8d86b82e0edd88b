import type { VirtualClock } from '../../sim/clock.ts'

interface RunningRequest {
  readonly worker: string
  remainingMs: number
  readonly done: () => void
}

/**
 * The processors of a card. Workers with requests share them evenly, so each of two has half of its speed. The
 * requests of one worker run as a batch, each at the speed of the worker.
 */
export class BusyCard {
  readonly #clock
  readonly #running = new Set<RunningRequest>()
  #sinceMs = 0
  #cancel = () => {}

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  /** Resolves when a request of a worker is done. @param workMs its duration on a card without other workers */
  run(worker: string, workMs: number): Promise<void> {
    this.#advance()
    return new Promise(done => {
      this.#running.add({ worker, remainingMs: workMs, done })
      this.#schedule()
    })
  }

  /** The requests of a worker that has ended run no longer. */
  drop(worker: string): void {
    this.#advance()
    for (const request of this.#running) if (request.worker === worker) this.#running.delete(request)
    this.#schedule()
  }

  get #workers(): number {
    return new Set([...this.#running].map(({ worker }) => worker)).size
  }

  #advance(): void {
    const nowMs = this.#clock.monotonic()
    const workedMs = (nowMs - this.#sinceMs) / Math.max(1, this.#workers)
    this.#sinceMs = nowMs
    for (const request of this.#running) request.remainingMs -= workedMs
  }

  #schedule(): void {
    this.#cancel()
    if (this.#running.size === 0) return
    const nextMs = Math.min(...[...this.#running].map(({ remainingMs }) => remainingMs)) * this.#workers
    this.#cancel = this.#clock.after(nextMs, () => {
      this.#advance()
      for (const request of this.#running) {
        if (request.remainingMs > 0.001) continue
        this.#running.delete(request)
        request.done()
      }
      this.#schedule()
    })
  }
}
