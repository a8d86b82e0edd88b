/**
 * Runs workers as plain processes of this machine.
 *
 * A worker leads a process group of its own and prints into a pipe that another process reads, so it neither ends with
 * the server nor notices that. The next server adopts it by its pid, checked against its start time and the boot of
 * the machine. When a worker ends, all processes that it started are killed: an orphan could go on pinging for it.
 */
import { writeFileSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { EndpointType } from '../../core/endpoints/endpoint.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import { NO_ISOLATION } from '../../core/workers/isolation.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import { type StartFailure, WorkerStartError } from '../../core/workers/start-failure.ts'
import { type ObservedExit, type PortConflict, portConflictText } from '../../core/workers/worker-exit.ts'
import { errorText } from '../../disk/access-problem.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Driver, Observation, StartWatch, WorkerSpec } from '../../ports/driver.ts'
import type { ProcessFamily } from '../../ports/gpu-suspender.ts'
import type { Notifier } from '../../ports/notifier.ts'
import type { OutputPipes } from '../../ports/output-pipes.ts'
import type { WorkerLogs } from '../../ports/worker-logs.ts'
import { joinGroup } from '../base/control-group.ts'
import { type HostEnvironment, WORKER_VARIABLE } from '../base/host-environment.ts'
import {
  findByVariable,
  isAlive,
  type ProcessIdentity,
  parseIdentity,
  readProcess,
  readVariables,
  signal,
} from '../base/process-table.ts'
import { FreePorts, portsFromHandle, type ServedPorts } from '../base/served-ports.ts'
import { removeGroup } from '../base/thread-hold.ts'
import { CACHE_PATH } from '../base/worker-paths.ts'
import { WorkerRunner } from '../base/worker-runner.ts'
import { type Cage, type CagedCommand, signalFromCode, terminateCaged } from '../cage/cage.ts'
import { type CageDisks, usualCacheGb } from '../cage/disk-watch.ts'
import { WorkerGroups } from '../cage/limits.ts'
import { EndpointCaches, linkCache } from './endpoint-caches.ts'
import { givenPackage } from './given-package.ts'
import { findTaken, portConflict, readNamedPorts } from './named-ports.ts'
import { PortWatch } from './port-watch.ts'
import { absoluteImage, findProgram, resolveCommand, spawnFailure } from './process-command.ts'
import { buildEnvironment, hubFolder } from './process-environment.ts'
import { isHeldWorker, ProcessFreezer } from './process-freezer.ts'
import { type Marker, markedCommand } from './process-marks.ts'
import { killOrphanedGroup, killStrays } from './process-strays.ts'
import {
  diskFault,
  endpointFromHandle,
  findNamedConflict,
  freezerFromHandle,
  GIVEN_PORTS,
  isNetworked,
  isolationFromHandle,
  type Launch,
  markFromHandle,
  type OwnFolders,
  portVariables,
  processExit,
  processHandle,
  type Running,
  spawnWorker,
  startNote,
  UNKNOWN_EXIT,
} from './process-worker.ts'
import { accessRefusal } from './program-files.ts'
import { RuntimeCommands, type RuntimeFolders } from './runtime-command.ts'
import { VolumeLink, type VolumeLinkPlace } from './volume-link.ts'
import { WorkerNetworks, watchDisks } from './worker-watches.ts'
import { imageAsWorkingFolder, makeWorkingFolder, wantsPrivateFolder } from './working-folder.ts'

/** Interval between checks of adopted workers; the exits of own children are reported by the system. */
const POLL_MS = 500

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
  /**
   * The folder of the caches of endpoints, and the size limit of each, in GB; null for half of the free space, 0 for
   * no limit.
   */
  readonly caches: { readonly folder: string; readonly limitGb: number | null }
  /** The server's environment, of which a few variables are passed on. */
  readonly hostEnv: HostEnvironment
  /** The Node for handlers in JavaScript. */
  readonly nodePath: string
  /** The folder of the worker SDK for workers in Node without it; null to give no SDK. */
  readonly workerPackage: string | null
  /** The folders of workers of RunPod's SDK 2.0; null to run none. */
  readonly runtime: RuntimeFolders | null
  readonly maxWorkers: number
  /** Identifies this boot of the machine, see `readBootId`. */
  readonly bootId: string
  /** A second path of the network volume of workers, besides RUNPOD_VOLUME_PATH; null without one. */
  readonly volumeLink: VolumeLinkPlace | null
  /** The cage of workers; null without one. */
  readonly cage: Cage | null
  /**
   * Finds the folder in which workers with GPUs and without a cage get a control group, so that their threads can be
   * held; null where none can be made. Called once, at the start of the first such worker.
   */
  readonly findGroups: () => string | null
  /** The marker of workers without a cage, so that all their processes end with them; null without one. */
  readonly marker: Marker | null
  /**
   * Start of the search for ports of serving workers, within `PORT_RANGE`. A different one for each server avoids
   * collisions.
   */
  readonly firstPort: number
}

