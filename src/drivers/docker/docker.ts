/**
 * Runs workers as containers of a Docker engine, or of Podman's, which has the same API.
 *
 * A container does not notice the end of the server; the next server finds it by its labels. The engine may be away at
 * any time: containers that cannot be observed count as running, and signals are sent again when the engine is back.
 * Ended containers are removed with their file systems when their workers are released.
 */
import { join } from 'node:path'
import { ByteBudget } from '../../core/byte-budget.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { Isolation } from '../../core/workers/isolation.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import { type StartFailure, WorkerStartError } from '../../core/workers/start-failure.ts'
import type { ObservedExit } from '../../core/workers/worker-exit.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Driver, Observation, StartWatch, WorkerSpec } from '../../ports/driver.ts'
import type { ProcessFamily } from '../../ports/gpu-suspender.ts'
import type { Notifier } from '../../ports/notifier.ts'
import type { WorkerLogs } from '../../ports/worker-logs.ts'
import { COPY_RATE, forgetCopy } from '../base/log-copy.ts'
import { containerRefusal } from '../base/refusals.ts'
import { WorkerRunner } from '../base/worker-runner.ts'
import { type AppContainers, appParts } from './app-parts.ts'
import { ContainerCalls } from './container-calls.ts'
import { type ContainedWorker, type ContainerConnection, containerName, LABELS } from './container-spec.ts'
import { Container, type ContainerHandle, containerHandle, isolationFromHandle, parseHandle } from './containers.ts'
import { DiskWatch } from './disk-watch.ts'
import { type ContainerEngineOptions, Engine, type EngineEvent } from './engine/engine.ts'
import { engineError, startRefusal } from './engine/engine-error.ts'
import { Images, type ImageWish } from './images/images.ts'
import { PulledImages, readFreeShare } from './images/pulled-images.ts'
import { hasNotEnded, type InspectedContainer } from './inspected-container.ts'

/** Options of {@link createDockerDriver}. */
export interface DockerDriverOptions {
  readonly addresses: ContainerEngineOptions['addresses']
  readonly note: ContainerEngineOptions['note']
  /** Folder of the Python package of apps on this machine. */
  readonly runtime: string
  readonly clock: Clock
  readonly notifier: Notifier
  readonly logs: WorkerLogs
  /** Letters and digits that identify this installation on an engine that may serve others, too. */
  readonly installation: string
  /** An existing folder for notes about images and outputs. */
  readonly stateDir: string
  readonly maxWorkers: number
  /** Identifies this boot of the machine, see `readBootId`. */
  readonly bootId: string
  /** Folders and the image for workers of apps; by default they run as all others. */
  readonly apps?: AppContainers | null
  /** The network of new containers. @throws AppError with the reason why there is none */
  readonly connection: () => Promise<ContainerConnection>
  /**
   * The free part of the disk of a folder, from 0 to 1, or null when it is not known; read from the system unless
   * given.
   */
  readonly freeShare?: (folder: string) => number | null
}

const POLL_MS = 10_000
/** Interval between checks of the processes of containers while the engine is away. */
const AWAY_POLL_MS = 1_000
const CLOSE_MS = 5_000

const UNKNOWN_EXIT: ObservedExit = { code: null, signal: null, cause: { kind: 'unseen', when: 'unknown_to_engine' } }

/** The driver for all images that are not folders of this machine. */
export class DockerDriver extends WorkerRunner<Container> implements Driver {
  readonly name = 'docker'
  readonly #options
  readonly #engine
  readonly #calls
  readonly #images
  /** Containers that ended during starts. */
  readonly #deaths = new Set<string>()
  /** Containers that are being removed. */
  readonly #removals = new Map<string, Promise<void>>()
  readonly #disks
  readonly #copyBudget
  #cancelPoll: () => void = () => {}
  #closed = false

