import { AppError } from '../../core/errors.ts'
import { copyRates, MAX_COPIES, type MemoryCopy } from '../../core/hardware/copy-times.ts'
import {
  describeLack,
  type FamilyLack,
  isLastingLack,
  isMachineLack,
  type ResumeOutcome,
  type SuspendedProcess,
  type SuspendLack,
  type SuspendOutcome,
} from '../../core/hardware/gpu-suspension.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { Copying } from '../../core/placement/leaving.ts'
import { freezesIdle } from '../../core/scaling/frozen-plan.ts'
import type { EndpointSnapshot } from '../../core/scaling/scale.ts'
import {
  endsForSuspend,
  type SuspendRoomInput,
  type SuspendRules,
  suspendRoom,
} from '../../core/scaling/suspended-plan.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { isSuspendRefused, MAX_SUSPEND_FAILURES, type WorkerSuspension } from '../../core/workers/worker-suspension.ts'
import { pause } from '../../ports/clock.ts'
import type { ProcessFamily } from '../../ports/gpu-suspender.ts'
import type { Ports } from '../../ports/ports.ts'
import { InOrder } from '../in-order.ts'

/** Time for the running work of a worker on its card before the suspend is given up. */
const LOCK_MS = 10_000
/** Time after which a machine that could not suspend is asked again. */
const READINESS_MS = 600_000
/** Longest wait for the end of workers whose memory of the machine is needed. */
const ENDS_MS = 15_000
const LOOK_MS = 200
const MIB = 2 ** 20
const NO_MEMORY = 'suspended workers may have no memory (--suspended-memory 0)'
const NOT_EMPTY = 'the driver still lists its memory on the GPU after the suspend'

/** A worker that could not be suspended keeps its memory on the card; one that is lost has to end. */
export type SuspendResult =
  | { readonly kind: 'suspended' | 'kept' }
  | { readonly kind: 'lost'; readonly problem: string }

/** Time for which it is known whether a release is suspended; only this server changes that, while it leads. */
const REFUSED_MS = 30_000
/** Limit of such releases in memory; past it they are read again. */
const MAX_REFUSED = 1_000

/** Limit of workers of which the reason of the last failure is kept. */
const MAX_KEPT = 1_000

/** One that waits stays suspended, with the reason. */
export type ResumeResult = { readonly kind: 'resumed' } | { readonly kind: 'waits' | 'lost'; readonly problem: string }

/**
 * Suspends workers by the driver of their card before they are frozen, and resumes them (ADR 107). The store has the
 * intent before the first process is locked, and the end after the last one was unlocked, so what a killed server left
 * is found and finished.
 */
export class WorkerSuspender {
  readonly #ports
  readonly #rules
  readonly #inOrder = new InOrder<'memory'>()
  /** Releases by endpoint and version, as last read. */
  readonly #refused = new Map<string, { readonly isRefused: boolean; readonly atMs: number }>()
  /** Reasons of workers that kept their memory at their last suspend; this run of the server alone knows them. */
  readonly #kept = new Map<WorkerId, string>()
  #lack: { readonly lack: SuspendLack | null; readonly atMs: number } | null = null
  /** The newest copies, the last one last. */
  readonly #copies: Readonly<Record<'out' | 'in', MemoryCopy[]>> = { out: [], in: [] }
  #end: (id: WorkerId) => Promise<void> = async () => {}

  constructor(ports: Ports, rules: SuspendRules) {
    this.#ports = ports
    this.#rules = rules
  }

  /** Sets the way to end a suspended worker whose memory of the machine another one needs. */
  endsBy(end: (id: WorkerId) => Promise<void>): void {
    this.#end = end
  }