const NOTHING = Promise.resolve(null)

/** Runs images `dir:<path>` as processes below the given roots. */
export class ProcessDriver extends WorkerRunner<Running> implements Driver {
  readonly name = 'process'
  readonly isolation = isolationFromHandle
  readonly #options
  readonly #ports
  readonly #volumeLink
  readonly #disks: CageDisks | null
  readonly #networks
  readonly #freezer
  readonly #caches
  readonly #portWatch
  readonly #groups
  readonly #runtimes
  #cancelPoll: (() => void) | null = null
  #closed = false

  constructor(options: ProcessDriverOptions) {
    const { maxWorkers } = options
    super({ maxWorkers, counted: 'worker processes on this machine', unknownExit: UNKNOWN_EXIT })
    this.#options = options
    this.#ports = new FreePorts(options.firstPort)
    this.#volumeLink = new VolumeLink(options.volumeLink)
    const { folder, limitGb } = options.caches
    const limit = limitGb ?? usualCacheGb(folder)
    this.#caches = new EndpointCaches({ folder, limitGb: limit, hub: hubFolder(options.hostEnv) })
    this.#disks = watchDisks(options, this.workers, this.#caches, worker => this.#signalGroup(worker, 'SIGKILL'))
    this.#networks = new WorkerNetworks(options, this.workers)
    this.#freezer = new ProcessFreezer(options.clock)
    this.#groups = new WorkerGroups(options.findGroups)
    this.#runtimes = new RuntimeCommands(options)
    this.#portWatch = new PortWatch({ ...options, siblings: worker => this.#siblings(worker) })
  }

  placedBy(): 'machine' {
    return 'machine'
  }

  readsModels(): boolean {
    return true
  }