  constructor(options: DockerDriverOptions) {
    super({ maxWorkers: options.maxWorkers, counted: 'workers on this machine', unknownExit: UNKNOWN_EXIT })
    this.#options = options
    this.#copyBudget = new ByteBudget(COPY_RATE, options.clock)
    const { clock, stateDir } = options
    this.#engine = new Engine({
      addresses: options.addresses,
      clock,
      note: options.note,
      label: `${LABELS.installation}=${options.installation}`,
      onUp: async () => {
        await this.#reconcile('engine came')
        // Makes endpoints due whose workers could not be started.
        options.notifier.publish('endpoints')
      },
      onAway: () => this.#pollSoon(AWAY_POLL_MS),
      onEvent: event => this.#onEngineEvent(event),
    })
    this.#calls = new ContainerCalls(this.#engine, options.installation, options.runtime)
    const { freeShare: share = readFreeShare } = options
    const freeShare = () => share(this.#engine.facts?.rootFolder ?? '')
    this.#images = new Images(
      this.#engine,
      clock,
      new PulledImages({ file: join(stateDir, 'images.json'), clock, freeShare }),
    )
    this.#pollSoon(AWAY_POLL_MS)
    this.#disks = new DiskWatch(this.#engine, clock, () => this.workers.values())
  }

  placedBy(): 'machine' {
    return 'machine'
  }

  readsModels(): boolean {
    return true
  }

  async check(image: string, args: string): Promise<StartFailure | null> {
    const refusal = containerRefusal(image, args)
    if (refusal !== null) return refusal
    const absence = await this.#engine.absence()
    return absence === null ? null : { kind: 'engine_away', ...absence }
  }

  protected override workerHandle({ handle }: Container): string {
    return JSON.stringify(handle)
  }

  protected override onStartEnd(): void {
    if (this.starts.size === 0) this.#deaths.clear()
  }

  protected async takeOver(worker: WorkerId, handle: string | null): Promise<boolean> {
    const parsedHandle = handle === null ? null : parseHandle(handle)
    if (handle !== null && parsedHandle === null) return false
    if ((await this.#engine.absence()) !== null) return this.#adoptUnseen(worker, parsedHandle)
    let inspected: InspectedContainer | null
    try {
      inspected = await this.#calls.find(parsedHandle?.container ?? containerName(worker), worker)
    } catch {
      return this.#adoptUnseen(worker, parsedHandle)
    }
    if (inspected === null) return false
    const container = this.#track(worker, inspected)
    if (hasNotEnded(inspected)) return true
    // The container has ended, but its output is still readable.
    await container.ended(inspected.State.ExitCode ?? null)
    return false
  }

  protected observation(_: WorkerId, { exit }: Container): Observation {
    return exit === null ? { state: 'running' } : { state: 'exited', exit }
  }

  async address(worker: WorkerId): Promise<ServedAt | null> {
    return (await this.workers.get(worker)?.address()) ?? null
  }

  async freeze(worker: WorkerId): Promise<void> {
    await this.workers.get(worker)?.freeze()
  }

  async thaw(worker: WorkerId): Promise<void> {
    await this.workers.get(worker)?.thaw()
  }

  override async processes(worker: WorkerId): Promise<ProcessFamily | null> {
    return this.workers.get(worker)?.family ?? null
  }

  async terminate(worker: WorkerId): Promise<void> {
    this.starts.get(worker)?.stop.abort()
    await this.workers.get(worker)?.terminate()
  }

  async kill(worker: WorkerId): Promise<void> {
    this.starts.get(worker)?.stop.abort()
    await this.workers.get(worker)?.signal('SIGKILL')
  }

  protected forget(worker: WorkerId, tracked: Container | undefined): void {
    forgetCopy(this.#noteFile(worker))
    if (tracked === undefined) return
    void tracked.close()
    void this.#remove(tracked.handle.container, worker)
  }

  isolation(handle: string): Isolation {
    return isolationFromHandle(handle)
  }

  async tidy(alive: ReadonlySet<WorkerId>, images: ReadonlySet<string>): Promise<void> {
    if (this.#engine.facts === null) return
    try {
      for (const { id, worker } of await this.#calls.list()) {
        if (!alive.has(worker) && !this.workers.has(worker) && !this.starts.has(worker)) await this.#remove(id, worker)
      }
      await this.#images.tidy(images)
    } catch {
      // The engine is away or busy; the next event or poll repeats it.
    }
  }

  /** Stops observing; the containers go on. Resolves when ended containers are removed, or after a timeout. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancelPoll()
    this.#disks.close()
    for (const { stop } of this.starts.values()) stop.abort()
    const copies = [...this.workers.values()].map(container => container.close())
    const deadline = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(CLOSE_MS, deadline.resolve)
    await Promise.race([Promise.allSettled([...copies, ...this.#removals.values()]), deadline.promise])
    cancel()
    this.#engine.close()
  }

  protected async begin(spec: WorkerSpec, watch: StartWatch | undefined, signal: AbortSignal): Promise<string> {
    const { workerId, image } = spec
    try {
      const failure = await this.check(image, spec.args)
      if (failure !== null) throw new WorkerStartError(failure)
      const connection = await this.#options.connection()
      const { credential, guard } = spec
      const app = appParts(spec, this.#options.apps ?? null)
      const wish = { image: app?.image ?? image, credential, guard, watch, signal }
      const id = await this.#createFrom(wish, { spec, app }, connection)
      try {
        stopIfAsked(signal)
        const inspected = await this.#calls.start(id)
        const container = this.#track(workerId, inspected)
        if (!hasNotEnded(inspected) || this.#deaths.has(id)) void container.ended(inspected.State.ExitCode ?? null)
        if (signal.aborted) await container.signal('SIGKILL')
        return JSON.stringify(container.handle)
      } catch (thrown) {
        await this.#remove(id, workerId)
        throw thrown
      }
    } catch (thrown) {
      throw startRefusal(thrown, spec.placement.memoryMb)
    }
  }

  async #createFrom(wish: ImageWish, worker: ContainedWorker, connection: ContainerConnection): Promise<string> {
    const exact = await this.#images.ensure(wish)
    stopIfAsked(wish.signal)
    try {
      return await this.#calls.create(worker, exact, connection)
    } catch (thrown) {
      // The image was removed since the list was read.
      if (engineError(thrown).status !== 404 || !this.#images.doubt(exact)) throw thrown
    }
    return this.#calls.create(worker, await this.#images.ensure(wish), connection)
  }

  #track(worker: WorkerId, inspected: InspectedContainer): Container {
    const container = this.#trackAs(worker, containerHandle(inspected, this.#options.bootId))
    container.update(inspected)
    return container
  }

  #trackAs(worker: WorkerId, handle: ContainerHandle): Container {
    const { clock, logs, bootId, notifier } = this.#options
    const container = new Container({
      engine: this.#engine,
      clock,
      handle,
      bootId,
      copyBudget: this.#copyBudget,
      logFolder: logs.folder(worker),
      noteFile: this.#noteFile(worker),
      onExit: () => notifier.publish('fleet'),
    })
    this.workers.set(worker, container)
    return container
  }

  /** While the engine is away, the process decides if it is visible; otherwise the container counts as running. */
  #adoptUnseen(worker: WorkerId, handle: ContainerHandle | null): boolean {
    if (handle === null) return false
    void this.#trackAs(worker, handle).lookForProcess()
    return true
  }

  /** Compares the containers that should run with those that do. */
  async #reconcile(when: 'engine came' | 'sometime'): Promise<void> {
    const containers = [...this.workers.values()]
    const summaries = new Map(
      (await this.#calls.list()).map(({ id, running }) => [id, running ? 'running' : 'ended'] as const),
    )
    const withEngine = when === 'engine came'
    await Promise.all(
      containers.map(container => container.reconcile(summaries.get(container.handle.container) ?? 'gone', withEngine)),
    )
  }

  #onEngineEvent({ action, container, attributes }: EngineEvent): void {
    const tracked = [...this.workers.values()].find(({ handle }) => handle.container === container)
    const died = action === 'die' || action === 'died'
    // The event of an exit may come before the response to its start.
    if (tracked === undefined) return void (died && this.starts.size > 0 && this.#deaths.add(container))
    const code = Number(attributes.exitCode ?? Number.NaN)
    if (action === 'oom') tracked.noteOutOfMemory()
    else if (died) void tracked.ended(Number.isNaN(code) ? null : code)
  }

  /** Events may be lost, and none come while the engine is away. */
  #pollSoon(ms: number): void {
    this.#cancelPoll()
    if (this.#closed) return
    this.#cancelPoll = this.#options.clock.after(ms, () => {
      void this.#poll().finally(() => this.#pollSoon(this.#engine.facts === null ? AWAY_POLL_MS : POLL_MS))
    })
  }

  async #poll(): Promise<void> {
    if (this.#engine.facts !== null) return this.#reconcile('sometime').catch(() => {})
    for (const container of this.workers.values()) await container.lookForProcess()
  }

  /** Removes a container with its file system. `tidy` removes what this could not. */
  #remove(container: string, worker: WorkerId): Promise<void> {
    const current = this.#removals.get(container)
    if (current !== undefined) return current
    const removal = this.#calls
      .remove(container)
      .catch(() => {})
      .finally(() => {
        this.#removals.delete(container)
        forgetCopy(this.#noteFile(worker))
      })
    this.#removals.set(container, removal)
    return removal
  }

  #noteFile(worker: WorkerId): string {
    return join(this.#options.stateDir, `${worker}.json`)
  }
}

function stopIfAsked(signal: AbortSignal): void {
  if (signal.aborted) throw new WorkerStartError({ kind: 'stopped', during: 'start' })
}
