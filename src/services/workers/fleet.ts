import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { ReleasedTemplate } from '../../core/endpoints/release.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { toAppError } from '../../core/errors.ts'
import { DEFAULT_OWNER, type EndpointId, type WorkerId } from '../../core/ids.ts'
import { outputEnd, READ_LINES } from '../../core/output-end.ts'
import { wishFromCompute } from '../../core/placement/wish.ts'
import { countsAgainstRelease, MAX_ROLLOUT_CRASHES } from '../../core/scaling/rollout.ts'
import { isFolderReserved } from '../../core/workers/host-folder.ts'
import { newWorker, type WaitedFor } from '../../core/workers/new-worker.ts'
import { type Placement, UNPLACED } from '../../core/workers/placement.ts'
import {
  type StartFailure,
  startFailureFromError,
  startFailureText,
  withoutRegistryWords,
} from '../../core/workers/start-failure.ts'
import {
  crashed,
  exitText,
  type FaultReason,
  fateOfJobs,
  type StopReason,
  storedExit,
  WORKER_TOKEN,
  type Worker,
} from '../../core/workers/worker.ts'
import { fractionEnv, identityEnv, protocolEnv } from '../../core/workers/worker-environment.ts'
import type { ObservedExit } from '../../core/workers/worker-exit.ts'
import { coldStartTimes } from '../../core/workers/worker-phase.ts'
import { problemText, type WorkerProblem } from '../../core/workers/worker-problem.ts'
import type { StartWatch } from '../../ports/driver.ts'
import type { Ports } from '../../ports/ports.ts'
import type { WorkerMove } from '../../ports/store/store.ts'
import type { AppBuilds } from '../apps/app-builds.ts'
import type { AuditLog } from '../audit/audit-log.ts'
import { isOnMachine } from '../endpoints/host-folders.ts'
import { downloadGuard } from '../endpoints/image-access.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { EndpointModels, ModelsState } from '../models/endpoint-models.ts'
import { shortId } from '../short-id.ts'
import type { RunningWorker } from './running-worker.ts'
import type { RunningWorkers } from './running-workers.ts'
import type { UndeliveredResults } from './undelivered-results.ts'
import { isReached, urlFor, type WorkerAddresses } from './worker-addresses.ts'
import type { WorkerFreezer } from './worker-freezer.ts'
import { WorkerLaunchReader } from './worker-launch-inputs.ts'

/** Workers that ended last and are released again after a start; the server may have ended before it released them. */
const LAST_ENDED = 64

/** Starts, drains, stops and adopts workers, and records their exits. The loops in control decide on the time. */
export class Fleet {
  readonly #ports
  readonly #jobs
  readonly #running
  readonly #undelivered
  readonly #models
  readonly #workerFreezer
  readonly #audit
  readonly #inputs
  readonly #addresses

  constructor(
    ports: Ports,
    parts: {
      readonly jobs: Jobs
      readonly running: RunningWorkers
      readonly undelivered: UndeliveredResults
      readonly models: EndpointModels
      readonly workerFreezer: WorkerFreezer
      readonly audit: AuditLog
      readonly appBuilds: AppBuilds
    },
    addresses: WorkerAddresses,
  ) {
    this.#ports = ports
    this.#jobs = parts.jobs
    this.#running = parts.running
    this.#undelivered = parts.undelivered
    this.#models = parts.models
    this.#workerFreezer = parts.workerFreezer
    this.#audit = parts.audit
    this.#inputs = new WorkerLaunchReader(ports, parts.appBuilds, addresses)
    this.#addresses = addresses
    parts.workerFreezer.reportTo({
      wakeFailed: (worker, problem) => this.endFaulty(worker, 'unhealthy', problem),
      lost: (worker, problem) => this.endFaulty(worker, 'suspend_failed', problem),
      moved: move => this.moved(move),
      memoryShort: id => this.stop(id, 'memory_short'),
    })
  }

