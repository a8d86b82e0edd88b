import type { EndpointType } from '../core/endpoints/endpoint.ts'
import type { EndpointId, OwnerId, VolumeId, WorkerId } from '../core/ids.ts'
import type { Capacity } from '../core/scaling/plan.ts'
import type { Isolation } from '../core/workers/isolation.ts'
import type { Placement } from '../core/workers/placement.ts'
import type { Reclaim, ReportedPlace, WaitForPlace } from '../core/workers/platform-report.ts'
import type { ServedAt } from '../core/workers/socket-address.ts'
import type { StartFailure } from '../core/workers/start-failure.ts'
import type { ObservedExit, PortConflict } from '../core/workers/worker-exit.ts'
import type { WorkerWish } from '../core/workers/worker-wish.ts'
import type { ProcessFamily } from './gpu-suspender.ts'

/** Everything that a driver needs to start a worker. */
export interface WorkerSpec {
  readonly workerId: WorkerId
  readonly endpointId: EndpointId
  /** The account of its endpoint, for people who look at its platform; left out without such a platform. */
  readonly owner?: OwnerId
  readonly image: string
  readonly args: string
  /**
   * The unpacked build of an app of RunPod's SDK 2.0, which the worker reads and does not change; left out for a live
   * worker, and for one of no app.
   */
  readonly build?: AppBuild | null
  /** The user's variables, secrets resolved. */
  readonly env: Readonly<Record<string, string>>
  /** The variables of the worker protocol, which win over all others. */
  readonly protocolEnv: Readonly<Record<string, string>>
  /** Its needs. A driver whose platform places workers reads this, and reports the place with {@link Observation}. */
  readonly wish: WorkerWish
  /** The part of this machine that it was given; `UNPLACED` where the platform places workers. */
  readonly placement: Placement
  /** Disk that a container may write, in GB, where the engine can enforce that; null for no limit. */
  readonly diskGb: number | null
  /** Ports of the template, as `8000/http`. */
  readonly ports: readonly string[]
  /**
   * The ports that its program serves, as its user's PORT and PORT_HEALTH name them; null for a queue's worker. The
   * driver sets both variables, to others where workers share the ports of the machine.
   */
  readonly serves: { readonly port: number; readonly healthPort: number } | null
  /** The endpoint's first volume as a folder of this machine; null without one. */
  readonly volume: { readonly id: VolumeId; readonly path: string } | null
  /** All volumes of a task, at the paths that its program names, besides that of {@link volume}; left out for none. */
  readonly mounts?: readonly VolumeMount[]
  /** Models that it finds on its disk, which it may read and not change. */
  readonly models: readonly MountedModel[]
  /** Credentials for the image; null when everybody may download it. */
  readonly credential: RegistryCredential | null
  /**
   * Asked before anything calls the registry of the image: why that may not be, or null. Left out where it always may.
   */
  readonly guard?: () => Promise<StartFailure | null>
}

/** A volume at a path of its own. */
export interface VolumeMount {
  readonly id: VolumeId
  /** Its absolute path on this machine. */
  readonly path: string
  /** The absolute path at which the worker sees it. */
  readonly at: string
}

/** The unpacked build of an app. */
export interface AppBuild {
  readonly id: string
  /** Its absolute path on this machine, with the project, its packages in `env/` and its manifest. */
  readonly folder: string
}

/** A model on the disk of this machine, in the layout of the cache of Hugging Face. */
export interface MountedModel {
  /** Name of its folder in a cache, as `models--owner--name`. */
  readonly folder: string
  /** The absolute path of that folder. */
  readonly path: string
}

/** A user of an image registry. */
export interface RegistryCredential {
  readonly username: string
  readonly password: string
}

/** The image that the workers of one release run: the meaning of its name at the first start. */
export interface ImagePins {
  /** The exact reference; null before the first start. */
  current(): Promise<string | null>
  /**
   * Records it, unless another start was faster.
   * @param replaced result of {@link current} that no longer exists; null without one
   * @returns the image of all workers of the release
   */
  pin(image: string, replaced: string | null): Promise<string>
}

/** Receives the progress of a start. */
export interface StartWatch {
  /** The record of the exact image of a name; none when left out. */
  readonly pins?: ImagePins
  /** The image is being downloaded. @param percent 0 to 100; null while its size is not known */
  pulling(percent: number | null): void
  /** The image was downloaded. Called only after `pulling`. */
  pulled(): void
}

/**
 * One worker, as the driver sees it. `unplaced` waits for a place on its platform; `placed` has one there, and its
 * program does not run yet, such as while its image is downloaded. `leaving` runs or is about to, and its platform is
 * about to take it away. `place` is left out where the platform is this machine. A worker that is being started is
 * observed, too. `suspicion` is a port that its output reports as in use.
 */
export type Observation =
  | { readonly state: 'unplaced'; readonly reason: WaitForPlace }
  | { readonly state: 'placed'; readonly place: ReportedPlace }
  | { readonly state: 'running'; readonly place?: ReportedPlace; readonly suspicion?: PortConflict }
  | { readonly state: 'leaving'; readonly why: Reclaim; readonly place?: ReportedPlace }
  | { readonly state: 'exited'; readonly exit: ObservedExit }

