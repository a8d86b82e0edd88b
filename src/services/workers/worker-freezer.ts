import { type HookTarget, hookTarget, SLEEP_TIMEOUT_MS, WAKE_TIMEOUT_MS } from '../../core/endpoints/sleep-hooks.ts'
import { toAppError } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import { undisturbedUntilMs } from '../../core/placement/pauses.ts'
import type { PauseRules, PlacementRules } from '../../core/placement/placement-input.ts'
import { hasSleepHooks, isFrozen, takesJobs, type Worker } from '../../core/workers/worker.ts'
import type { WorkerProblem } from '../../core/workers/worker-problem.ts'
import { suspensionOf } from '../../core/workers/worker-suspension.ts'
import type { Ports } from '../../ports/ports.ts'
import type { WorkerMove } from '../../ports/store/store.ts'
import { resolvedServing } from '../endpoints/serving-variables.ts'
import type { RunningWorkers } from './running-workers.ts'
import type { SuspendResult, WorkerSuspender } from './worker-suspender.ts'

/** Time after which a worker is paused again that could not be suspended. */
const PAUSE_AGAIN_MS = 60_000

/** Settings of workers that go on after a pause. */
export type PauseEndRules = Pick<PauseRules, 'maxPauseMs'> & Pick<PlacementRules, 'dwellMs'>

/** Acts on the results of {@link WorkerFreezer}. */
export interface FreezerReports {
  /** A thawed worker did not wake: it can no longer work. */
  wakeFailed(worker: Worker, problem: WorkerProblem): Promise<void>
  /** The driver of its card lost a worker, which is not its fault and has to end. */
  lost(worker: Worker, problem: WorkerProblem): Promise<void>
  /** The state of a worker changed in the store. */
  moved(move: WorkerMove): void
  /** A suspended worker has to end, since another one needs its memory of the machine. */
  memoryShort(id: WorkerId): Promise<void>
}

/**
 * Freezes and thaws workers as the store says: one that is FROZEN there is frozen, one that is STARTING or READY runs.
 * The store changes first, so a server that is killed in between does the rest at its next start. The driver thaws
 * workers that should end. A worker with sleep hooks sleeps before it is frozen, and wakes after it was thawed, before
 * its first health check. After it confirmed that it sleeps it gives its GPUs back (ADR 54). Where the driver of its
 * card can do that, a worker is suspended before it is frozen, after it was asked to sleep, and resumed before it is
 * asked to wake (ADR 107). A paused worker keeps its jobs: with a card it is suspended, or works on where that fails
 * (ADR 112).
 */
export class WorkerFreezer {
  readonly #ports
  readonly #running
  readonly #suspender
  readonly #rules
  #awake: (id: WorkerId) => void = () => {}
  #reports: FreezerReports | null = null

  constructor(ports: Ports, running: RunningWorkers, suspender: WorkerSuspender, rules: PauseEndRules) {
    this.#ports = ports
    this.#running = running
    this.#suspender = suspender
    this.#rules = rules
  }

  /** Calls back when a worker that slept is awake. */
  whenAwake(awake: (id: WorkerId) => void): void {
    this.#awake = awake
  }

  /** Sets the one that acts on workers which did not wake, or whose state changed. */
  reportTo(reports: FreezerReports): void {
    this.#reports = reports
    this.#suspender.endsBy(id => reports.memoryShort(id))
  }

  /** True when a worker may lack its GPU memory, so that it gets no request. */
  isAsleep(id: WorkerId): boolean {
    return this.#running.find(id)?.isAsleep ?? false
  }

  /** True while a frozen worker is being put to sleep or suspended, so that it may give its GPUs back soon. */
  isFallingAsleep(id: WorkerId): boolean {
    return this.#running.find(id)?.isSettling === true
  }

  /**
   * Freezes or thaws a worker until it is as the store says; returns at once while another call does so. A failure of
   * the driver is an event, and the next call tries again.
   */
  async settle({ id, state }: Worker): Promise<void> {
    const running = this.#running.of({ id, state })
    if (running.isSettling) return
    running.isSettling = true
    try {
      for (;;) {
        const worker = await this.#ports.store.workers.find(id)
        if (worker === null || running.hasEnded || isSettled(worker, running.frozen)) return
        if (isFrozen(worker)) await this.#freeze(worker)
        else await this.#thaw(worker)
      }
    } catch (error) {
      running.frozen = null
      this.#ports.emit('loop.failed', { loop: 'freezing of a worker', problem: toAppError(error).message })
    } finally {
      running.isSettling = false
    }
  }

  /**
   * Pauses a READY worker in the middle of its jobs, and does not wait for the driver. Without an effect where it has
   * none now, or something is wrong with it.
   * @param by the endpoint that gets its room
   */
  async pause(workerId: WorkerId, by: EndpointId): Promise<void> {
    const { store, clock, emit } = this.#ports
    const move = await store.workers.pause(workerId, by, clock.now())
    if (move === null) return
    this.#reports?.moved(move)
    emit('worker.paused', { endpointId: move.worker.endpointId, workerId, for: by })
    void this.settle(move.worker)
  }

