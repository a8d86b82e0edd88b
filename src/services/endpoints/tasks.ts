import { type Caller, mayUseAllJobs } from '../../core/accounts/permission.ts'
import { buildIdFromEnv } from '../../core/apps/build.ts'
import { type Compute, type Endpoint, withDefaults } from '../../core/endpoints/endpoint.ts'
import { MOUNTS, mountProblems, taskMounts, type WantedVolume } from '../../core/endpoints/mounts.ts'
import { breadthProblem, depthProblem, gainProblem, type TaskStarter } from '../../core/endpoints/nested-task.ts'
import { APP_KEY, TASK_TOKEN } from '../../core/endpoints/runtime-image.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { shortTaskId, TASK_RETENTION_MS, taskEnv } from '../../core/endpoints/task.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { WORKER_KEY } from '../../core/endpoints/worker-key.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import { type EndpointId, isEndpointId, type OwnerId, type RegistryId, type WorkerId } from '../../core/ids.ts'
import { type Page, type PageRequest, pageFromRows, readSlice } from '../../core/pages.ts'
import { PROCESS_DRIVER } from '../../core/workers/host-folder.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import { isAppWorker, workerOfKey } from '../accounts/app-worker-keys.ts'
import { InOrder } from '../in-order.ts'
import { listedInParts } from '../listed-endpoints.ts'
import type { Endpoints } from './endpoints.ts'
import { type Changer, isOnMachine } from './host-folders.ts'

/** Shortest token of a task: it is the only guard of its program. */
const MIN_TOKEN = 20
/** Number of ended tasks that one step removes. */
const MAX_REMOVED = 50

/** Rights by which the task of a worker is saved: its key opens no more than that of the worker. */
const WORKER_SCOPE = { type: 'restricted', management: 'none', jobs: 'write' } as const

/** A task to start. */
export interface NewTask {
  readonly name: string
  readonly image: string
  /** The command line; empty for that of the image. */
  readonly args: string
  readonly env: Readonly<Record<string, string>>
  /** Size of the disk of a container, in GB. */
  readonly diskGb: number
  readonly registry: RegistryId | null
  readonly compute: Compute
  readonly volumes: readonly WantedVolume[]
}

/** A task with its worker. */
export interface Task {
  readonly endpoint: Endpoint
  readonly template: Template
  /** Null while it waits for a place, and once the record of its worker is removed. */
  readonly worker: Worker | null
}

/** A reader of tasks: a worker finds those alone that it, or tasks of it, started, and its own. */
export type TaskReader = Pick<Caller, 'owner' | 'keyId'>

/** Tasks of accounts: workers that run one function and end. See `core/endpoints/task.ts`. */
export class Tasks {
  readonly #ports
  readonly #endpoints
  /** Keeps two tasks of one root from taking the same last place. */
  readonly #inOrder = new InOrder<EndpointId>()

  constructor(ports: Ports, endpoints: Endpoints) {
    this.#ports = ports
    this.#endpoints = endpoints
  }