/**
 * Runs workers. A driver only acts and observes; it decides nothing. It reports a change by publishing the
 * topic `fleet`. All methods may be called again for the same worker.
 */
export interface Driver {
  readonly name: string
  /**
   * The side that places the workers of an image: `machine`, when our placer gives them a part of this
   * machine, or `platform`, when it gives them turns alone and the platform finds the place.
   * @param image an empty one stands for any container
   */
  placedBy(image: string): 'machine' | 'platform'
  /**
   * True where workers of an image find models of the cache of this machine on their disk; those of others download
   * them.
   */
  readsModels(image: string): boolean
  /** The name that is recorded with a worker of this image, by which {@link adopt} finds it again. */
  nameFor(image: string): string
  /**
   * The image as it is saved: that of a folder has an absolute path, so that it is the same folder wherever the server
   * starts.
   */
  savedImage(image: string): string
  /**
   * The reason why this image and command line can never be started here; null when they can.
   * @param type of the endpoint of the workers; by default for both types
   */
  check(image: string, args: string, type?: EndpointType): Promise<StartFailure | null>
  /**
   * Starts a worker whose output goes to its log. After a crash of the server in the middle of it, {@link adopt} with
   * a null handle finds the started worker. May take minutes while an image is downloaded; {@link terminate} and
   * {@link kill} end it early, and it then rejects. It rejects, too, when its platform takes the worker away during
   * the start; {@link observe} then reports that. The wait for a place on a platform has no limit.
   * @param watch receives the progress
   * @returns a handle for {@link adopt}
   * @throws WorkerStartError with the reason, when the worker cannot be started
   */
  start(spec: WorkerSpec, watch?: StartWatch): Promise<string>
  /**
   * Takes over a worker that an earlier run of the server started. False when it no longer runs.
   * @param recorded result of {@link nameFor} at its start; by default the driver's own name
   */
  adopt(worker: WorkerId, handle: string | null, recorded?: string): Promise<boolean>
  /** The state of a worker that was started or adopted; exited when it is unknown. */
  observe(worker: WorkerId): Promise<Observation>
  /**
   * The address of a worker with {@link WorkerSpec.serves}; null for others, and for one that does not run. It
   * may be asked as soon as the worker was started, and does not change while it runs.
   */
  address(worker: WorkerId): Promise<ServedAt | null>
  /**
   * Freezes the worker: when it resolves, all its processes stand still, and it keeps its memory, its GPUs and its
   * connections. It is still observed as running. Does nothing about a frozen worker, one that was asked to end, and
   * one that does not exist or has ended.
   * @throws AppError `unavailable` when it cannot be frozen, such as while the container engine is away; it then runs
   * on
   */
  freeze(worker: WorkerId): Promise<void>
  /**
   * Lets everything of a frozen worker run again. A worker that an earlier server froze stays frozen when it is
   * adopted, until this is called. Does nothing about a worker that is not frozen, does not exist or has ended.
   * @throws AppError `unavailable` when it cannot be done now; it may then be frozen or not
   */
  thaw(worker: WorkerId): Promise<void>
  /**
   * The processes of a worker by the pids of this machine, to suspend them. Null where they are not processes of this
   * machine, or the driver cannot find them, as of pods and of an engine elsewhere, and for a worker that does not
   * exist or has ended.
   */
  processes(worker: WorkerId): Promise<ProcessFamily | null>
  /**
   * Asks the worker to end by itself (SIGTERM). Asked again it does nothing: many programs break off at a second
   * signal. A frozen worker is thawed after the signal, so that it can follow it. One whose threads are held
   * ({@link ProcessFamily.hold}) has no job, cannot follow it, and is killed.
   */
  terminate(worker: WorkerId): Promise<void>
  /** Ends the worker and everything that it started, at once, also when it is frozen. */
  kill(worker: WorkerId): Promise<void>
  /** Forgets an ended worker and removes its private folder. */
  release(worker: WorkerId): Promise<void>
  /**
   * The reason why workers of different accounts could reach each other's or the server's files here, as a sentence;
   * null when they cannot, and where no worker runs at all. Does not change while the server runs.
   */
  keepsApart(): string | null
  /**
   * The isolation of a worker, also of one that has ended; null when it is unknown.
   * @param handle as {@link start} gave it
   * @param recorded result of {@link nameFor} at its start
   */
  isolation(handle: string, recorded: string): Isolation | null
  /** Room for more workers. */
  capacity(): Promise<Capacity>
  /**
   * Removes unneeded resources. Called from time to time, after all workers of earlier runs were adopted.
   * @param alive all workers that have not ended
   * @param images references of images that endpoints run now or ran in the release before, as templates name them or
   * exact
   * @param exists returns true if an endpoint of this id exists and was not deleted
   */
  tidy(
    alive: ReadonlySet<WorkerId>,
    images: ReadonlySet<string>,
    exists: (endpoint: EndpointId) => Promise<boolean>,
  ): Promise<void>
}