  /** Settles a worker that an earlier run of the server left, as {@link settle}. */
  async adopt(worker: Worker): Promise<void> {
    if (worker.frozenAtMs === null) return
    const running = this.#running.of(worker)
    running.frozen = null
    running.isAsleep = hasSleepHooks(worker) || worker.suspension !== null
    await this.#settleSoon(worker)
    // Its signal to end may not have reached it.
    if (worker.state !== 'STOPPING') return
    await (worker.suspension === null ? this.#ports.driver.terminate(worker.id) : this.#ports.driver.kill(worker.id))
  }

  /** Settles workers for which the driver failed. @param alive workers that have not ended */
  async retry(alive: readonly Worker[]): Promise<void> {
    for (const worker of alive) {
      // One that nobody has frozen yet runs; after a failed call of the driver its state is unknown.
      const running = this.#running.find(worker.id)
      if (!isSettled(worker, running === null ? false : running.frozen)) await this.#settleSoon(worker)
    }
  }

  /** Settles a worker as {@link settle}, without a wait for one that has to sleep or to wake. */
  async #settleSoon(worker: Worker): Promise<void> {
    const settled = this.settle(worker)
    if (!hasSleepHooks(worker) && worker.suspension === null) await settled
  }

  async #freeze(worker: Worker): Promise<void> {
    const running = this.#running.of(worker)
    const runs = running.frozen === false
    running.freeze()
    const phase = suspensionOf(worker)?.phase
    if (worker.pause !== null) {
      if (!(await this.#leaveCard(worker, runs))) return
    }
    // One that an earlier run has frozen cannot answer.
    else if (phase === 'suspending') await this.#afterSuspend(worker, await this.#suspender.recover(worker))
    else if (runs && phase === undefined) await this.#giveGpusBack(worker)
    await this.#ports.driver.freeze(worker.id)
  }

  async #thaw(worker: Worker): Promise<void> {
    const running = this.#running.of(worker)
    const isKnown = running.frozen !== null
    running.thaw()
    // From here on a take may be one that the worker sends when it runs again.
    const thawing = () => {
      running.frozen = false
      this.#ports.notifier.publish(`worker:${worker.id}`)
    }
    if (suspensionOf(worker)?.phase !== 'resuming') {
      thawing()
      await this.#ports.driver.thaw(worker.id)
    } else if (!(await this.#resume(worker, isKnown, thawing))) return
    await this.#wake(worker)
    if (worker.pause !== null) await this.#endPause(worker)
  }

  /**
   * Suspends a paused worker that has a card. It works on where that is not possible.
   * @param runs false where an earlier run of the server may have frozen it
   * @returns false for one that works on
   */
  async #leaveCard(worker: Worker, runs: boolean): Promise<boolean> {
    const phase = suspensionOf(worker)?.phase
    if (phase === 'suspended' || (worker.placement?.gpus ?? []).length === 0) return true
    const result = await this.#suspendPaused(worker, runs)
    await this.#afterSuspend(worker, result)
    if (result.kind !== 'kept') return true
    const { store, clock, emit } = this.#ports
    const { id: workerId, endpointId } = worker
    this.#running.of(worker).hasPauseFailed = true
    emit('worker.pause_failed', { endpointId, workerId, problem: 'it cannot be suspended, so its GPU stays in use' })
    const move = await store.workers.thaw(workerId, clock.now(), null, true)
    if (move !== null) this.#reports?.moved(move)
    return false
  }

  async #suspendPaused(worker: Worker, runs: boolean): Promise<SuspendResult> {
    if (suspensionOf(worker) !== null) return this.#suspender.recover(worker)
    return runs ? this.#suspender.suspend(worker) : { kind: 'kept' }
  }

  async #endPause({ id: workerId, endpointId, pause }: Worker): Promise<void> {
    const { store, clock, emit, notifier } = this.#ports
    const nowMs = clock.now()
    const running = this.#running.find(workerId)
    const undisturbed = pause === null ? null : undisturbedUntilMs(pause, nowMs, this.#rules)
    const pausableAtMs = running?.hasPauseFailed === true ? nowMs + PAUSE_AGAIN_MS : undisturbed
    const ended = await store.workers.endPause(workerId, nowMs, pausableAtMs)
    if (running !== null) running.hasPauseFailed = false
    if (ended === null) return
    const { worker, pausedMs, jobs } = ended
    emit('worker.pause_ended', { endpointId, workerId, pausedMs, jobs: jobs.length })
    for (const jobId of jobs) notifier.publish(`job:${jobId}`)
    if (worker.state === 'READY') notifier.publish(`load:${endpointId}`)
    else this.#reports?.moved({ worker, from: 'READY' })
  }

