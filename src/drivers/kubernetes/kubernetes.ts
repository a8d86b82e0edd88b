/**
 * Runs workers as pods of a Kubernetes cluster, one bare pod each.
 *
 * A pod is named after its worker, so any server of an installation finds it. The API of the cluster may be away at
 * any time: pods that cannot be seen count as running, and requests to them are sent again when it is back. A pod
 * ends for this server when the cluster reports so: it has ended, a complete answer no longer has it, or its
 * node has been silent beyond a limit.
 */
import type { EndpointType } from '../../core/endpoints/endpoint.ts'
import { parseReference } from '../../core/endpoints/image-reference.ts'
import { AppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { Isolation } from '../../core/workers/isolation.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import { type StartFailure, WorkerStartError } from '../../core/workers/start-failure.ts'
import type { ObservedExit } from '../../core/workers/worker-exit.ts'
import { type Clock, pause } from '../../ports/clock.ts'
import type { Driver, Observation, StartWatch, WorkerSpec } from '../../ports/driver.ts'
import type { Notifier } from '../../ports/notifier.ts'
import { clean, containerRefusal } from '../base/refusals.ts'
import { WorkerRunner } from '../base/worker-runner.ts'
import { type EventObject, type KubernetesApi, KubernetesError, kubernetesError, type PodObject } from './api.ts'
import { type ListedPage, ListWatch } from './list-watch.ts'
import { isPodId, ownSelector, podName, workerFromObject, workerFromPodName } from './names.ts'
import { NodeTypes } from './node-types.ts'
import { PodCalls } from './pod-calls.ts'
import { KILL_S, PodEndings } from './pod-endings.ts'
import type { PodOutputs } from './pod-output.ts'
import { hasPullSecret, podReport } from './pod-report.ts'
import type { PodSettings } from './pod-spec.ts'
import { makePod, StartProgress, StartTurns, stoppedStart, whenAborted } from './pod-starts.ts'
import { lostText } from './start-trouble.ts'
import { type PodEnding, parseHandle, podHandle, WorkerPod } from './worker-pod.ts'

/** Options of {@link createKubernetesDriver}. */
export interface KubernetesDriverOptions {
  readonly api: KubernetesApi
  readonly namespace: string
  readonly clock: Clock
  readonly notifier: Notifier
  readonly outputs: PodOutputs
  /**
   * Letters and digits that identify this installation in a namespace that others may use, too. All its servers give
   * the same.
   */
  readonly installation: string
  readonly settings: PodSettings
  readonly maxWorkers: number
  /** True where this server reaches the addresses of pods. */
  readonly reachesPods: boolean
  /** Logs that the API was found or lost. */
  readonly note: (event: 'cluster.found' | 'cluster.away', fields: Readonly<Record<string, unknown>>) => void
  /** Called when the API has come, also again. */
  readonly onUp?: () => void
}

const CHECK_MS = 5_000
/** Reasons of events about a pod whose volume cannot be mounted, and of events about one that has it. */
const UNMOUNTED = new Set(['FailedMount', 'FailedAttachVolume'])
const STARTING = new Set(['Pulling', 'Pulled', 'Created'])
/** Silence after which a pod that should change state is polled. */
const POLL_AFTER_MS = 15_000
/** Pods that are asked for at once. */
const MAX_ASKED = 20
/** Maximum wait of a caller for the cluster to take a call that ends a pod; the call goes on after that. */
const ENDING_WAIT_MS = 1_000
const FIRST_MS = 10_000
/** Maximum wait of a server that becomes active for the first answer: it should act within seconds. */
const TAKEOVER_MS = 1_500
/** Pauses between calls that remove the pod of a start that failed. */
const GIVE_UP_MS = { first: 1_000, most: 15_000 }
/** Objects that are younger may be those of a server that took over in the meantime. */
const TIDY_AGE_MS = 10 * 60_000
const TIDY_MS = 3_000

const UNKNOWN_EXIT: ObservedExit = { code: null, signal: null, cause: { kind: 'unseen', when: 'unknown' } }

/** The driver for all images that are not folders of this machine. */
export class KubernetesDriver extends WorkerRunner<WorkerPod> implements Driver {
  readonly name = 'kubernetes'
  readonly #options
  readonly #calls
  readonly #nodes
  readonly #unclaimed
  readonly #endings
  /** Those whose pods the present list has had so far. */
  readonly #seen = new Set<WorkerId>()
  readonly #turns = new StartTurns()
  readonly #progress = new StartProgress()
  readonly #podWatch
  readonly #eventWatch
  /** The reason why the API cannot be called; null when it can, undefined before the first answer. */
  #away: string | null | undefined = undefined
  readonly #tried = Promise.withResolvers<void>()
  /** Resolves when a takeover waits for the cluster no longer. */
  readonly #waited: Promise<void>
  #cancelCheck: () => void = () => {}
  #closed = false

  constructor(options: KubernetesDriverOptions) {
    super({ maxWorkers: options.maxWorkers, counted: 'workers', unknownExit: UNKNOWN_EXIT })
    this.#options = options
    const { api, namespace, installation, clock, settings, notifier } = options
    this.#calls = new PodCalls({ api, namespace, installation })
    this.#unclaimed = new UnclaimedPods(installation)
    this.#endings = new PodEndings(this.#calls, clock, settings.stopS)
    this.#nodes = new NodeTypes(api, clock, settings.gpus, () => notifier.publish('fleet'))
    this.#podWatch = new ListWatch<PodObject>({
      api,
      clock,
      path: this.#calls.path('pods'),
      query: { labelSelector: ownSelector(installation) },
      from: 'all',
      onPage: page => this.#onListPage(page),
      onEvent: (type, pod) => this.#onPodEvent(type, pod),
      onAway: problem => this.#setAway(problem),
    })
    this.#eventWatch = new ListWatch<EventObject>({
      api,
      clock,
      path: `/api/v1/namespaces/${namespace}/events`,
      query: { fieldSelector: 'involvedObject.kind=Pod' },
      from: 'new',
      onPage: () => {},
      onEvent: (type, event) => type !== 'DELETED' && this.#onNodeEvent(event),
      onAway: () => {},
    })
    const cancel = clock.after(FIRST_MS, this.#tried.resolve)
    this.#waited = pause(clock, TAKEOVER_MS)
    void this.#tried.promise.then(cancel)
    this.#checkSoon()
  }

  placedBy(): 'platform' {
    return 'platform'
  }

  readsModels(): boolean {
    return this.#options.settings.modelFolder !== null
  }

  async check(image: string, args: string, type?: EndpointType): Promise<StartFailure | null> {
    const refusal = containerRefusal(image, args)
    if (refusal !== null) return refusal
    if (type === 'LOAD_BALANCER' && !this.#options.reachesPods) return { kind: 'cluster_elsewhere' }
    await this.#tried.promise
    return this.#away === null ? null : { kind: 'cluster_away', said: this.#away ?? 'it has not answered yet' }
  }

  protected workerHandle(pod: WorkerPod, spec: WorkerSpec): string {
    return podHandle(pod, spec)
  }

  protected override onStartEnd(worker: WorkerId): void {
    this.#progress.end(podName(worker))
  }

  protected async takeOver(worker: WorkerId, handle: string | null): Promise<boolean> {
    if (handle !== null && parseHandle(handle) === null) return false
    if (!isPodId(worker)) return false
    await Promise.race([this.#tried.promise, this.#waited])
    let object: PodObject | null
    try {
      // The next server must not wait for each of thousands of workers while the cluster does not answer.
      if (this.#away !== null) throw new KubernetesError('the cluster does not answer', null)
      object = this.#unclaimed.take(worker) ?? (await this.#calls.find(worker))
    } catch {
      // The pod may run, and counts as running until the cluster reports something else.
      this.#track(worker, true, handle !== null)
      return true
    }
    if (object === null) {
      // A pod stays after the end of its program, so it was deleted.
      if (handle === null) return false
      const pod = this.#track(worker, true, true)
      pod.noteGone(null)
      await pod.over
      return false
    }
    const pod = this.#track(worker, true, true)
    const report = podReport(object, true)
    pod.see(report)
    if (report.life.kind !== 'ended') return true
    // Its output is still readable, and the observation of it from now on reports how it ended.
    await pod.over
    return false
  }

  protected observation(_: WorkerId, pod: WorkerPod): Observation {
    return pod.observation
  }

  async address(worker: WorkerId): Promise<ServedAt | null> {
    return this.workers.get(worker)?.address ?? null
  }

  async freeze(worker: WorkerId): Promise<void> {
    const pod = this.workers.get(worker)
    if (pod === undefined || pod.exit !== null || pod.asked !== null) return
    throw new AppError('unavailable', 'no cluster can freeze a pod')
  }

  async thaw(): Promise<void> {}

  async terminate(worker: WorkerId): Promise<void> {
    await this.#end(worker, 'terminate')
  }

  async kill(worker: WorkerId): Promise<void> {
    await this.#end(worker, 'kill')
  }

  protected forget(worker: WorkerId, tracked: WorkerPod | undefined): void {
    this.#options.outputs.forget(worker)
    if (tracked === undefined) return
    void tracked.close()
    void this.#endings.forget(tracked)
  }

  isolation(handle: string): Isolation {
    return { kind: 'container', limits: parseHandle(handle)?.limits ?? [] }
  }

  async tidy(alive: ReadonlySet<WorkerId>): Promise<void> {
    const { clock } = this.#options
    // The first call comes before the cluster has answered, and the next one minutes later.
    await this.#tried.promise
    if (this.#away !== null) return
    const begunMs = clock.monotonic()
    try {
      for (const kind of ['pods', 'secrets'] as const) {
        for (const { worker, name, uid, createdMs } of await this.#calls.list(kind)) {
          // Another server may be the active one since this began.
          if (clock.monotonic() - begunMs >= TIDY_MS) return
          const isOurs = alive.has(worker) || this.workers.has(worker) || this.starts.has(worker)
          if (isOurs || clock.now() - createdMs < TIDY_AGE_MS) continue
          await this.#calls.remove(kind, { name, uid })
        }
      }
    } catch {
      // The API is away or busy; this is called again.
    }
  }

  /** Stops observing; the pods go on. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancelCheck()
    this.#tried.resolve()
    this.#podWatch.close()
    this.#eventWatch.close()
    this.#endings.close()
    for (const { stop } of this.starts.values()) stop.abort()
    await Promise.allSettled([...this.workers.values()].map(pod => pod.close()))
  }

  protected async begin(spec: WorkerSpec, watch: StartWatch | undefined, signal: AbortSignal): Promise<string> {
    const { workerId, image } = spec
    const failure = (await this.check(image, spec.args)) ?? (await spec.guard?.()) ?? null
    if (failure !== null) throw new WorkerStartError(failure)
    if (!isPodId(workerId))
      throw new WorkerStartError({ kind: 'cluster_refused', said: `${workerId} is not a name of a pod` })
    const pod = this.#track(workerId, false)
    this.#progress.begin(pod.name, watch)
    try {
      const { clock, installation, namespace, settings } = this.#options
      const context = { installation, namespace, settings, image: (await watch?.pins?.current()) ?? image }
      const object = await makePod({ spec, context, pod, calls: this.#calls, clock, turns: this.#turns, signal })
      this.#see(pod, object)
      await Promise.race([pod.begun, whenAborted(signal)])
      if (signal.aborted) throw stoppedStart()
      const { exit } = pod
      if (exit?.cause.kind === 'not_started') throw new WorkerStartError(exit.cause.failure)
      if (exit !== null && !pod.hasRun) throw new WorkerStartError({ kind: 'other', problem: lostText(exit) })
      await this.#pin(spec, watch, pod)
      return podHandle(pod, spec)
    } catch (thrown) {
      // The start of the pod goes on: the next server finds it by its name.
      if (this.#closed) return new Promise<never>(() => {})
      this.#giveUp(pod)
      throw thrown
    }
  }

  /** Removes the pod of a start that failed. */
  #giveUp(pod: WorkerPod): void {
    const wasTaken = pod.exit?.cause.kind === 'reclaimed'
    // Its end is observed; any other pod leaves nothing to observe.
    if (!wasTaken) {
      this.workers.delete(pod.worker)
      void pod.close()
    }
    void this.#removePod(pod)
  }

  /**
   * Asks until the cluster has taken it: a pod that waits for a node would run after its start failed. Then
   * `tidy` is too late.
   */
  async #removePod(pod: WorkerPod): Promise<void> {
    for (let waitMs = GIVE_UP_MS.first; !this.#closed; waitMs = Math.min(waitMs * 2, GIVE_UP_MS.most)) {
      try {
        const uid = pod.uid ?? (await this.#calls.find(pod.worker))?.metadata.uid
        if (uid !== undefined) await this.#calls.remove('pods', { name: pod.name, uid }, KILL_S)
        return
      } catch (thrown) {
        if (!kubernetesError(thrown).isPassing) return
      }
      await pause(this.#options.clock, waitMs)
    }
  }

  /** Records the exact image, so that all workers of a release run the same. */
  async #pin({ image }: WorkerSpec, watch: StartWatch | undefined, { report }: WorkerPod): Promise<void> {
    const exact = report?.imageId ?? null
    if (exact === null || watch?.pins === undefined || parseReference(image)?.digest != null) return
    if ((await watch.pins.current()) === null) await watch.pins.pin(exact, null)
  }

  /** @param wasMade true if the cluster certainly had its pod */
  #track(worker: WorkerId, isAdopted: boolean, wasMade = false): WorkerPod {
    const { clock, outputs, settings, notifier } = this.#options
    const pod: WorkerPod = new WorkerPod({
      worker,
      clock,
      isAdopted,
      wasMade,
      output: copied => outputs.copy(copied),
      reportedPlace: (report, node) => this.#nodes.reportedPlace(report, node),
      nodeLostMs: settings.nodeLostS * 1000,
      onChange: () => notifier.publish('fleet'),
    })
    this.workers.set(worker, pod)
    return pod
  }

  /** A part of a complete list. A pod that the whole lacks may have been made since, so it is asked for. */
  #onListPage({ items, isFirst, isLast }: ListedPage<PodObject>): void {
    const seen = this.#seen
    if (isFirst) {
      seen.clear()
      this.#unclaimed.clear()
    }
    for (const object of items) {
      const pod = this.#findPod(object)
      if (pod === undefined) this.#unclaimed.note(object, true)
      else {
        seen.add(pod.worker)
        this.#see(pod, object)
      }
    }
    if (!isLast) return
    const missingPods = [...this.workers.values()].filter(pod => pod.exit === null && !seen.has(pod.worker))
    void this.#askFor(missingPods)
  }

  #onPodEvent(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: PodObject): void {
    const pod = this.#findPod(object)
    if (pod === undefined) this.#unclaimed.note(object, type !== 'DELETED')
    else if (type !== 'DELETED') this.#see(pod, object)
    // An old event may be about a pod that was never seen.
    else if (pod.uid !== null && pod.uid === object.metadata.uid) pod.noteGone(podReport(object, true))
  }

  #findPod(object: PodObject): WorkerPod | undefined {
    const worker = workerFromObject(object, this.#options.installation)
    return worker === null ? undefined : this.workers.get(worker)
  }

  #see(pod: WorkerPod, object: PodObject): void {
    pod.see(podReport(object, hasPullSecret(object)))
    if (pod.hasRun) this.#progress.noteImage(pod.name)
  }

  /** An event about a start, from a node. */
  #onNodeEvent({ reason = '', message = '', involvedObject }: EventObject): void {
    const { name = '', uid } = involvedObject ?? {}
    const pod = this.workers.get(workerFromPodName(name))
    if (pod === undefined || pod.uid === null || pod.uid !== uid) return
    if (UNMOUNTED.has(reason)) pod.noteMount(clean(message))
    if (!STARTING.has(reason)) return
    pod.noteMount(null)
    if (reason === 'Pulling') this.#progress.notePull(name)
    else this.#progress.noteImage(name)
  }

  #setAway(problem: string | null): void {
    const previousProblem = this.#away
    this.#away = problem
    this.#tried.resolve()
    const { note, onUp, notifier } = this.#options
    if (problem !== null) {
      if (previousProblem === null || previousProblem === undefined) note('cluster.away', { problem })
      return
    }
    if (previousProblem !== undefined) note('cluster.found', {})
    onUp?.()
    for (const pod of this.workers.values()) pod.resume()
    // Makes endpoints due whose workers could not be started.
    notifier.publish('endpoints')
  }

  async #end(worker: WorkerId, ending: PodEnding): Promise<void> {
    const pod = this.workers.get(worker)
    const start = this.starts.get(worker)
    // A pod that has not run is removed with its start.
    if (start !== undefined && pod?.hasRun !== true) return start.stop.abort()
    if (pod === undefined || pod.exit !== null) return
    if (pod.asked === ending || pod.asked === 'kill') return
    pod.ask(ending)
    const deadline = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(ENDING_WAIT_MS, deadline.resolve)
    await Promise.race([this.#endings.send(pod), deadline.promise])
    cancel()
  }

  #checkSoon(): void {
    if (this.#closed) return
    this.#cancelCheck = this.#options.clock.after(CHECK_MS, () => {
      void this.#check().finally(() => this.#checkSoon())
    })
  }

  async #check(): Promise<void> {
    if (this.#away !== null) return
    const pods = [...this.workers.values()].filter(({ exit }) => exit === null)
    for (const pod of pods) pod.check()
    this.#endings.sendAgain()
    const silentPods = pods.filter(pod => pod.isMoving && pod.sinceReportMs >= POLL_AFTER_MS)
    await this.#askFor(silentPods.sort((a, b) => b.sinceReportMs - a.sinceReportMs).slice(0, MAX_ASKED))
  }

  /** Asks the cluster for pods one by one; those that it does not have are gone. */
  async #askFor(pods: readonly WorkerPod[]): Promise<void> {
    for (const pod of pods) {
      if (this.#closed || pod.exit !== null) continue
      // A pod that is being made does not exist yet.
      if (pod.uid === null && this.starts.has(pod.worker)) continue
      try {
        const object = await this.#calls.find(pod.worker)
        if (object === null || (pod.uid !== null && object.metadata.uid !== pod.uid)) pod.noteGone(null)
        else this.#see(pod, object)
      } catch (thrown) {
        if (kubernetesError(thrown).isPassing) return
      }
    }
  }
}

/** The pods that the cluster has reported and that belong to no worker of this server. */
export class UnclaimedPods {
  readonly #installation
  readonly #pods = new Map<WorkerId, PodObject>()

  constructor(installation: string) {
    this.#installation = installation
  }

  /** A complete list begins: earlier reports no longer count. */
  clear(): void {
    this.#pods.clear()
  }

  /** The cluster reports that a pod exists, or that it was deleted. */
  note(object: PodObject, isThere: boolean): void {
    const worker = workerFromObject(object, this.#installation)
    if (worker === null) return
    if (isThere) this.#pods.set(worker, object)
    else if (this.#pods.get(worker)?.metadata.uid === object.metadata.uid) this.#pods.delete(worker)
  }

  /** The pod of a worker that is taken over; undefined when the cluster has not reported one. */
  take(worker: WorkerId): PodObject | undefined {
    const object = this.#pods.get(worker)
    this.#pods.delete(worker)
    return object
  }
}
