import type { Emit } from '../events.ts'
import type { ArtifactFiles } from './artifact-files.ts'
import type { BodyParser } from './body-parser.ts'
import type { Clock, ServerTime } from './clock.ts'
import type { ConsoleFiles } from './console-files.ts'
import type { Driver } from './driver.ts'
import type { GpuMeter } from './gpu-meter.ts'
import type { GpuSuspender } from './gpu-suspender.ts'
import type { ImageRegistries } from './image-registries.ts'
import type { Leader } from './leader.ts'
import type { Machine } from './machine.ts'
import type { Mailer } from './mailer.ts'
import type { Metrics } from './metrics.ts'
import type { ModelCache } from './model-cache.ts'
import type { Notifier } from './notifier.ts'
import type { Outbound } from './outbound.ts'
import type { Probes } from './probe.ts'
import type { Random } from './random.ts'
import type { Spill } from './spill.ts'
import type { Store } from './store/store.ts'
import type { StoreDamage, StoreRoom } from './store/store-trouble.ts'
import type { Tracing } from './tracing.ts'
import type { Vault } from './vault.ts'
import type { VolumeFiles } from './volume-files.ts'
import type { VolumeFolders } from './volume-folders.ts'
import type { WorkerLogs } from './worker-logs.ts'

/** Everything that the application needs from outside; one value for each port. */
export interface Ports {
  readonly clock: Clock
  /** The time of `clock` beside that of the machine; they are the same when left out. */
  readonly time?: ServerTime | undefined
  readonly bodies: BodyParser
  readonly random: Random
  readonly vault: Vault
  readonly store: Store
  /** Damage of the database that was found; none by default. */
  readonly storeDamage?: StoreDamage
  /** State of the disk of the database, full or not; not full by default. */
  readonly storeRoom?: StoreRoom
  readonly driver: Driver
  readonly machine: Machine
  /** Memory of the machine's cards; not measured when left out. */
  readonly gpuMeter?: GpuMeter | undefined
  /** Suspends CUDA processes; none are suspended when left out. */
  readonly gpuSuspender?: GpuSuspender | undefined
  readonly notifier: Notifier
  readonly leader: Leader
  readonly logs: WorkerLogs
  readonly outbound: Outbound
  /** Sends mails; without a mail server when left out. */
  readonly mailer?: Mailer | undefined
  readonly registries: ImageRegistries
  readonly probes: Probes
  readonly volumes: VolumeFolders
  /** Files of network volumes over S3; not offered when left out. */
  readonly files?: VolumeFiles | undefined
  /** Archives and folders of builds of apps; apps have no builds when left out. */
  readonly artifacts?: ArtifactFiles | undefined
  /** Keeps results of workers on disk until they fit into memory; null to refuse them. */
  readonly spill: Spill | null
  /** Models that workers find on their disk; null without a cache of models. */
  readonly models: ModelCache | null
  /** The page of the console; null in a build without it. */
  readonly consoleFiles: ConsoleFiles | null
  readonly emit: Emit
  readonly metrics: Metrics
  /** Traces; not recorded by default. */
  readonly tracing?: Tracing | undefined
}