  /** @returns false for a worker that sleeps on, or ends */
  async #resume(worker: Worker, isKnown: boolean, thawing: () => void): Promise<boolean> {
    const { store, clock } = this.#ports
    const running = this.#running.of(worker)
    const result = await this.#suspender.resume(worker, isKnown, thawing)
    if (result.kind === 'resumed') return true
    if (result.kind === 'lost') {
      await this.#reports?.lost(worker, { kind: 'not_resumed', said: result.problem })
      // It ends; nothing is to be settled.
      running.frozen = false
      return false
    }
    const move = await store.workers.sleepsOn(worker.id, result.problem, clock.now())
    if (move !== null) this.#reports?.moved(move)
    // A try of an earlier run may have thawed it.
    running.frozen = null
    return false
  }

  /** Has a worker that is about to be frozen give its GPUs back, by its sleep hook, a suspend, or both. */
  async #giveGpusBack(worker: Worker): Promise<void> {
    const sleeps = await this.#sleep(worker)
    const running = this.#running.of(worker)
    const wasAsleep = running.isAsleep
    running.isAsleep = true
    const result = await this.#suspender.suspend(worker).finally(() => {
      running.isAsleep = wasAsleep
    })
    await this.#afterSuspend(worker, result)
    if (result.kind === 'kept' && sleeps) await this.#noteSleep(worker)
  }

  async #afterSuspend(worker: Worker, result: SuspendResult): Promise<void> {
    const running = this.#running.of(worker)
    if (result.kind === 'suspended') running.isAsleep = true
    if (result.kind === 'kept' && !hasSleepHooks(worker)) running.isAsleep = false
    if (result.kind === 'lost') await this.#reports?.lost(worker, { kind: 'not_suspended', said: result.problem })
  }

  /** @returns true if it confirmed that it sleeps */
  async #sleep(worker: Worker): Promise<boolean> {
    const url = worker.serves?.sleepHooks?.sleepUrl
    if (url === undefined) return false
    this.#running.of(worker).isAsleep = true
    const problem = await this.#post(worker, 'RUNYARD_SLEEP_URL', url, SLEEP_TIMEOUT_MS)
    if (problem === null) return true
    this.#ports.emit('loop.failed', {
      loop: 'sleep of a worker',
      problem: `worker ${worker.id} did not sleep at ${url}: ${problem}`,
    })
    return false
  }

  /** Gives back the GPUs of a worker that confirmed that it sleeps; not of one that was thawed in the meantime. */
  async #noteSleep({ id, endpointId, placement, frozenAtMs }: Worker): Promise<void> {
    const { store, clock, notifier } = this.#ports
    if (placement === null || placement.gpus.length === 0 || frozenAtMs === null) return
    // Others wait for them.
    if (await store.workers.asleep(id, frozenAtMs, clock.now())) notifier.publish(`load:${endpointId}`)
  }

  /** Wakes a thawed worker that sleeps, or that an earlier run of the server may have asked to sleep. */
  async #wake(worker: Worker): Promise<void> {
    const running = this.#running.of(worker)
    const url = worker.serves?.sleepHooks?.wakeUrl
    if (!running.isAsleep) return
    const problem = url === undefined ? null : await this.#post(worker, 'RUNYARD_WAKE_URL', url, WAKE_TIMEOUT_MS)
    if (problem === null) {
      running.isAsleep = false
      this.#awake(worker.id)
      return
    }
    const stored = await this.#ports.store.workers.find(worker.id)
    if (stored === null || running.hasEnded || !takesJobs(stored)) return
    await this.#reports?.wakeFailed(stored, { kind: 'wake_failed', path: url ?? '', said: problem })
  }

  /**
   * Asks a worker at its own address, whatever host the value names.
   * @returns the problem; null after an answer 2xx
   */
  async #post(worker: Worker, name: string, url: string, timeoutMs: number): Promise<string | null> {
    const target = await this.#target(worker, name, url)
    if (target === null) return 'its secret was deleted or is no longer a secret'
    const servedAt = await this.#ports.driver.address(worker.id)
    if (servedAt === null) return 'its address is unknown'
    const answer = await this.#ports.probes.post(servedAt.traffic, target.path, timeoutMs)
    if (!('status' in answer)) return answer.problem
    return answer.status >= 200 && answer.status < 300 ? null : `it answers ${answer.status}`
  }

  async #target({ owner }: Worker, name: string, url: string): Promise<HookTarget | null> {
    const { [name]: resolved = '' } = await resolvedServing(this.#ports, owner, { [name]: url })
    return hookTarget(resolved)
  }
}

/**
 * True when the driver has done what the store says.
 * @param frozen the last thing that it did; null while that is unknown
 */
function isSettled(worker: Worker, frozen: boolean | null): boolean {
  const phase = suspensionOf(worker)?.phase
  if (isFrozen(worker)) return frozen === true && phase !== 'suspending'
  return (frozen === false && phase !== 'resuming' && worker.pause === null) || !takesJobs(worker)
}
