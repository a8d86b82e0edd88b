/** The calls of an engine that concern the containers of an installation. */
import type { WorkerId } from '../../core/ids.ts'
import { amdDevices } from '../base/amd-devices.ts'
import { needsRuntime, runtimeArchive, withRuntimePath } from './app-runtime.ts'
import {
  type ContainedWorker,
  type ContainerConnection,
  containerName,
  containerSpec,
  LABELS,
} from './container-spec.ts'
import type { Engine } from './engine/engine.ts'
import { engineError } from './engine/engine-error.ts'
import type { InspectedContainer } from './inspected-container.ts'

/** A container in the list of an installation. */
export interface ListedContainer {
  readonly id: string
  readonly worker: WorkerId
  readonly running: boolean
}

const CREATE_MS = 60_000
const REMOVE_MS = 60_000

/** Makes, starts and finds containers. */
export class ContainerCalls {
  readonly #engine
  readonly #installation
  readonly #runtime
  #boundsDisk = true

  /** @param runtime folder of the package of apps on this machine */
  constructor(engine: Engine, installation: string, runtime: string) {
    this.#engine = engine
    this.#installation = installation
    this.#runtime = runtime
  }

  /**
   * Makes the container of a worker.
   * @param image the exact one
   * @returns its id
   * @throws EngineError, or AppError `invalid` when it can never be made
   */
  async create(worker: ContainedWorker, image: string, connection: ContainerConnection): Promise<string> {
    const { spec, app } = worker
    const usesRuntime = app === null ? needsRuntime(spec) : app.packages !== null
    if (!usesRuntime) return this.#make(worker, image, connection)
    const { Config } = await this.#engine.call<{ Config?: { Env?: string[] | null } }>({
      method: 'GET',
      path: `/images/${encodeURIComponent(image)}/json`,
    })
    const withPath = withRuntimePath(spec, Config?.Env ?? [], app?.packages ?? [])
    const container = await this.#make({ spec: withPath, app }, image, connection)
    const archive = runtimeArchive(this.#runtime)
    const path = `/containers/${container}/archive`
    try {
      await this.#engine.call({ method: 'PUT', path, query: { path: '/' }, archive, deadlineMs: CREATE_MS })
    } catch (thrown) {
      // Nobody else knows it before its worker has it; if the engine is away, `tidy` removes it.
      await this.remove(container).catch(() => {})
      throw thrown
    } finally {
      archive.destroy()
    }
    return container
  }

  /** Removes a container with its file system. @throws EngineError */
  remove(container: string): Promise<void> {
    const query = { force: true, v: true }
    return this.#engine.call<void>({
      method: 'DELETE',
      path: `/containers/${container}`,
      query,
      deadlineMs: REMOVE_MS,
    })
  }

  async #make({ spec, app }: ContainedWorker, image: string, connection: ContainerConnection): Promise<string> {
    const { cpus = 1, memoryBytes = 0, podman = null } = this.#engine.facts ?? {}
    const gpus = { podman, amdDevices }
    const make = async (boundsDisk: boolean) => {
      const context = { image, app, installation: this.#installation, connection, cpus, memoryBytes, boundsDisk, gpus }
      const body = containerSpec(spec, context)
      const query = { name: containerName(spec.workerId) }
      const call = { method: 'POST', path: '/containers/create', query, body, deadlineMs: CREATE_MS } as const
      return (await this.#engine.call<{ Id: string }>(call)).Id
    }
    if (!this.#boundsDisk || spec.diskGb === null) return make(false)
    try {
      return await make(true)
    } catch (thrown) {
      if (!/storage-opt|storage opt|project quota|pquota/i.test(engineError(thrown).message)) throw thrown
      this.#boundsDisk = false
      return make(false)
    }
  }

  /** Starts it, and returns its state. @throws EngineError */
  async start(container: string): Promise<InspectedContainer> {
    await this.#engine.call({ method: 'POST', path: `/containers/${container}/start`, deadlineMs: CREATE_MS })
    return this.#inspect(container)
  }

  /**
   * The container of a worker, by its name or id; null without one, and for that of another owner.
   * @throws EngineError
   */
  async find(container: string, worker: WorkerId): Promise<InspectedContainer | null> {
    try {
      const inspected = await this.#inspect(container)
      const labels = inspected.Config?.Labels ?? {}
      const isOurs = labels[LABELS.installation] === this.#installation && labels[LABELS.worker] === worker
      return isOurs ? inspected : null
    } catch (thrown) {
      if (engineError(thrown).status === 404) return null
      throw thrown
    }
  }

  /** All containers of this installation. @throws EngineError */
  async list(): Promise<readonly ListedContainer[]> {
    const filters = JSON.stringify({ label: [`${LABELS.installation}=${this.#installation}`] })
    const containers = await this.#engine.call<
      readonly { Id: string; State: string; Labels: Record<string, string> }[]
    >({
      method: 'GET',
      path: '/containers/json',
      query: { all: true, filters },
    })
    return containers.map(({ Id, State, Labels }) => ({
      id: Id,
      worker: (Labels[LABELS.worker] ?? '') as WorkerId,
      running: State === 'running' || State === 'paused',
    }))
  }

  #inspect(container: string): Promise<InspectedContainer> {
    return this.#engine.call({ method: 'GET', path: `/containers/${container}/json` })
  }
}
