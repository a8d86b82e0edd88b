import type { Clock } from '../../ports/clock.ts'
import type { Container } from './containers.ts'
import type { Engine } from './engine.ts'

const EVERY_MS = 60_000
/** An engine counts all that a container has written, file by file. */
const LOOK_MS = 30_000
const GB = 1_000_000_000

/**
 * Containers whose disk the engine does not bound: whoever has written too much is ended before the disk of the machine is full.
 */
export class DiskWatch {
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #limits = new Map<Container, number>()
  #cancel: () => void = () => {}
  #closed = false

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
    this.#soon()
  }

  /** Looks after a container that may write so much. */
  watch(container: Container, mostGb: number): void {
    this.#limits.set(container, mostGb)
  }

  /** A container is gone. */
  forget(container: Container): void {
    this.#limits.delete(container)
  }

  /** Stops looking. */
  close(): void {
    this.#closed = true
    this.#cancel()
  }

  #soon(): void {
    if (this.#closed) return
    this.#cancel = this.#clock.after(EVERY_MS, () => {
      void this.#look().finally(() => this.#soon())
    })
  }

  async #look(): Promise<void> {
    for (const [container, mostGb] of this.#limits) {
      if (container.exit !== null || this.#closed) continue
      const path = `/containers/${container.handle.container}/json`
      const { SizeRw = 0 } = await this.#engine
        .call<{ SizeRw?: number }>({ method: 'GET', path, query: { size: true }, deadlineMs: LOOK_MS })
        .catch(() => ({ SizeRw: 0 }))
      if (SizeRw > mostGb * GB) await container.end(`wrote more than the ${mostGb} GB of its container disk`)
    }
  }
}