  /**
   * The reason for which no worker of this endpoint can be started now; null when one can.
   * @param released template of its workers, for another release than the present one
   */
  async startFailure(endpoint: Endpoint, released: ReleasedTemplate | null = null): Promise<StartFailure | null> {
    const { driver } = this.#ports
    const template = released ?? (await this.#readTemplate(endpoint))
    if (template === null) return { kind: 'template_missing', template: endpoint.templateId }
    return (
      (await this.#inputs.failure(endpoint, template)) ??
      (await driver.check(template.image, template.args, endpoint.type)) ??
      (this.#findsModels(endpoint, template)
        ? this.#models.failure(endpoint, await this.#inputs.env(endpoint, template))
        : null)
    )
  }

  /**
   * The side that places the workers of an endpoint; see `Driver.placedBy`.
   * @param released as for {@link startFailure}
   */
  async placedBy(endpoint: Endpoint, released: ReleasedTemplate | null): Promise<'machine' | 'platform'> {
    const template = released ?? (await this.#readTemplate(endpoint))
    return template === null ? 'machine' : this.#ports.driver.placedBy(template.image)
  }

  /**
   * Sees that the models of an endpoint are on the machine, and does not wait for it; see
   * {@link EndpointModels.prepare}.
   * @param released as for {@link startFailure}
   */
  async prepareModels(endpoint: Endpoint, released: ReleasedTemplate | null = null): Promise<ModelsState> {
    const template = released ?? (await this.#readTemplate(endpoint))
    if (template === null || !this.#findsModels(endpoint, template)) return { kind: 'ready' }
    return this.#models.prepare(endpoint, await this.#inputs.env(endpoint, template))
  }

  /**
   * Records one worker of the endpoint's version, unless `workersMax` is reached, and starts it. Does not wait for
   * the start, which may take minutes. A worker whose process cannot be started is recorded as ended with the reason,
   * so that it counts for the back-off.
   * @param queued the queued worker that has waited for this place; it becomes the worker
   * @param released as for {@link startFailure}
   */
  async start(
    endpoint: Endpoint,
    placement: Placement = UNPLACED,
    queued: WaitedFor | null = null,
    released: ReleasedTemplate | null = null,
  ): Promise<void> {
    const { store, vault, random, emit } = this.#ports
    const template = released ?? (await this.#readTemplate(endpoint))
    if (template === null) return
    // A worker that serves requests makes no calls to this server.
    const serves = endpoint.type === 'LOAD_BALANCER' ? await this.#inputs.serving(endpoint, template) : null
    const url =
      serves === null ? urlFor(this.#addresses, isOnMachine(this.#ports, template.image)) : Promise.resolve('')
    const place = { driver: this.#ports.driver.nameFor(template.image), baseUrl: await url.catch(() => '') }
    const id = queued?.id ?? this.newId()
    const worker = newWorker({ id, endpoint, placement, queued, ...place, serves, nowMs: this.#ports.clock.now() })
    const token = `${WORKER_TOKEN}${Buffer.from(random.bytes(32)).toString('base64url')}`
    const running = this.#running.launch(worker.id)
    let recorded = false
    try {
      recorded = await store.workers.insert(worker, vault.hash(token))
    } finally {
      if (!recorded) this.#running.forget(worker.id)
    }
    if (!recorded) return
    this.#servingChanged(worker)
    emit('worker.created', { endpointId: endpoint.id, workerId: worker.id, version: worker.version })
    // If the failure could not be recorded, the reaper sees the exit once the worker is no longer launching.
    void this.#startNew(() => url.then(() => this.#launch(endpoint, template, worker, token, running)), worker)
      .catch(error => this.#reportFailure(error))
      .finally(() => running.launched())
  }

  /** True when the models of an endpoint have to be on this machine for its workers. */
  #findsModels({ modelReferences }: Endpoint, { image }: ReleasedTemplate): boolean {
    return modelReferences.length > 0 && this.#ports.driver.readsModels(image)
  }

  #readTemplate({ owner, templateId }: Endpoint): Promise<Template | null> {
    return this.#ports.store.templates.find(owner, templateId)
  }

  async #startNew(launch: () => Promise<string>, worker: Worker): Promise<void> {
    const { store, driver, clock } = this.#ports
    try {
      const handle = await launch()
      await store.workers.started(worker.id, handle, clock.now())
      this.#servingChanged(worker)
    } catch (error) {
      await this.#startFailed(worker, error)
      return
    }
    // A stop during the start found no process to end.
    const stored = await store.workers.find(worker.id)
    if (stored?.state === 'STOPPING') await driver.terminate(worker.id)
  }

  /** Wakes the health checker, which has to know of a new serving worker at once. */
  #servingChanged({ serves, endpointId }: Worker): void {
    if (serves !== null) this.#ports.notifier.publish(`load:${endpointId}`)
  }

  async #startFailed({ id, endpointId, owner }: Worker, error: unknown): Promise<void> {
    const reclaimed = await this.#reclaimed(id)
    if (reclaimed !== null) return this.recordExit(id, reclaimed)
    const failure = this.#shownTo({ id, endpointId, owner }, startFailureFromError(error))
    this.#ports.emit('worker.start_failed', { endpointId, workerId: id, problem: startFailureText(failure) })
    await this.#ports.driver.kill(id)
    await this.recordExit(id, { code: null, signal: null, cause: { kind: 'not_started', failure } })
  }

  /** The end of a worker that its platform took away; null for any other. */
  async #reclaimed(id: WorkerId): Promise<ObservedExit | null> {
    const observation = await this.#ports.driver.observe(id)
    return observation.state === 'exited' && observation.exit.cause.kind === 'reclaimed' ? observation.exit : null
  }

  /** Notes that a worker runs whose start another server began. */
  async noteStarted(worker: Worker): Promise<void> {
    await this.#ports.store.workers.started(worker.id, null, this.#ports.clock.now())
    this.#servingChanged(worker)
  }

  #reportFailure(error: unknown): void {
    this.#ports.emit('loop.failed', { loop: 'start of a worker', problem: toAppError(error).message })
  }

  /** Gives the worker no more jobs. It is stopped when it holds none. */
  async drain(workerId: WorkerId, reason: StopReason): Promise<void> {
    await this.#retire(workerId, 'DRAINING', reason)
  }

  /**
   * Freezes a READY worker that holds no job. False, without effect, when it has work now, or something is wrong with
   * it. The driver acts after that, see {@link WorkerFreezer.settle}: a worker that serves may have requests that were
   * sent to it in between.
   */
  async freeze(workerId: WorkerId): Promise<boolean> {
    const move = await this.#ports.store.workers.freeze(workerId, this.#ports.clock.now())
    if (move !== null) this.moved(move)
    return move !== null
  }

  /**
   * Thaws a frozen worker, which is READY then; does not wait for the driver. False, without effect, when it is not
   * frozen.
   * @param endpointVersion false also when the endpoint has another version by now; null for any version
   * @param hasGpus true when placement gave its GPUs back to it; false also for a worker that gave them away and waits
   * for them
   */
  async thaw(workerId: WorkerId, endpointVersion: number | null, hasGpus = false): Promise<boolean> {
    this.#running.find(workerId)?.thaw()
    const move = await this.#ports.store.workers.thaw(workerId, this.#ports.clock.now(), endpointVersion, hasGpus)
    if (move === null) return false
    this.moved(move)
    void this.#workerFreezer.settle(move.worker)
    return true
  }

  /**
   * Drains the worker so that another endpoint gets its place. False, without effect, when the worker has work now.
   */
  async evict(workerId: WorkerId): Promise<boolean> {
    const move = await this.#ports.store.workers.evict(workerId, this.#ports.clock.now())
    if (move !== null) this.moved(move)
    return move !== null
  }

  /** A new id for a worker. */
  newId(): WorkerId {
    return shortId(this.#ports.random) as WorkerId
  }

  /** Stops the worker: its long polls are answered, then it gets SIGTERM. A suspended one cannot follow it. */
  async stop(workerId: WorkerId, reason: StopReason): Promise<void> {
    await this.#retire(workerId, 'STOPPING', reason)
    const { driver, store } = this.#ports
    const isSuspended = (await store.workers.find(workerId))?.suspension != null
    await (isSuspended ? driver.kill(workerId) : driver.terminate(workerId))
  }

  /** Ends the worker at once. Its jobs are given back when its exit is observed. */
  async kill(workerId: WorkerId, reason: StopReason): Promise<void> {
    await this.#retire(workerId, 'STOPPING', reason)
    await this.#ports.driver.kill(workerId)
  }

  /** Keeps what is wrong with a worker; people see it with the worker, also after its end. */
  async noteProblem({ id: workerId, endpointId }: Worker, problem: WorkerProblem): Promise<void> {
    if (!(await this.#ports.store.workers.noteProblem(workerId, problem, this.#ports.clock.now()))) return
    this.#ports.emit('worker.problem', { endpointId, workerId, problem: problemText(problem) })
  }

  /** Ends a faulty or lost worker at once. Its jobs are given back when its exit is observed, never before. */
  async endFaulty(worker: Worker, reason: FaultReason | 'suspend_failed', problem: WorkerProblem): Promise<void> {
    await this.noteProblem(worker, problem)
    await this.kill(worker.id, reason)
  }

  /**
   * Records the exit of a worker and gives its jobs back.
   * @param knownFate `lost` counts as an attempt of its jobs, `released` does not; `unseen` is lost while no server
   *   ran. By default the exit and the record of the worker decide
   */
  async recordExit(workerId: WorkerId, observed: ObservedExit, knownFate?: 'released' | 'unseen'): Promise<void> {
    const { store, clock, logs } = this.#ports
    const isKnown = this.#running.find(workerId) !== null
    this.#running.end(workerId)
    const worker = await store.workers.find(workerId)
    // Its end was published by a caller that recorded it at the same time: `finishExits` must not do so again.
    if (!isKnown && worker?.state === 'EXITED') this.#running.forget(workerId)
    const shownExit = worker === null ? observed : this.#exitShownTo(worker, observed)
    // A paused worker ran nothing while no server ran, either.
    const fate = worker?.pause != null ? 'released' : (knownFate ?? fateOfJobs(worker, shownExit))
    const exit = storedExit(worker, shownExit)
    const ended = exitText(worker ?? UNKNOWN, exit)
    const lastLines = outputEnd(await logs.tail(workerId, READ_LINES))
    const takeBack = () =>
      fate === 'released'
        ? this.#jobs.releaseAll(workerId)
        : this.#jobs.requeueLost(workerId, `it ${ended}`, { lastLines })
    if (worker !== null) await this.#undelivered.read(worker, 'all')
    // Before its exit is recorded: if this fails, the exit is recorded again. After it: jobs claimed in between.
    await takeBack()
    await store.stops.letGo(workerId, 'all')
    const move = await store.workers.exited(workerId, { ...exit, lastLines }, clock.now(), knownFate !== 'unseen')
    await takeBack()
    if (move !== null) await this.#reportStop(move.worker)
    await this.#forget(workerId, move?.worker ?? null)
  }

  /** A failure as the account of a worker may see it. The log of the server gets all of it. */
  #shownTo(
    { id, endpointId, owner }: Pick<Worker, 'id' | 'endpointId' | 'owner'>,
    failure: StartFailure,
  ): StartFailure {
    if (owner === DEFAULT_OWNER) return failure
    const shown = withoutRegistryWords(failure)
    if (shown !== failure) {
      this.#ports.emit('image.download_failed', { endpointId, workerId: id, problem: startFailureText(failure) })
    }
    return shown
  }

  #exitShownTo(worker: Worker, exit: ObservedExit): ObservedExit {
    const { cause } = exit
    if (cause.kind !== 'not_started' && cause.kind !== 'program_not_started') return exit
    return { ...exit, cause: { ...cause, failure: this.#shownTo(worker, cause.failure) } }
  }

  /** Emits that the crash of a worker has stopped a rollout. */
  async #reportStop(worker: Worker): Promise<void> {
    if (worker.readyAtMs !== null || !countsAgainstRelease(worker)) return
    const { endpointId, version } = worker
    const { crashes, working } = await this.#ports.store.releases.rollout(endpointId, version)
    if (crashes !== MAX_ROLLOUT_CRASHES || working === null) return
    this.#ports.emit('rollout.stopped', {
      endpointId,
      version,
      crashes,
      working: working.version,
      cause: endText(worker),
    })
  }

  /**
   * Finishes exits whose recording stopped in the middle, because the store failed.
   * @param alive workers whose exit is not recorded
   */
  async finishExits(alive: ReadonlySet<WorkerId>): Promise<void> {
    for (const id of this.#running.ended()) {
      if (alive.has(id)) continue
      const worker = await this.#ports.store.workers.find(id)
      const lastLines = worker?.exit?.lastLines ?? []
      await this.#jobs.requeueLost(id, `it ${endText(worker)}`, { lastLines })
      await this.#forget(id, worker)
    }
  }

  /** @param worker null when its exit was recorded and published before */
  async #forget(workerId: WorkerId, worker: Worker | null): Promise<void> {
    const { driver, emit, notifier } = this.#ports
    // One whose start failed after it had begun is killed, which takes a while on a platform: `finishExits` goes on
    // after that.
    if ((await driver.observe(workerId)).state !== 'exited') return
    await this.#release(workerId)
    if (this.#running.find(workerId)?.hasEnded !== true) return
    this.#running.forget(workerId)
    if (worker === null) return
    const { endpointId } = worker
    emit('worker.exited', { endpointId, workerId, cause: endText(worker), asked: !crashed(worker) })
    notifier.publish(`worker:${workerId}`)
    notifier.publish(`load:${endpointId}`)
  }

  async #release(workerId: WorkerId): Promise<void> {
    await this.#ports.driver.release(workerId)
    await this.#models.release(workerId)
  }

  /**
   * Ends the workers of a deleted endpoint that its deletion did not end. Workers that serve requests get a signal to
   * end, so that they can close their sockets properly.
   * @param isBusy true for a serving worker that has requests and may finish them
   * @returns number of workers that may
   */
  async endStray(endpointId: EndpointId, isBusy: (worker: Worker) => boolean): Promise<number> {
    let servingCount = 0
    for (const worker of await this.#ports.store.workers.list(endpointId)) {
      const { id, state } = worker
      if (state === 'EXITED') continue
      if (worker.serves !== null && (state === 'READY' || state === 'DRAINING') && isBusy(worker)) {
        servingCount += 1
        await this.drain(id, 'endpoint_deleted')
      } else if (worker.serves === null || state === 'STARTING') await this.kill(id, 'endpoint_deleted')
      else if (state !== 'STOPPING') await this.stop(id, 'endpoint_deleted')
    }
    return servingCount
  }

  /**
   * After a start of the server: adopts the workers that an earlier run left. Ends those that do not reach this server
   * at the address that they were given, and those whose endpoint is deleted.
   */
  async adoptAll(): Promise<void> {
    const { store, driver, emit } = this.#ports
    for (const id of await store.workers.lastExited(LAST_ENDED)) await this.#release(id)
    const endpoints = new Set(await store.endpoints.ids())
    for (const worker of await store.workers.alive()) {
      const alive = await driver.adopt(worker.id, worker.handle, worker.driver)
      if (!alive) {
        // One that was to end has ended by that.
        const reclaimed = worker.state === 'STOPPING' ? null : await this.#reclaimed(worker.id)
        if (reclaimed === null) await this.recordExit(worker.id, UNSEEN, 'unseen')
        else await this.recordExit(worker.id, reclaimed)
      } else if (!endpoints.has(worker.endpointId)) {
        await this.kill(worker.id, 'endpoint_deleted')
      } else if (await this.#isForbidden(worker)) {
        await this.noteProblem(worker, { kind: 'folder_reserved' })
        await this.kill(worker.id, 'requested')
      } else if (worker.serves === null && !isReached(this.#addresses, worker.baseUrl)) {
        await this.kill(worker.id, 'address_changed')
      } else {
        emit('worker.adopted', { endpointId: worker.endpointId, workerId: worker.id })
        await this.#workerFreezer.adopt(worker)
      }
    }
  }

  /** True when it runs a folder of this machine for an account other than the operator, as older versions allowed. */
  async #isForbidden({ owner, endpointId }: Worker): Promise<boolean> {
    if (owner === DEFAULT_OWNER) return false
    const { endpoints, templates } = this.#ports.store
    const endpoint = await endpoints.find(endpointId)
    const template = endpoint === null ? null : await templates.find(owner, endpoint.templateId)
    return template !== null && isFolderReserved(owner, isOnMachine(this.#ports, template.image))
  }

  /** Emits and publishes a change of a worker's state that the store has made. */
  moved({ worker, from }: WorkerMove): void {
    const { emit, notifier } = this.#ports
    const { endpointId, id: workerId, state: to, stopReason: reason } = worker
    const phases = from === 'STARTING' && to === 'READY' ? coldStartTimes(worker) : null
    const coldStart =
      phases === null ? {} : { coldStartMs: Math.max(0, (worker.readyAtMs ?? 0) - worker.createdAtMs), phases }
    emit('worker.moved', { endpointId, workerId, from, to, reason, ...coldStart })
    notifier.publish(`worker:${workerId}`)
    notifier.publish(`load:${endpointId}`)
  }

  async #retire(workerId: WorkerId, to: 'DRAINING' | 'STOPPING', reason: StopReason): Promise<void> {
    const move = await this.#ports.store.workers.retire(workerId, to, reason, this.#ports.clock.now())
    if (move !== null) this.moved(move)
  }

  async #launch(
    endpoint: Endpoint,
    template: ReleasedTemplate,
    worker: Worker,
    token: string,
    running: RunningWorker,
  ): Promise<string> {
    const { driver, random } = this.#ports
    const hostSuffix = Buffer.from(random.bytes(4)).toString('hex')
    const { endpointId, id: workerId, baseUrl, serves } = worker
    const placement = worker.placement ?? UNPLACED
    await this.#noteSecrets(endpoint, template, worker)
    const inputs = await this.#inputs.find(endpoint, template, token)
    const models = this.#findsModels(endpoint, template) ? await this.#models.hold(workerId, endpoint, inputs.env) : []
    const identity = { endpointId, workerId, hostSuffix, placement, volume: inputs.volume }
    const guard = downloadGuard(this.#ports, endpoint.owner, template.image)
    const spec = {
      workerId,
      endpointId,
      owner: endpoint.owner,
      image: template.image,
      args: template.args,
      wish: wishFromCompute(endpoint.compute),
      placement,
      ...inputs,
      env: { ...fractionEnv(template.image, placement), ...inputs.env },
      ...(guard && { guard }),
      models,
      diskGb: template.diskGb,
      ports: template.ports,
      serves,
      protocolEnv:
        serves === null ? protocolEnv({ ...identity, token, baseUrl, env: inputs.env }) : identityEnv(identity),
    }
    return driver.start(spec, this.#watch(worker, running))
  }

  /** No secret is opened for a worker before the audit log has its name. */
  async #noteSecrets(endpoint: Endpoint, template: ReleasedTemplate, { id, version }: Worker): Promise<void> {
    const { secrets, registry } = this.#inputs.secrets(endpoint, template)
    if (secrets.length === 0 && registry === null) return
    const { owner, id: endpointId } = endpoint
    const detail = { endpoint: endpointId, release: version, secrets, registry }
    await this.#audit.ofServer('openSecrets', { kind: 'worker', id }, detail, owner)
  }

  /** Records the beginning and the end of the download of a worker's image, and notes its percentage in between. */
  #watch({ id, endpointId, version }: Worker, running: RunningWorker): StartWatch {
    const { store, clock } = this.#ports
    let pulling = false
    const record = (event: 'started' | 'ended') => {
      store.workers.pulling(id, event, clock.now()).catch(error => this.#reportFailure(error))
    }
    return {
      pins: {
        current: () => store.releases.image(endpointId, version),
        pin: async (image, replaced) =>
          (await store.releases.pinImage(endpointId, version, { image, replaced })) ?? image,
      },
      pulling: percent => {
        running.pulled(percent)
        if (!pulling) record('started')
        pulling = true
      },
      pulled: () => {
        if (pulling) record('ended')
        pulling = false
      },
    }
  }
}

/** The end of a worker while no server ran. */
const UNSEEN: ObservedExit = { code: null, signal: null, cause: { kind: 'unseen', when: 'server_away' } }
/** Facts of a worker without a record. */
const UNKNOWN = { problem: null, stopReason: null }

function endText(worker: Worker | null): string {
  return worker?.exit == null ? 'ended' : exitText(worker, worker.exit)
}
