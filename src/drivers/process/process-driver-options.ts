/** Options of the driver of process workers. */
import type { Clock } from '../../ports/clock.ts'
import type { Notifier } from '../../ports/notifier.ts'
import type { OutputPipes } from '../../ports/output-pipes.ts'
import type { WorkerLogs } from '../../ports/worker-logs.ts'
import type { HostEnvironment } from '../base/host-environment.ts'
import type { Cage } from '../cage/cage.ts'
import type { Marker } from './process-marks.ts'
import type { VolumeLinkPlace } from './volume-link.ts'

/** Options and dependencies of the driver of process workers. */
export interface ProcessDriverOptions {
  /** Absolute paths of the folders below which images may be; relative images start at the first. */
  readonly roots: readonly string[]
  readonly logs: WorkerLogs
  readonly pipes: OutputPipes
  readonly clock: Clock
  readonly notifier: Notifier
  /** The folder of the private folders of workers. */
  readonly workerDir: string
  /** The folder of the caches of endpoints, and the size limit of each, in GB; null for half of the free space, 0 for no limit. */
  readonly caches: { readonly folder: string; readonly limitGb: number | null }
  /** The server's environment, of which a few variables are passed on. */
  readonly hostEnv: HostEnvironment
  /** The Node for handlers in JavaScript. */
  readonly nodePath: string
  /** The folder of the worker SDK for workers in Node without it; null to give no SDK. */
  readonly workerPackage: string | null
  readonly maxWorkers: number
  /** Identifies this boot of the machine, see `readBootId`. */
  readonly bootId: string
  /** A second path of the network volume of workers, besides RUNPOD_VOLUME_PATH; null without one. */
  readonly volumeLink: VolumeLinkPlace | null
  /** The cage of workers; null without one. */
  readonly cage: Cage | null
  /** The marker of workers without a cage, so that all their processes end with them; null without one. */
  readonly marker: Marker | null
  /** Start of the search for ports of serving workers, within `PORT_RANGE`. A different one for each server avoids collisions. */
  readonly firstPort: number
}
