import { type Caller, requireOperator } from '../../core/accounts/permission.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError } from '../../core/errors.ts'
import { cataloged, gpuKey, type MachineGpu, type MachineParts } from '../../core/hardware/inventory.ts'
import type { GpuUse, MachineDisk, MachineMemory } from '../../core/hardware/machine-use.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { EngineState, Finding } from '../../core/observing/diagnosis.ts'
import { excessMb } from '../../core/placement/share-excess.ts'
import type { Capacity } from '../../core/scaling/plan.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { type PhaseNow, presentPhase } from '../../core/workers/worker-phase.ts'
import { suspensionOf } from '../../core/workers/worker-suspension.ts'
import type { Clock } from '../../ports/clock.ts'
import type { HostInspection } from '../../ports/host-inspection.ts'
import type { Ports } from '../../ports/ports.ts'
import type { WaitingWorkers } from '../../ports/store/queued-worker-store.ts'
import type { CardReader, CardUse } from '../hardware/card-reader.ts'
import type { WorkerSuspender } from '../workers/worker-suspender.ts'

/** A worker that has a GPU. */
export interface GpuHolder {
  readonly endpointId: EndpointId
  /** Null for a deleted endpoint whose worker still ends. */
  readonly endpointName: string | null
  readonly account: OwnerId
  readonly workerId: WorkerId
  readonly now: PhaseNow
  /** True for a sleeping worker, which gave the GPU back and takes it again to wake. */
  readonly asleep: boolean
  /** True for a sleeping worker whose memory the driver has copied to the memory of the machine. */
  readonly suspended: boolean
  /** Its share of the memory in MiB; null for a worker that has the whole GPU. */
  readonly shareMb: number | null
  /** The memory that it uses in MiB; null if unknown. */
  readonly usedMb: number | null
  /** The memory that it uses beyond its share in MiB; 0 for one that keeps to it. */
  readonly beyondMb: number
}

/** A GPU of the machine with its holders. */
export interface HeldGpu {
  readonly gpu: MachineGpu
  /** Its name in the catalog, and its pool. */
  readonly type: string
  readonly pool: string
  readonly use: GpuUse | null
  /** Its memory, also that of other programs; null if it is not measured. */
  readonly memory: CardUse | null
  readonly holders: readonly GpuHolder[]
}

/** The machine with its workers. */
export interface MachineReport {
  readonly parts: MachineParts
  readonly memory: MachineMemory | null
  readonly disk: MachineDisk | null
  readonly gpus: readonly HeldGpu[]
  /** Null without an NVIDIA GPU. `lack`: the reason why no worker is suspended, as a clause; null if workers are. */
  readonly suspending: { readonly lack: string | null } | null
  /** Sum of the limits of all containers. */
  readonly assigned: { readonly vcpus: number; readonly memoryMb: number }
  readonly workers: number
  readonly capacity: Capacity
  /** Workers without a place, and sleeping ones that wait for their GPUs. */
  readonly waiting: readonly WaitingWorkers[]
  /** Isolation of processes, as a sentence; null for an unknown one. */
  readonly processIsolation: string | null
  /** Reason why workers of different accounts could reach each other's files; null when they cannot. */
  readonly sharingProblem: string | null
  /** Null without an engine. */
  readonly engine: EngineState | null
}

/** A diagnosis and its time. */
export interface Diagnosis {
  readonly atMs: number
  readonly findings: readonly Finding[]
}

/** Limit of groups of waiting workers in a report. */
const MAX_WAITING = 1_000
/** Time for which the description of the container engine is cached. */
const ENGINE_MS = 10_000
/** Time for which a diagnosis is cached: it may start a container. */
const DIAGNOSIS_MS = 30_000

/**
 * The operator's view of the machine. All methods refuse keys without all rights of the operator (AppError
 * `forbidden`).
 */
export class MachineReader {
  readonly #ports
  readonly #cards
  readonly #suspender
  readonly #inspection
  readonly #engine
  readonly #diagnosis: ResultCache<Diagnosis>