  /**
   * Stores a task; its worker starts as soon as it has a place. The task of a worker belongs to what started it, and
   * ends when that is removed.
   * @throws AppError `invalid` with all failures, and for variables without the token of a task; `conflict` past a
   *   limit of the account, or of the tasks that workers start; `forbidden` as services/endpoints/host-folders.ts
   *   says, and for a worker that asks for more than it has
   */
  async create(by: Caller, task: NewTask): Promise<Task> {
    if (!isAppWorker(by)) return this.#save(by, task, [])
    const { owner, endpointId, driver } = await this.#callingWorker(by)
    const starter = await this.#starter(endpointId, driver === PROCESS_DRIVER)
    const env = { ...task.env, [APP_KEY]: WORKER_KEY }
    const wanted = this.#wanted({ ...task, env })
    const gain = depthProblem(starter) ?? gainProblem(starter, wanted)
    if (gain !== null) throw new AppError('forbidden', gain)
    const starters = [...starter.endpoint.starters, endpointId]
    const root = starters[0]!
    return this.#inOrder.run(root, true, async () => {
      const breadth = breadthProblem(await this.#ports.store.endpoints.startedTasks(root))
      if (breadth !== null) throw new AppError('conflict', breadth)
      const rights = { owner, operator: starter.isOnMachine, scope: WORKER_SCOPE }
      return this.#save(rights, { ...task, env }, starters)
    })
  }

  async #callingWorker(by: TaskReader): Promise<Worker> {
    const worker = await this.#ports.store.workers.find(workerOfKey(by))
    // Its token is known for some seconds more.
    if (worker === null || worker.state === 'EXITED') throw notFound('worker', workerOfKey(by))
    return worker
  }

  async #starter(id: EndpointId, isOnMachine: boolean): Promise<TaskStarter> {
    const { endpoints, templates } = this.#ports.store
    const endpoint = await endpoints.find(id)
    const template = endpoint === null ? null : await templates.find(endpoint.owner, endpoint.templateId)
    if (endpoint === null || template === null) throw notFound('endpoint', id)
    return { endpoint, template, isOnMachine, buildId: buildIdFromEnv(savedEnv(endpoint, template)) }
  }

  #wanted(task: NewTask) {
    const image = this.#ports.driver.savedImage(task.image)
    return { ...task, image, isOnMachine: isOnMachine(this.#ports, image), buildId: buildIdFromEnv(task.env) }
  }

  async #save(by: Exclude<Changer, string>, task: NewTask, starters: readonly EndpointId[]): Promise<Task> {
    const { name, image, args, diskGb, registry, compute, volumes } = task
    const env = taskEnv(task.env)
    if ((env[TASK_TOKEN] ?? '').length < MIN_TOKEN) throw new AppError('invalid', NO_GENERAL_PODS)
    // Its program asks the server with this key to end it.
    if (mayUseAllJobs(by, 'write')) env[APP_KEY] ??= WORKER_KEY
    const problems = mountProblems(volumes)
    if (problems.length > 0) throw invalidFields(problems)
    env[MOUNTS] = taskMounts(env[MOUNTS], volumes)
    const workers = { workersMin: 1, workersMax: 1, runsOnce: true } as const
    const config = withDefaults({
      name,
      compute,
      type: 'LOAD_BALANCER',
      ...workers,
      starters,
      networkVolumeIds: volumes.map(({ id }) => id),
    })
    const runs = { image, args, diskGb, registry, env }
    const { endpoint, template } = await this.#endpoints.save(by, { config, runs })
    return { endpoint, template, worker: null }
  }

  /**
   * A task by its id, by that of clients, or by the id of its worker.
   * @throws AppError `not_found`, also for a task that the reader may not find
   */
  async find(by: TaskReader, text: string): Promise<Task> {
    const { store } = this.#ports
    const { owner } = by
    const id = shortTaskId(text)
    const endpoint = await this.#findEndpoint(id)
    if (endpoint === null || endpoint.owner !== owner || !endpoint.runsOnce) throw notFound('pod', text)
    if (isAppWorker(by)) {
      const { endpointId } = await this.#callingWorker(by)
      if (endpoint.id !== endpointId && !endpoint.starters.includes(endpointId)) throw notFound('pod', text)
    }
    const template = await store.templates.find(owner, endpoint.templateId)
    if (template === null) throw notFound('pod', text)
    const [worker = null] = await store.workers.list(endpoint.id)
    return { endpoint, template, worker }
  }

  async #findEndpoint(id: string): Promise<Endpoint | null> {
    const { store } = this.#ports
    const endpoint = isEndpointId(id) ? await store.endpoints.find(id) : null
    if (endpoint !== null) return endpoint
    const worker = await store.workers.find(id as WorkerId)
    return worker === null ? null : store.endpoints.find(worker.endpointId)
  }

  /**
   * Tasks of an owner, oldest first.
   * @throws AppError `invalid` for a cursor that no page had
   */
  async list(owner: OwnerId, request: PageRequest = {}): Promise<Page<Task>> {
    const slice = readSlice(request)
    const listed = await listedInParts(this.#ports, owner, slice, 'tasks')
    const places = listed.map(({ snapshot }) => ({ snapshot, ...snapshot.endpoint }))
    const { items, nextCursor } = pageFromRows(places, slice)
    const templates = await this.#endpoints.readTemplates(items.map(({ snapshot }) => snapshot.endpoint))
    const tasks = items.flatMap(({ snapshot: { endpoint, workers, exits } }) => {
      const template = templates.get(endpoint)
      return template === undefined ? [] : [{ endpoint, template, worker: workers[0] ?? exits[0] ?? null }]
    })
    return { items: tasks, nextCursor }
  }

  /** Ends a task and forgets it, in whatever state. @throws AppError `not_found` as {@link find} */
  async end(by: TaskReader, text: string): Promise<void> {
    const { endpoint } = await this.find(by, text)
    await this.#endpoints.remove(by.owner, endpoint.id, true)
  }

  /**
   * Ends tasks whose starter was removed, a bounded number; theirs are for the next step.
   * @returns true if more may be left
   */
  async endOrphans(): Promise<boolean> {
    const ids = await this.#ports.store.endpoints.orphanedTasks(MAX_REMOVED)
    for (const id of ids) await this.#remove(id)
    return ids.length > 0
  }

  /**
   * Forgets tasks that ended a day ago, a bounded number.
   * @returns true if more may be left
   */
  async removeEnded(nowMs: number): Promise<boolean> {
    const { store } = this.#ports
    const ids = await store.endpoints.endedTasks(nowMs - TASK_RETENTION_MS, MAX_REMOVED)
    for (const id of ids) await this.#remove(id)
    return ids.length === MAX_REMOVED
  }

  async #remove(id: EndpointId): Promise<void> {
    const endpoint = await this.#ports.store.endpoints.find(id)
    if (endpoint === null) return
    await this.#endpoints.remove(endpoint.owner, id, true).catch((error: unknown) => {
      // Its client may have been faster.
      if (!(error instanceof AppError) || error.code !== 'not_found') throw error
    })
  }
}

/** Refusal of a pod that is no task. */
export const NO_GENERAL_PODS =
  'Runyard runs serverless endpoints and tasks of apps (@app.task), and no other pods: a task has the variable RUNPOD_TASK_TOKEN, of at least 20 characters'
