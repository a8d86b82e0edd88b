import type { WorkerId } from '../src/core/ids.ts'
import type { Clock } from '../src/ports/clock.ts'
import type { Driver } from '../src/ports/driver.ts'
import type { Leader } from '../src/ports/leader.ts'
import type { Notifier } from '../src/ports/notifier.ts'
import type { Life } from './life.ts'

/** Parts of a driver of one run of the server. */
export interface DriverParts {
  readonly life: Life
  readonly clock: Clock
  readonly notifier: Notifier
  readonly leader: Leader
}

/** A driver of one run of the server. */
export interface SimDriver {
  readonly driver: Driver
  /** Stops observing, as a server that has ended does. */
  close(): void
}

/** Platform of the workers: the simulated machine or the simulated cluster. It outlives the servers. */
export interface Platform {
  /** The workers whose processes run, in the order of their start. */
  running(): WorkerId[]
  /** The workers of which the platform has anything. */
  present(): WorkerId[]
  /** Frozen workers. */
  readonly frozen: ReadonlySet<WorkerId>
  /** The process of a worker ends by itself. */
  exit(worker: WorkerId, end: { readonly code?: number | null; readonly signal?: string | null }): void
  /** A driver over this platform, as a server makes one when it starts. */
  driver(parts: DriverParts): SimDriver
}
