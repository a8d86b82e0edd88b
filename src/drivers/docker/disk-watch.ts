import type { ExitCause } from '../../core/workers/worker-exit.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Container } from './containers.ts'
import type { Engine } from './engine/engine.ts'

const EVERY_MS = 60_000
/** An engine counts all that a container has written, file by file. */
const LOOK_MS = 30_000
const GB = 1_000_000_000

/** The reason to end a container that wrote so much; null where it may go on. */
export function diskFault(writtenBytes: number, limitGb: number): ExitCause | null {
  return writtenBytes > limitGb * GB ? { kind: 'disk_full', limitGb, of: 'container' } : null
}

/**
 * Containers whose disk the engine does not bound: one that wrote too much is ended before the disk of the machine is
 * full.
 */
export class DiskWatch {
  readonly #engine
  readonly #clock
  readonly #containers
  #cancel: () => void = () => {}
  #closed = false

  /** @param containers returns all containers; those without a limit are left alone */
  constructor(engine: Engine, clock: Clock, containers: () => Iterable<Container>) {
    this.#engine = engine
    this.#clock = clock
    this.#containers = containers
    this.#soon()
  }

  /** Stops looking. */
  close(): void {
    this.#closed = true
    this.#cancel()
  }

  #soon(): void {
    if (this.#closed) return
    this.#cancel = this.#clock.after(EVERY_MS, () => {
      void this.#check().finally(() => this.#soon())
    })
  }

  async #check(): Promise<void> {
    for (const container of [...this.#containers()]) {
      const mostGb = container.diskGb
      if (mostGb === null || container.exit !== null || this.#closed) continue
      const path = `/containers/${container.handle.container}/json`
      const { SizeRw = 0 } = await this.#engine
        .call<{ SizeRw?: number }>({ method: 'GET', path, query: { size: true }, deadlineMs: LOOK_MS })
        .catch(() => ({ SizeRw: 0 }))
      const fault = diskFault(SizeRw, mostGb)
      if (fault !== null) await container.end(fault)
    }
  }
}