  override savedImage(image: string): string {
    return absoluteImage(image, this.#options.roots)
  }

  async check(image: string, args: string, type?: EndpointType): Promise<StartFailure | null> {
    if (this.#runtimes.runs(image)) return this.#runtimes.check(image)
    const purpose = type === undefined ? 'either' : type === 'QUEUE' ? 'jobs' : 'requests'
    try {
      await resolveCommand(image, args, this.#options, purpose)
      return null
    } catch (thrown) {
      if (thrown instanceof WorkerStartError) return thrown.failure
      throw thrown
    }
  }

  protected workerHandle(running: Running): string {
    return processHandle(running)
  }

  protected async takeOver(worker: WorkerId, handle: string | null): Promise<boolean> {
    const text = handle ?? (await this.#readRecord(worker))
    const mark = markFromHandle(text, worker)
    const identity = parseIdentity(text) ?? (handle === null ? await this.#findStarted(worker) : null)
    if (identity === null || !isAlive(identity, this.#options.bootId)) {
      await killStrays(worker, mark)
      return false
    }
    const ports = portsFromHandle(text)
    if (ports !== null) this.#ports.hold(ports)
    const variables = await readVariables(identity.pid)
    const named = readNamedPorts(variables, ports === null ? [] : GIVEN_PORTS)
    const models =
      variables.HF_HUB_CACHE === join(this.#workerFolder(worker), 'models')
        ? this.#options.volumeLink?.models
        : undefined
    const volume = variables.RUNPOD_VOLUME_PATH ?? models
    if (volume !== undefined) await this.#volumeLink.hold(worker, volume)
    const isolation = isolationFromHandle(text)
    const endpoint = endpointFromHandle(text ?? (await this.#readRecord(worker)))
    if (endpoint !== null) this.#caches.hold(worker, endpoint)
    const freezer = freezerFromHandle(text)
    const frozen = this.#freezer.findFrozen({ identity, freezer })
    const isSuspended = isHeldWorker(freezer)
    const state = { child: null, isSuspended, asked: false, fault: null, isOver: false, exit: null, suspicion: NOTHING }
    const networked = isNetworked({ isolation })
    const facts = { identity, endpoint, ports, isolation, freezer, mark, frozen, named: networked ? [] : named }
    this.workers.set(worker, { ...facts, ...state })
    this.#options.pipes.hold(worker)
    if (!networked) this.#portWatch.follow(worker)
    this.#pollLater()
    return true
  }

  protected async observation(worker: WorkerId, { exit, suspicion }: Running): Promise<Observation> {
    const port = exit === null ? this.#portWatch.findConflict(worker) : await suspicion
    const suspicionPart = port === null ? {} : { suspicion: port }
    return exit === null
      ? { state: 'running', ...suspicionPart }
      : { state: 'exited', exit: { ...exit, ...suspicionPart } }
  }

  async address(worker: WorkerId): Promise<ServedAt | null> {
    const running = this.workers.get(worker)
    return running === undefined || running.exit !== null ? null : this.#networks.servedAt(worker, running)
  }

  async freeze(worker: WorkerId): Promise<void> {
    const running = this.workers.get(worker)
    if (running !== undefined && this.#isRunning(running)) await this.#freezer.freeze(worker, running)
  }

  async thaw(worker: WorkerId): Promise<void> {
    const running = this.workers.get(worker)
    if (running !== undefined) await this.#freezer.thaw(worker, running)
  }

  override async processes(worker: WorkerId): Promise<ProcessFamily | null> {
    const running = this.workers.get(worker)
    return running !== undefined && this.#isRunning(running) ? this.#freezer.family(worker, running) : null
  }

  /** Sends the signal to the whole group, because shells do not forward it. */
  async terminate(worker: WorkerId): Promise<void> {
    const running = this.workers.get(worker)
    if (running === undefined) return
    if (!running.asked) {
      running.asked = true
      if (running.isSuspended) this.#signalGroup(worker, 'SIGKILL')
      else if (running.isolation.kind === 'none') this.#signalGroup(worker, 'SIGTERM')
      else if (this.#isRunning(running)) terminateCaged(running.identity.pid)
    }
    await this.#freezer.thaw(worker, running)
  }

  async kill(worker: WorkerId): Promise<void> {
    this.#signalGroup(worker, 'SIGKILL')
  }

  protected async forget(worker: WorkerId, tracked: Running | undefined): Promise<void> {
    const group = tracked?.freezer ?? freezerFromHandle(await this.#readRecord(worker))
    this.#options.pipes.forget(worker)
    this.#portWatch.forget(worker)
    this.#caches.release(worker)
    await this.#volumeLink.release(worker)
    // A process that was killed a moment ago may still write there.
    await rm(this.#workerFolder(worker), { recursive: true, force: true, maxRetries: 5 })
    await this.#options.cage?.forget(worker)
    if (group !== null) removeGroup(group)
  }

  override keepsApart(): string | null {
    return this.#options.cage === null
      ? 'workers that are processes run as the user of the server and can read its files'
      : null
  }

  /** Removes the rest of a worker's files, and the caches of endpoints that are gone. */
  async tidy(
    _alive: ReadonlySet<WorkerId>,
    _images: ReadonlySet<string>,
    exists: (endpoint: EndpointId) => Promise<boolean>,
  ): Promise<void> {
    await this.#volumeLink.tidy()
    await this.#caches.tidy(exists)
  }

  /** Stops observing; the workers go on. The driver cannot be used afterwards. */
  close(): void {
    this.#closed = true
    this.#cancelPoll?.()
    this.#disks?.close()
    this.#networks.close()
    this.#portWatch.close()
    this.#options.pipes.close()
    for (const { child } of this.workers.values()) child?.unref()
  }

  protected async begin(spec: WorkerSpec, watch?: StartWatch): Promise<string> {
    const { hostEnv, workerPackage } = this.#options
    const runtime = await this.#runtimes.commandFor(spec, join(this.#workerFolder(spec.workerId), 'app'), watch)
    const purpose = spec.serves === null ? 'jobs' : 'requests'
    const command = runtime?.command ?? (await resolveCommand(spec.image, spec.args, this.#options, purpose))
    const parts = runtime ?? (await this.#runtimes.partsFor(spec))
    const refusal = spec.volume === null ? null : accessRefusal(spec.volume.path)
    if (refusal !== null) throw refusal
    const isLive = runtime?.isLive === true
    const isPrivate = !isLive && wantsPrivateFolder(spec.env)
    const folder = this.#workerFolder(spec.workerId)
    const home = join(folder, 'home')
    const tmp = join(folder, 'tmp')
    const modelLinks = join(folder, 'models')
    const modelCache = this.#options.cage === null ? modelLinks : CACHE_PATH
    let ports: ServedPorts | null = null
    try {
      const cache = await this.#caches.open(spec.workerId, spec.endpointId)
      const places = { hostEnv, home, tmp, pythonFolder: command.pythonFolder, modelCache, cache: cache.path }
      const baseEnvironment = buildEnvironment(spec, places)
      const packageVariables = await givenPackage(command, workerPackage, baseEnvironment)
      const environment = { ...baseEnvironment, ...packageVariables, ...parts?.variables(cache.path) }
      const program = await findProgram(command, environment.PATH ?? '')
      // All that is in a cage ends with it.
      const marker = this.#options.cage === null ? this.#options.marker : null
      const marked = await markedCommand(marker, spec.workerId, program, command.words)
      const { mark } = marked
      ports = spec.serves === null ? null : await this.#ports.pick(spec.serves)
      await Promise.all(
        [home, tmp, ...(isLive ? [command.folder] : [])].map(path => mkdir(path, { recursive: true, mode: 0o700 })),
      )
      await linkCache(home, cache.path)
      const working = isPrivate
        ? await makeWorkingFolder(command.folder, join(folder, 'work'))
        : await imageAsWorkingFolder(command.folder)
      const needsGroup = this.#options.cage === null && spec.placement.gpus.length > 0
      const group = needsGroup ? this.#groups.make(spec.workerId) : null
      // Noted before the process exists, so that the next server finds it if this one dies in between.
      const noteText = startNote({ endpoint: spec.endpointId, ports, mark, freezer: group })
      writeFileSync(this.#identityFile(spec.workerId), noteText)
      // In a network of its own all ports are free.
      const isAlone = this.#options.cage?.hasNetworks === true
      const named = isAlone ? [] : readNamedPorts(spec.env, ports === null ? [] : GIVEN_PORTS)
      const taken = (await findTaken(named)).filter(({ worker }) => worker !== null)
      // A cage has its own path.
      const volumeNote = this.#options.cage === null ? await this.#volumeLink.show(spec, modelLinks) : null
      const notes = [
        working.note,
        volumeNote,
        ...taken.map(port => portConflictText(portConflict(port, this.#siblings(spec.workerId, spec.endpointId)))),
      ].filter(note => note !== null)
      const env = { ...environment, ...portVariables(ports, environment) }
      const cage = await this.#cageFor(spec, {
        command,
        program,
        folder,
        home,
        tmp,
        env,
        ports,
        working: working.path,
        isPrivate,
        cache,
        readable: [packageVariables === null ? null : workerPackage, ...(parts?.readable ?? [])].filter(
          path => path !== null,
        ),
      })
      const endpoint = spec.endpointId
      const launch = { command, endpoint, marked, folder: working.path, env, cage, ports, named, group, notes }
      return await this.#spawn(spec.workerId, launch)
    } catch (thrown) {
      if (ports !== null) this.#ports.release(ports)
      this.#options.pipes.forget(spec.workerId)
      this.#caches.release(spec.workerId)
      await this.#volumeLink.release(spec.workerId)
      // The first problem is reported.
      await rm(folder, { recursive: true, force: true, maxRetries: 5 }).catch(() => {})
      await this.#options.cage?.forget(spec.workerId).catch(() => {})
      if (thrown instanceof AppError) throw thrown
      const { code = 'unknown problem' } = thrown as NodeJS.ErrnoException
      if (code === 'EACCES')
        throw new WorkerStartError({ kind: 'access_refused', problem: errorText(thrown) }, { cause: thrown })
      throw new WorkerStartError({ kind: 'private_folder', code }, { cause: thrown })
    }
  }

  async #spawn(worker: WorkerId, launch: Launch): Promise<string> {
    const { command, endpoint, cage, ports, named, group } = launch
    const { mark } = launch.marked
    // So that its output is not taken for that of a worker which is gone.
    this.#options.logs.folder(worker)
    const output = await this.#options.pipes.open(worker)
    const child = spawnWorker(launch, output)
    const { pid } = child
    if (pid === undefined) throw await spawnFailure(command.words[0] ?? '', child)
    // Nothing may wait between the start and this note, with which the next server finds the worker.
    const identity = { pid, startTime: readProcess(pid)?.startTime ?? '', bootId: this.#options.bootId }
    const isolation = cage?.isolation ?? NO_ISOLATION
    const state = { child, isSuspended: false, frozen: null, asked: false, fault: null, isOver: false, exit: null }
    // Processes that it has started until now join before it is frozen.
    const freezer = cage?.freezer ?? (group !== null && joinGroup(group, pid) ? group : null)
    const facts = { identity, endpoint, ports, named, isolation, freezer, mark }
    const running: Running = { ...facts, ...state, suspicion: NOTHING }
    const handle = processHandle(running)
    try {
      writeFileSync(this.#identityFile(worker), handle)
    } catch (thrown) {
      signal(-pid, 'SIGKILL')
      throw thrown
    }
    this.workers.set(worker, running)
    if (!isNetworked(running)) this.#portWatch.follow(worker)
    cage?.attach?.(child)
    child.on('exit', (code, signalName) => {
      if (this.#closed) return
      signal(-pid, 'SIGKILL')
      const inner = cage === null ? null : signalFromCode(code)
      const end = { code: inner === null ? code : null, signal: inner ?? signalName }
      void this.#ended(
        worker,
        running,
        processExit(end.code, end.signal, running.fault ?? diskFault(this.#options.workerDir, running, end)),
      )
    })
    return handle
  }

  async #cageFor(
    spec: WorkerSpec,
    {
      command,
      folder,
      ...launch
    }: Pick<Launch, 'command' | 'folder' | 'env' | 'ports'> &
      OwnFolders & { readonly program: string; readonly readable: readonly string[] },
  ): Promise<CagedCommand | null> {
    const { cage, hostEnv, nodePath } = this.#options
    if (cage === null) return null
    const [, ...words] = command.words
    return cage.command({ ...launch, spec, image: command.folder, words, hostEnv, nodePath }, folder)
  }

  /** The note of the worker's start. */
  #readRecord(worker: WorkerId): Promise<string> {
    return readFile(this.#identityFile(worker), 'utf8').catch(() => '')
  }

  async #findStarted(worker: WorkerId): Promise<ProcessIdentity | null> {
    const leader = (await findByVariable(WORKER_VARIABLE, worker)).find(({ pid, group }) => pid === group)
    return leader ? { pid: leader.pid, startTime: leader.startTime, bootId: this.#options.bootId } : null
  }

  #signalGroup(worker: WorkerId, name: NodeJS.Signals): void {
    const running = this.workers.get(worker)
    if (running !== undefined && this.#isRunning(running)) signal(-running.identity.pid, name)
  }

  /** The pid of a child is not reused before its exit was reported. */
  #isRunning({ identity, child, isOver }: Running): boolean {
    return !isOver && (child !== null || isAlive(identity, this.#options.bootId))
  }

  /**
   * The exit is known once all that the worker printed is in its output, where people and the server look for the
   * reason.
   */
  async #ended(worker: WorkerId, running: Running, exit: ObservedExit): Promise<void> {
    running.isOver = true
    if (running.ports !== null) this.#ports.release(running.ports)
    const killed = killStrays(worker, running.mark)
    await this.#options.pipes.drained(worker)
    if (!isNetworked(running)) running.suspicion = killed.then(() => this.#findConflict(worker, running))
    running.exit = exit
    this.#options.notifier.publish('fleet')
  }

  async #findConflict(worker: WorkerId, { named, asked }: Running): Promise<PortConflict | null> {
    const conflict = named.length === 0 ? null : await findNamedConflict(worker, named, this.#siblings(worker))
    return conflict ?? (asked ? null : await this.#portWatch.ended(worker))
  }

  /** The other running workers of an endpoint. */
  #siblings(worker: WorkerId, endpoint = this.workers.get(worker)?.endpoint ?? null): ReadonlySet<WorkerId> {
    const otherWorkers = [...this.workers].filter(([id, other]) => id !== worker && !other.isOver)
    return new Set(
      otherWorkers.flatMap(([id, other]) => (endpoint !== null && other.endpoint === endpoint ? [id] : [])),
    )
  }

  #pollLater(): void {
    if (this.#closed || this.#cancelPoll !== null) return
    this.#cancelPoll = this.#options.clock.after(POLL_MS, () => {
      this.#cancelPoll = null
      this.#poll()
    })
  }

  #poll(): void {
    let adopted = 0
    for (const [worker, running] of this.workers) {
      if (running.child !== null || running.isOver) continue
      if (isAlive(running.identity, this.#options.bootId)) adopted += 1
      else {
        killOrphanedGroup(running.identity.pid)
        void this.#ended(
          worker,
          running,
          running.fault === null ? UNKNOWN_EXIT : processExit(null, null, running.fault),
        )
      }
    }
    if (adopted > 0) this.#pollLater()
  }

  #workerFolder(worker: WorkerId): string {
    if (!/^[\w-]+$/.test(worker)) throw new AppError('internal', `'${worker}' is not an id of a worker`)
    return join(this.#options.workerDir, worker)
  }

  #identityFile(worker: WorkerId): string {
    return join(this.#workerFolder(worker), 'process.json')
  }
}