  /** @param inspection null for a host that cannot be inspected */
  constructor(
    ports: Ports,
    { cards, suspender }: { readonly cards: CardReader; readonly suspender: Pick<WorkerSuspender, 'machineLack'> },
    inspection: HostInspection | null,
  ) {
    this.#ports = ports
    this.#cards = cards
    this.#suspender = suspender
    this.#inspection = inspection
    this.#engine = new ResultCache(
      ports.clock,
      { keepMs: ENGINE_MS, servesOld: true },
      async () => (await inspection?.engine()) ?? null,
    )
    this.#diagnosis = new ResultCache(ports.clock, { keepMs: DIAGNOSIS_MS }, async () => {
      if (inspection === null) throw new AppError('conflict', 'this server cannot inspect its machine')
      return { findings: await inspection.diagnose(), atMs: ports.clock.now() }
    })
  }

  /** The machine, the holders of its GPUs, and the workers that wait for a part of it. */
  async report(caller: Caller): Promise<MachineReport> {
    requireOperator(caller)
    const { store, machine, driver } = this.#ports
    const [parts, disk, capacity, engine] = await Promise.all([
      machine.parts(),
      machine.disk(),
      driver.capacity(),
      this.#engine.get(),
    ])
    const workers = await store.workers.alive()
    const waiting = await store.queuedWorkers.waiting(MAX_WAITING)
    const holders = workers.filter(({ placement }) => (placement?.gpus ?? []).length > 0)
    const names = await this.#readNames(holders)
    const use = parts.gpus.length === 0 ? new Map<string, GpuUse>() : machine.gpuUse()
    const isMeasured = parts.gpus.some(({ vendor }) => vendor === 'NVIDIA')
    const cards = isMeasured ? await this.#cards.shown(workers) : new Map<string, CardUse>()
    return {
      parts,
      memory: machine.memory(),
      disk,
      gpus: parts.gpus.map(gpu => {
        const key = gpuKey(gpu)
        return heldGpu(gpu, { use: use.get(key) ?? null, memory: cards.get(key) ?? null }, holders, names)
      }),
      suspending: isMeasured ? { lack: await this.#suspender.machineLack() } : null,
      assigned: assignedTo(workers),
      workers: workers.length,
      capacity,
      waiting: [...waiting, ...holders.flatMap(worker => waitingToWake(worker, names))],
      processIsolation: this.#inspection?.processIsolation ?? null,
      sharingProblem: driver.keepsApart(),
      engine,
    }
  }

  /**
   * Findings of `runyard doctor`, at most half a minute old. @throws AppError `conflict` for a host that cannot be
   * inspected
   */
  diagnosis(caller: Caller): Promise<Diagnosis> {
    requireOperator(caller)
    return this.#diagnosis.get()
  }

  /** Names of endpoints; the number of GPUs bounds their number. */
  async #readNames(holders: readonly Worker[]): Promise<ReadonlyMap<EndpointId, string>> {
    const ids = [...new Set(holders.map(({ endpointId }) => endpointId))]
    const endpoints = await Promise.all(ids.map(id => this.#ports.store.endpoints.find(id)))
    return new Map(
      endpoints.filter((endpoint): endpoint is Endpoint => endpoint !== null).map(({ id, name }) => [id, name]),
    )
  }
}

function heldGpu(
  gpu: MachineGpu,
  measured: Pick<HeldGpu, 'use' | 'memory'>,
  workers: readonly Worker[],
  names: ReadonlyMap<EndpointId, string>,
): HeldGpu {
  const { type, pool } = cataloged(gpu)
  const key = gpuKey(gpu)
  const gpuWorkers = workers.filter(({ placement }) => placement!.gpus.some(held => gpuKey(held) === key))
  const holders = gpuWorkers.map(worker => {
    const shareMb = worker.placement?.gpus.find(held => gpuKey(held) === key)?.shareMb ?? null
    const usedMb = measured.memory?.ownMb.get(worker.id) ?? null
    const totalMb = measured.memory?.totalMb ?? 0
    const beyondMb = shareMb === null || usedMb === null ? 0 : excessMb({ shareMb, usedMb, totalMb })
    return {
      endpointId: worker.endpointId,
      endpointName: names.get(worker.endpointId) ?? null,
      account: worker.owner,
      workerId: worker.id,
      now: presentPhase(worker),
      asleep: worker.asleepAtMs !== null,
      suspended: suspensionOf(worker)?.phase === 'suspended',
      shareMb,
      usedMb,
      beyondMb,
    }
  })
  return { gpu, type, pool, ...measured, holders }
}

/** The report of a sleeping worker that is wanted and waits for its GPUs. */
function waitingToWake(worker: Worker, names: ReadonlyMap<EndpointId, string>): WaitingWorkers[] {
  const { endpointId, owner: account, wakeWaitsFor: reason, asleepAtMs } = worker
  const endpointName = names.get(endpointId)
  if (reason === null || endpointName === undefined) return []
  return [{ endpointId, endpointName, account, workers: 1, resource: 'gpu', reason, sinceMs: asleepAtMs ?? 0 }]
}

function assignedTo(workers: readonly Worker[]): MachineReport['assigned'] {
  const sum = (of: (worker: Worker) => number | null | undefined) =>
    workers.reduce((total, worker) => total + (of(worker) ?? 0), 0)
  return { vcpus: sum(({ placement }) => placement?.vcpus), memoryMb: sum(({ placement }) => placement?.memoryMb) }
}

/**
 * Caches the result of a costly read: one read runs at a time, and its result serves all callers for a while. A
 * failure is not cached.
 */
class ResultCache<Result> {
  readonly #clock
  readonly #rule
  readonly #read
  #kept: { readonly result: Result; readonly endedAtMs: number } | null = null
  #reading: Promise<Result> | null = null

  constructor(
    clock: Pick<Clock, 'monotonic'>,
    rule: {
      /** Time for which a result counts, from the end of its read. */
      readonly keepMs: number
      /** True to give callers an older result during the next read, so that only the first caller waits. */
      readonly servesOld?: boolean
    },
    read: () => Promise<Result>,
  ) {
    this.#clock = clock
    this.#rule = rule
    this.#read = read
  }

  /** The last result, or a new one. */
  get(): Promise<Result> {
    const cached = this.#kept
    if (cached !== null && this.#clock.monotonic() - cached.endedAtMs < this.#rule.keepMs)
      return Promise.resolve(cached.result)
    this.#reading ??= this.#startRead()
    if (cached === null || this.#rule.servesOld !== true) return this.#reading
    // The next caller gets the failure.
    this.#reading.catch(() => {})
    return Promise.resolve(cached.result)
  }

  async #startRead(): Promise<Result> {
    try {
      const result = await this.#read()
      this.#kept = { result, endedAtMs: this.#clock.monotonic() }
      return result
    } catch (error) {
      this.#kept = null
      throw error
    } finally {
      this.#reading = null
    }
  }
}
