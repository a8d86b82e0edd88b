/** One container of a worker, from its start to its end. */
import { readFileSync } from 'node:fs'
import type { ByteBudget } from '../../core/byte-budget.ts'
import type { Isolation, Limit } from '../../core/workers/isolation.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { ExitCause, ObservedExit } from '../../core/workers/worker-exit.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ProcessFamily } from '../../ports/gpu-suspender.ts'
import { LogCopy } from '../base/log-copy.ts'
import { isAlive, type ProcessIdentity, readProcess, signal } from '../base/process-table.ts'
import { ContainerFamily } from './container-family.ts'
import { ContainerPause } from './container-pause.ts'
import { LABELS } from './container-spec.ts'
import type { Engine } from './engine/engine.ts'
import { engineError } from './engine/engine-error.ts'
import { containerExit } from './exit-cause.ts'
import { hasNotEnded, type InspectedContainer, servedAddress } from './inspected-container.ts'
import { entriesFromFrames } from './log-frames.ts'

/** Identifies a container after a restart of the server; as JSON it is the handle of its worker. */
export interface ContainerHandle {
  readonly container: string
  /** Its first process, if it is visible here: its exit is noticed while the engine is away. */
  readonly process: ProcessIdentity | null
  /** Its limits; none for a container of an older version. */
  readonly limits: readonly Limit[]
}

const INSPECT_MS = 5_000
const SIGNAL_MS = 15_000
/** Maximum wait for the last output. */
const LOG_MS = 5_000
/** Maximum wait of a caller for a signal, which continues after it. */
const SIGNAL_WAIT_MS = 1_000

/** A container that was started, here or by an earlier server. */
export class Container {
  readonly handle: ContainerHandle
  readonly #options
  readonly #copy
  readonly #pause
  /** Null where its processes are not those of this machine. */
  readonly #family: ContainerFamily | null
  #exit: ObservedExit | null = null
  #settling = false
  #outOfMemory = false
  #memoryMb: number | null = null
  #diskGb: number | null = null
  /** True once its configuration was read from the engine. */
  #isInspected = false
  /** Its addresses for requests; null while they are not known. */
  #served: ServedAt | null = null
  /** The reason for which the driver itself ends it. */
  #fault: ExitCause | null = null
  /** The signal to send when the engine is back. */
  #asked: NodeJS.Signals | null = null
  readonly #sending = new Set<NodeJS.Signals>()
  /** True once SIGTERM was sent, which happens once: many programs abort at a second one. */
  #terminated = false