  /**
   * The reason why frozen workers of an endpoint keep their memory on their GPUs, as a sentence without a full stop;
   * null where they give it back, have none, or nothing is known yet.
   */
  async keptMemory({ endpoint, workers }: Pick<EndpointSnapshot, 'endpoint' | 'workers'>): Promise<string | null> {
    const { id, version, compute, flashboot } = endpoint
    if (this.#ports.gpuSuspender === undefined || compute.kind !== 'gpu' || !freezesIdle({ flashboot })) return null
    const failures = await this.#ports.store.releases.suspendFailures(id, version)
    if (isSuspendRefused(failures))
      return `frozen workers keep their GPU memory until there is a new release, since they could not be suspended: ${failures.reason}`
    const several = compute.count === 1 ? null : ({ why: 'several_cards', count: compute.count } as const)
    const lack = several ?? this.#lack?.lack ?? null
    const reason = this.#rules.suspendedBytes === 0 ? NO_MEMORY : lack === null ? null : describeLack(lack)
    if (reason !== null) return `frozen workers keep their GPU memory: ${reason}`
    const kept = workers.find(
      worker => worker.state === 'FROZEN' && worker.asleepAtMs === null && this.#kept.has(worker.id),
    )
    if (kept === undefined) return null
    return `worker ${kept.id} keeps its GPU memory while it is frozen: ${this.#kept.get(kept.id)}`
  }

  /**
   * The reason why this machine suspends no workers, as a clause; null if it does. Takes some tenths of a second when
   * it was not known.
   */
  async machineLack(): Promise<string | null> {
    if (this.#rules.suspendedBytes === 0) return NO_MEMORY
    if (this.#ports.gpuSuspender === undefined) return describeLack({ why: 'no_card' })
    if (await this.#isReady()) return null
    const lack = this.#lack?.lack ?? null
    return lack === null ? null : describeLack(lack)
  }

  /** True if a worker has a card that it may give back by a suspend, as far as that is known. */
  async maySuspend({
    endpointId,
    version,
    placement,
  }: Pick<Worker, 'endpointId' | 'version' | 'placement'>): Promise<boolean> {
    if (this.#rules.suspendedBytes === 0 || placement?.gpus.length !== 1) return false
    if (!(await this.#isReady())) return false
    return !(await this.#isRefused(endpointId, version))
  }

  /** True if workers of a release are not suspended; placement asks for each worker in each of its steps. */
  async #isRefused(endpointId: EndpointId, version: number): Promise<boolean> {
    const { clock, store } = this.#ports
    const key = releaseKey({ endpointId, version })
    const nowMs = clock.monotonic()
    const known = this.#refused.get(key)
    if (known !== undefined && nowMs - known.atMs < REFUSED_MS) return known.isRefused
    const isRefused = isSuspendRefused(await store.releases.suspendFailures(endpointId, version))
    if (this.#refused.size >= MAX_REFUSED) this.#refused.clear()
    this.#refused.set(key, { isRefused, atMs: nowMs })
    return isRefused
  }

  /** Suspends a frozen worker whose processes still run, and freezes it then; otherwise it runs as before. */
  async suspend(worker: Worker): Promise<SuspendResult> {
    if (worker.frozenAtMs === null || !(await this.maySuspend(worker))) return { kind: 'kept' }
    const family = await this.#ports.driver.processes(worker.id)
    if (family === null) return { kind: 'kept' }
    this.#kept.delete(worker.id)
    const outcome = await this.#suspend(worker, worker.frozenAtMs, family)
    switch (outcome.outcome) {
      case 'suspended':
        // A card that is not empty would be given to others.
        return outcome.isEmpty ? this.#noteSuspended(worker, worker.frozenAtMs, outcome) : this.#lose(worker, NOT_EMPTY)
      case 'nothing':
        return { kind: 'kept' }
      case 'refused':
        if (outcome.lack.why === 'wanted') return this.#breakOff(worker)
        return this.#keep(worker, describeLack(outcome.lack), this.#weightOf(outcome.lack))
      case 'undone':
        if (await this.#isWanted(worker)) return this.#breakOff(worker)
        return this.#keep(worker, outcome.problem, 1)
      case 'lost':
        return this.#lose(worker, outcome.problem)
    }
  }

  /**
   * Finishes or undoes the suspend of a frozen worker that was broken off.
   * @throws AppError `unavailable` when its state is not known yet
   */
  async recover(worker: Worker): Promise<SuspendResult> {
    const { suspension, frozenAtMs } = worker
    if (suspension === null || frozenAtMs === null) return { kind: 'kept' }
    const recovered = await this.#recover(worker, suspension, () => this.#ports.driver.thaw(worker.id))
    if (recovered.outcome === 'lost') return { kind: 'lost', problem: recovered.problem }
    if (recovered.outcome === 'running') {
      await this.#over(worker)
      return { kind: 'kept' }
    }
    const card = suspension.card
    await this.#ports.driver.freeze(worker.id)
    await this.#ports.store.workers.suspending(worker.id, frozenAtMs, suspensionWith(card, recovered.processes))
    await this.#free(worker, frozenAtMs)
    return { kind: 'suspended' }
  }

  /**
   * Resumes a worker that placement gave its room on the card again.
   * @param isKnown false where an earlier try, or an earlier run of the server, may have begun it
   * @param thawing called right before its processes are thawed
   * @throws AppError `unavailable` for another try
   */
  async resume(worker: Worker, isKnown: boolean, thawing: () => void): Promise<ResumeResult> {
    const { driver, emit, gpuSuspender } = this.#ports
    const { id: workerId, endpointId, suspension } = worker
    if (suspension === null) return { kind: 'resumed' }
    const thaw = async () => {
      thawing()
      await driver.thaw(workerId)
    }
    if (!isKnown) {
      const recovered = await this.#recover(worker, suspension, thaw)
      if (recovered.outcome === 'lost') return { kind: 'lost', problem: recovered.problem }
      if (recovered.outcome === 'running') {
        await thaw()
        await this.#over(worker)
        return { kind: 'resumed' }
      }
    }
    const family = await this.#family(workerId)
    const suspender = gpuSuspender ?? unavailable('this machine cannot resume it')
    const outcome = await suspender.resume(suspension.card, suspension.processes, family, thaw)
    switch (outcome.outcome) {
      case 'resumed':
        await this.#over(worker)
        this.#noteCopy('in', suspension.bytes, outcome.restoreMs)
        emit('worker.resumed', { endpointId, workerId, restoreMs: Math.round(outcome.restoreMs) })
        return { kind: 'resumed' }
      case 'no_room':
      case 'unknown_room':
        return { kind: 'waits', problem: roomText(worker, outcome) }
      case 'stopped':
        return unavailable(`process ${outcome.pid} does not run after its thaw`)
      case 'not_thawed':
        return unavailable(outcome.problem)
      case 'lost':
        return { kind: 'lost', problem: outcome.problem }
    }
  }

  async #isReady(): Promise<boolean> {
    const { clock, gpuSuspender } = this.#ports
    if (gpuSuspender === undefined) return false
    const known = this.#lack
    const nowMs = clock.monotonic()
    if (known === null || (known.lack !== null && nowMs - known.atMs >= READINESS_MS)) {
      const { lack } = await gpuSuspender.readiness()
      this.#lack = { lack, atMs: clock.monotonic() }
    }
    return this.#lack?.lack === null
  }

  /** Suspends it, once more after others have ended where memory of the machine was too short. */
  async #suspend(worker: Worker, frozenAtMs: number, family: ProcessFamily): Promise<SuspendOutcome> {
    const { driver, gpuSuspender } = this.#ports
    const steps = {
      begin: (card: string, processes: readonly SuspendedProcess[]) => this.#begin(worker, frozenAtMs, card, processes),
      proceed: async () => !(await this.#isWanted(worker)),
      freeze: () => driver.freeze(worker.id),
    }
    const outcome = await gpuSuspender!.suspend(family, LOCK_MS, steps)
    if (outcome.outcome !== 'refused' || !isOfMachine(outcome.lack)) return outcome
    return (await this.#makeRoom(worker.id, outcome.lack.neededBytes))
      ? gpuSuspender!.suspend(family, LOCK_MS, steps)
      : outcome
  }

  /** Notes the intent, if the memory of the machine is enough; one after the other, so that each counts the others. */
  #begin(
    worker: Worker,
    frozenAtMs: number,
    card: string,
    processes: readonly SuspendedProcess[],
  ): Promise<FamilyLack | null> {
    const { store } = this.#ports
    const { id } = worker
    return this.#inOrder.run('memory', true, async () => {
      if (await this.#isWanted(worker)) return { why: 'wanted' }
      const suspension = suspensionWith(card, processes)
      const availableBytes = suspendRoom(await this.#room(id))
      if (availableBytes < suspension.bytes) {
        return { why: 'suspended_memory', neededBytes: suspension.bytes, availableBytes }
      }
      return (await store.workers.suspending(id, frozenAtMs, suspension)) ? null : { why: 'wanted' }
    })
  }

  /**
   * The copies that this machine can make, by its last ones and the memory that further ones may take.
   * @param workers all workers that have not ended
   */
  copying(workers: readonly Worker[]): Copying {
    const rates = copyRates(this.#copies.out, this.#copies.in)
    const memory = this.#ports.machine.memory()
    return { rates, roomMb: suspendRoom({ memory, workers, own: null, rules: this.#rules }) / MIB }
  }

  #noteCopy(way: 'out' | 'in', bytes: number, tookMs: number): void {
    const copies = this.#copies[way]
    copies.push({ mb: bytes / MIB, tookMs })
    if (copies.length > MAX_COPIES) copies.shift()
  }

  async #room(own: WorkerId): Promise<SuspendRoomInput> {
    const { store, machine } = this.#ports
    return { memory: machine.memory(), workers: await store.workers.alive(), own, rules: this.#rules }
  }

  /** Ends suspended workers until another one has room. @returns true if it has */
  async #makeRoom(own: WorkerId, neededBytes: number): Promise<boolean> {
    const { clock, store } = this.#ports
    const input = await this.#room(own)
    const withPriority = new Set<EndpointId>()
    for (const id of new Set(input.workers.map(({ endpointId }) => endpointId))) {
      if ((await store.endpoints.find(id))?.flashboot === 'PRIORITY_FLASHBOOT') withPriority.add(id)
    }
    const ends = endsForSuspend(input, neededBytes, id => withPriority.has(id), clock.now())
    if (ends === null) return false
    for (const { id } of ends) await this.#end(id)
    const untilMs = clock.monotonic() + ENDS_MS
    while (clock.monotonic() < untilMs) {
      const alive = new Set((await store.workers.alive()).map(({ id }) => id))
      if (!ends.some(({ id }) => alive.has(id))) return true
      await pause(clock, LOOK_MS)
    }
    return false
  }

  async #noteSuspended(
    worker: Worker,
    frozenAtMs: number,
    { processes, times, holdProblem }: Extract<SuspendOutcome, { outcome: 'suspended' }>,
  ): Promise<SuspendResult> {
    const { store, emit } = this.#ports
    const { id: workerId, endpointId, version } = worker
    await this.#free(worker, frozenAtMs)
    if ((await store.releases.suspendFailures(endpointId, version)) !== null)
      await store.releases.setSuspendFailures(endpointId, version, null)
    const bytes = processes.reduce((sum, process) => sum + process.bytes, 0)
    const tookMs = Math.round(times.lockMs + times.holdMs + times.checkpointMs)
    this.#noteCopy('out', bytes, times.checkpointMs + times.emptyMs)
    emit('worker.suspended', { endpointId, workerId, bytes, tookMs, unheld: holdProblem })
    return { kind: 'suspended' }
  }

  /** Its card is free: others wait for it. */
  async #free({ id, endpointId }: Worker, frozenAtMs: number): Promise<void> {
    const { store, clock, notifier } = this.#ports
    if (await store.workers.suspended(id, frozenAtMs, clock.now())) notifier.publish(`load:${endpointId}`)
  }

  /** It has to end, and its release is not suspended again. */
  async #lose(worker: Worker, problem: string): Promise<SuspendResult> {
    await this.#noteFailure(worker, problem, MAX_SUSPEND_FAILURES)
    return { kind: 'lost', problem }
  }

  /** Its processes run as before, with their memory. @param weight see {@link WorkerSuspender.#noteFailure} */
  async #keep(worker: Worker, problem: string, weight: number): Promise<SuspendResult> {
    await this.#over(worker)
    if (weight > 0) await this.#noteFailure(worker, problem, weight)
    const { endpointId, id: workerId } = worker
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear()
    this.#kept.set(workerId, problem)
    this.#ports.emit('worker.suspend_failed', { endpointId, workerId, problem })
    return { kind: 'kept' }
  }

  /** It has work: it runs as before, and its release is not blamed. */
  async #breakOff(worker: Worker): Promise<SuspendResult> {
    await this.#over(worker)
    return { kind: 'kept' }
  }

  /** True if jobs of its endpoint wait, and no other worker is free for them. A paused worker makes room anyway. */
  async #isWanted({ id, endpointId, pause: paused }: Worker): Promise<boolean> {
    if (paused !== null) return false
    const snapshot = await this.#ports.store.endpoints.snapshot(endpointId)
    if (snapshot === null || snapshot.queue.queued === 0) return false
    return !snapshot.workers.some(
      ({ id: other, state, held, suspension }) =>
        other !== id && state === 'READY' && held === 0 && suspension === null,
    )
  }

  async #over({ id, endpointId }: Worker): Promise<void> {
    const { store, clock, notifier } = this.#ports
    if (!(await store.workers.suspensionOver(id, clock.now()))) return
    notifier.publish(`worker:${id}`)
    notifier.publish(`load:${endpointId}`)
  }

  /** The weight of a refusal for its release; one of the machine is remembered for all workers. */
  #weightOf(lack: SuspendLack | FamilyLack): number {
    if (isMachineLack(lack)) this.#lack = { lack, atMs: this.#ports.clock.monotonic() }
    return isLastingLack(lack) ? MAX_SUSPEND_FAILURES : 0
  }

  /** @param weight number of failures that it counts as */
  async #noteFailure({ endpointId, version }: Worker, reason: string, weight: number): Promise<void> {
    const { releases } = this.#ports.store
    const before = (await releases.suspendFailures(endpointId, version))?.count ?? 0
    await releases.setSuspendFailures(endpointId, version, { reason, count: before + weight })
    this.#refused.delete(releaseKey({ endpointId, version }))
  }

  /** @throws AppError `unavailable` while the driver of the card does not say enough */
  async #recover({ id }: Worker, { card, processes }: WorkerSuspension, thaw: () => Promise<void>) {
    const suspender = this.#ports.gpuSuspender ?? unavailable('this machine cannot resume it')
    const recovered = await suspender.recover(card, await this.#family(id), thaw)
    if (recovered.outcome === 'unknown') return unavailable(recovered.problem)
    if (recovered.outcome !== 'suspended') return recovered
    const known = new Map(processes.map(process => [`${process.pid} ${process.startTime}`, process]))
    const all = recovered.processes.map(process => known.get(`${process.pid} ${process.startTime}`) ?? process)
    return { ...recovered, processes: all }
  }

  async #family(id: WorkerId): Promise<ProcessFamily> {
    return (await this.#ports.driver.processes(id)) ?? unavailable('its processes are not found')
  }
}

/** True if the end of other suspended workers gives it memory. */
function isOfMachine(lack: SuspendLack | FamilyLack): lack is Extract<FamilyLack, { readonly neededBytes: number }> {
  return lack.why === 'host_memory' || lack.why === 'suspended_memory'
}

function releaseKey({ endpointId, version }: Pick<Worker, 'endpointId' | 'version'>): string {
  return `${endpointId} ${version}`
}

function suspensionWith(card: string, processes: readonly SuspendedProcess[]): WorkerSuspension {
  return { card, processes, bytes: processes.reduce((sum, { bytes }) => sum + bytes, 0) }
}

function roomText(
  { placement }: Worker,
  outcome: Extract<ResumeOutcome, { outcome: 'no_room' | 'unknown_room' }>,
): string {
  const index = placement?.gpus[0]?.index ?? 0
  if (outcome.outcome === 'unknown_room') return `the memory of its GPU ${index} cannot be read: ${outcome.problem}`
  const [needed, free] = [outcome.neededBytes, outcome.freeBytes].map(bytes => Math.round(bytes / 2 ** 20))
  return `it needs ${needed} MiB of its GPU ${index}, and ${free} MiB are free`
}

function unavailable(problem: string): never {
  throw new AppError('unavailable', problem)
}