  constructor(options: {
    readonly engine: Engine
    readonly clock: Clock
    readonly handle: ContainerHandle
    readonly bootId: string
    /** Reading rate of the copies of all outputs together. */
    readonly copyBudget: ByteBudget
    readonly logFolder: string
    readonly noteFile: string
    /** Called when its exit is known. */
    readonly onExit: () => void
  }) {
    this.#options = options
    this.handle = options.handle
    const { container, process } = options.handle
    this.#family = process === null ? null : new ContainerFamily({ ...options, container, pid: process.pid })
    this.#copy = new LogCopy({
      ...options,
      budget: options.copyBudget,
      read: (since, signal) => this.#output(since, signal),
    })
    this.#pause = new ContainerPause({ ...options, container, inspect: () => this.#inspect() })
  }

  /** Its end; null while it runs. */
  get exit(): ObservedExit | null {
    return this.#exit
  }

  /** Disk limit in GB, where the engine does not enforce it; null for no limit. */
  get diskGb(): number | null {
    return this.#diskGb
  }

  /** Reads its facts from the engine while it runs. */
  update(inspected: InspectedContainer): void {
    this.#isInspected = true
    this.#memoryMb = memoryLimitMb(inspected)
    this.#diskGb = Number(inspected.Config?.Labels?.[LABELS.diskGb] ?? Number.NaN) || null
    if (hasNotEnded(inspected)) this.#served = servedAddress(inspected) ?? this.#served
    this.#pause.update(inspected)
  }

  /** Its addresses for requests; null when it serves none, has ended, or the engine is away. */
  async address(): Promise<ServedAt | null> {
    if (this.#served === null && this.#exit === null) await this.#inspect().catch(() => {})
    return this.#exit === null ? this.#served : null
  }

  /** Notes that one of its processes was killed because memory ran out. */
  noteOutOfMemory(): void {
    this.#outOfMemory = true
  }

  /** Its processes; null where they are not visible here. */
  get family(): ProcessFamily | null {
    const { process } = this.handle
    if (this.#exit !== null || process === null || !isAlive(process, this.#options.bootId)) return null
    return this.#family?.isVisible === true ? this.#family : null
  }

  /** Asks it to end, now or when the engine is back. A suspended one cannot follow, and is killed. */
  async terminate(): Promise<void> {
    await this.signal(this.#family?.isSuspended === true ? 'SIGKILL' : 'SIGTERM')
  }

  /** Sends a signal, now or when the engine is back. Does not wait for a slow engine. */
  async signal(name: NodeJS.Signals): Promise<void> {
    if (this.#exit !== null) return
    if (this.#asked !== 'SIGKILL') this.#asked = name
    if (this.#sending.has(name) || (name === 'SIGTERM' && this.#terminated)) return
    this.#sending.add(name)
    const sent = this.#send(name).finally(() => this.#sending.delete(name))
    const deadline = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(SIGNAL_WAIT_MS, deadline.resolve)
    await Promise.race([sent, deadline.promise])
    cancel()
  }

  /** Pauses it. @throws AppError `unavailable` when the engine cannot do that */
  async freeze(): Promise<void> {
    if (this.#exit === null && this.#asked === null) await this.#pause.freeze()
  }

  /** Lets a paused one go on. @throws AppError `unavailable` when the engine cannot do that now */
  async thaw(): Promise<void> {
    if (this.#exit === null) await this.#pause.thaw()
  }

  /** Ends it at once. @param fault why */
  async end(fault: ExitCause): Promise<void> {
    this.#fault = fault
    await this.signal('SIGKILL')
  }

  /** Notes the engine's event of its exit. @param code of the event; null when it has none */
  async ended(code: number | null): Promise<void> {
    if (this.#settling || this.#exit !== null) return
    this.#settling = true
    let inspected: InspectedContainer | null = null
    let withEngine = false
    try {
      inspected = await this.#inspect()
    } catch (thrown) {
      withEngine = engineError(thrown).away
    }
    if (inspected !== null && hasNotEnded(inspected)) {
      this.#settling = false
      return
    }
    const { ExitCode, OOMKilled } = inspected?.State ?? {}
    await this.#settle(ExitCode ?? code, { withEngine, outOfMemory: OOMKilled === true })
  }

  /**
   * Checks that it still runs.
   * @param summary its entry in the engine's list
   * @param withEngine true if the engine was away before
   */
  async reconcile(summary: 'running' | 'ended' | 'gone', withEngine: boolean): Promise<void> {
    if (this.#exit !== null || this.#settling) return
    if (summary === 'running') {
      this.#copy.resume()
      // After a restart of the engine it may have another address, and that of an adopted container is not known yet.
      if (withEngine || !this.#isInspected) await this.#inspect().catch(() => {})
      await this.#pause.restore()
      if (this.#asked !== null) await this.signal(this.#asked)
      return
    }
    this.#settling = true
    const inspected = summary === 'gone' ? null : await this.#inspect().catch(() => null)
    if (inspected !== null && hasNotEnded(inspected)) {
      this.#settling = false
      return
    }
    const outOfMemory = inspected?.State.OOMKilled === true
    await this.#settle(inspected?.State.ExitCode ?? null, { withEngine, outOfMemory, gone: summary === 'gone' })
  }

  /** Checks its process while the engine is away. */
  async lookForProcess(): Promise<void> {
    const { process } = this.handle
    if (process === null || this.#exit !== null || this.#settling) return
    if (isAlive(process, this.#options.bootId)) return
    this.#settling = true
    await this.#settle(null, { withEngine: true, outOfMemory: false })
  }

  /** Stops copying its output; it goes on. */
  close(): Promise<void> {
    return this.#copy.close()
  }

  async #settle(
    code: number | null,
    circumstances: { withEngine: boolean; outOfMemory: boolean; gone?: boolean },
  ): Promise<void> {
    const { engine } = this.#options
    await this.#copy.finish(circumstances.withEngine && engine.facts === null ? 0 : LOG_MS)
    const reportedExit = containerExit({
      code,
      memoryMb: this.#memoryMb,
      withEngine: circumstances.withEngine,
      asked: this.#asked !== null,
      tail: this.#copy.tail,
      outOfMemory: circumstances.outOfMemory || this.#outOfMemory,
      architecture: engine.facts?.architecture ?? '',
    })
    const removal: ExitCause | null =
      circumstances.gone === true && this.#asked === null ? { kind: 'container_removed' } : null
    this.#exit = { ...reportedExit, cause: this.#fault ?? removal ?? reportedExit.cause }
    this.#options.onExit()
  }

  async #output(since: number, signal: AbortSignal) {
    const path = `/containers/${this.handle.container}/logs`
    const query = { stdout: true, stderr: true, follow: true, timestamps: true, since }
    return entriesFromFrames(await this.#options.engine.stream({ method: 'GET', path, signal, query }))
  }

  async #inspect(): Promise<InspectedContainer> {
    const path = `/containers/${this.handle.container}/json`
    const { engine } = this.#options
    const inspected = await engine.call<InspectedContainer>({ method: 'GET', path, deadlineMs: INSPECT_MS })
    this.update(inspected)
    return inspected
  }

  async #send(name: NodeJS.Signals): Promise<void> {
    const path = `/containers/${this.handle.container}/kill`
    const send = () =>
      this.#options.engine.call({ method: 'POST', path, query: { signal: name }, deadlineMs: SIGNAL_MS })
    try {
      await send().catch(async thrown => {
        // Some engines send no signal to a paused one.
        if (engineError(thrown).status === null || (await this.#inspect()).State.Paused !== true) throw thrown
        await this.#pause.thaw()
        await send()
      })
      this.#terminated ||= name === 'SIGTERM'
    } catch (thrown) {
      const { status } = engineError(thrown)
      // The container has ended: the event of its exit will come, or was lost.
      if (status === 404 || status === 409) return void this.ended(null)
      const { process } = this.handle
      // The engine is away, but its containers may run.
      if (status !== null || process === null || !isAlive(process, this.#options.bootId)) return
      if (signal(process.pid, name)) this.#terminated ||= name === 'SIGTERM'
    } finally {
      // A paused one follows it as soon as it goes on.
      await this.#pause.thaw().catch(() => {})
    }
  }
}

function memoryLimitMb({ HostConfig }: InspectedContainer): number | null {
  const bytes = HostConfig?.Memory ?? 0
  return bytes === 0 ? null : Math.round(bytes / 1024 / 1024)
}

/** The handle of a running container. */
export function containerHandle(inspected: InspectedContainer, bootId: string): ContainerHandle {
  const { Id: container, State } = inspected
  const pid = State.Pid ?? 0
  const state = pid > 1 && isContainerProcess(pid, container) ? readProcess(pid) : null
  const process = state === null ? null : { pid, startTime: state.startTime, bootId }
  return { container, process, limits: appliedLimits(inspected) }
}

/** Reads a handle; null for any other text. */
export function parseHandle(text: string): ContainerHandle | null {
  try {
    const { container, process, limits = [] } = JSON.parse(text) as ContainerHandle
    if (typeof container !== 'string' || container === '') return null
    return { container, process: typeof process?.pid === 'number' && process.pid > 1 ? process : null, limits }
  } catch {
    return null
  }
}

/** The limits that the engine, or this server, enforces. */
function appliedLimits({ Config, HostConfig }: InspectedContainer): Limit[] {
  const { Memory = 0, NanoCpus = 0, PidsLimit, StorageOpt, NetworkMode = '' } = HostConfig ?? {}
  const limits: [limit: Limit, isHeld: boolean][] = [
    ['memory', Memory > 0],
    ['processes', (PidsLimit ?? 0) > 0],
    ['cpu', NanoCpus > 0],
    ['disk', StorageOpt?.size !== undefined || Config?.Labels?.[LABELS.diskGb] !== undefined],
    ['network', NetworkMode.startsWith('runyard-')],
  ]
  return limits.flatMap(([limit, isHeld]) => (isHeld ? [limit] : []))
}

/** The isolation of a container with a handle. */
export function isolationFromHandle(handle: string): Isolation {
  return { kind: 'container', limits: parseHandle(handle)?.limits ?? [] }
}

/** True for a pid of this machine: engines in a virtual machine report pids of that. */
function isContainerProcess(pid: number, container: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(container)
  } catch {
    return false
  }
}
