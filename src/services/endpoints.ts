import { type Endpoint, type EndpointConfig, endpointFailures, workersMustSee } from '../core/endpoint.ts'
import { AppError, invalid, notFound } from '../core/errors.ts'
import type { EndpointId, OwnerId, TemplateId } from '../core/ids.ts'
import type { Template } from '../core/template.ts'
import type { Ports } from '../ports/ports.ts'
import type { WorkerStore } from '../ports/store.ts'
import type { Fleet } from './fleet.ts'
import type { Jobs } from './jobs.ts'
import { shortId } from './short-id.ts'

const TRIES = 5

/** Changes to an endpoint; what is left out is kept. */
export type EndpointChanges = Partial<EndpointConfig> & { readonly templateId?: TemplateId }

/** Endpoints: what is run, for whom, and between which numbers of workers. */
export class Endpoints {
  readonly #ports: Ports
  readonly #jobs: Jobs
  readonly #fleet: Fleet

  constructor(ports: Ports, jobs: Jobs, fleet: Fleet) {
    this.#ports = ports
    this.#jobs = jobs
    this.#fleet = fleet
  }

  /**
   * @param wantedId the id to use, unless it is taken; a new random one otherwise
   * @throws AppError `invalid` with all failures, an unknown template among them
   */
  async create(
    owner: OwnerId,
    config: EndpointConfig,
    templateId: TemplateId,
    wantedId?: EndpointId,
  ): Promise<Endpoint> {
    const { store, random, clock, emit, notifier } = this.#ports
    await this.#check(owner, config, templateId)
    const taken = wantedId === undefined || (await store.endpoints.find(wantedId)) !== null
    const id = taken ? (shortId(random) as EndpointId) : wantedId
    const endpoint: Endpoint = { ...config, id, owner, templateId, version: 1, createdAtMs: clock.now() }
    await store.endpoints.insert(endpoint)
    emit('endpoint.saved', { endpointId: id, version: 1, created: true })
    notifier.publish('endpoints')
    return endpoint
  }

  /**
   * Changes what is given and keeps the rest; makes a new version when workers must see the change.
   * @throws AppError `not_found`, `invalid` with all failures, `conflict` when others keep changing it meanwhile or its
   *   type would change while jobs are unfinished
   */
  async update(owner: OwnerId, id: EndpointId, changes: EndpointChanges): Promise<Endpoint> {
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const before = await this.find(owner, id)
      const merged = { ...before, ...changes }
      await this.#check(owner, merged, merged.templateId)
      await this.#checkTypeChange(before, merged)
      const newVersion = merged.templateId !== before.templateId || workersMustSee(before, merged)
      const after = { ...merged, version: before.version + (newVersion ? 1 : 0) }
      if (await this.#ports.store.endpoints.replace(after, before.version)) {
        this.#ports.emit('endpoint.saved', { endpointId: id, version: after.version, created: false })
        this.#ports.notifier.publish(`load:${id}`)
        return after
      }
    }
    throw new AppError('conflict', `endpoint ${id} is being changed by others; try again`)
  }

  /** @throws AppError `not_found`, also for an endpoint of another owner */
  async find(owner: OwnerId, id: EndpointId): Promise<Endpoint> {
    const endpoint = await this.#ports.store.endpoints.find(id)
    if (endpoint === null || endpoint.owner !== owner) throw notFound('endpoint', id)
    return endpoint
  }

  /** All endpoints of an owner, oldest first. */
  list(owner: OwnerId): Promise<Endpoint[]> {
    return this.#ports.store.endpoints.list(owner)
  }

  /** The template that the endpoint's workers run. */
  async templateOf(endpoint: Endpoint): Promise<Template> {
    const template = await this.#ports.store.templates.find(endpoint.owner, endpoint.templateId)
    if (template === null) throw notFound('template', endpoint.templateId)
    return template
  }

  /** The endpoint's workers that have not ended. */
  async workersOf(endpoint: Endpoint): ReturnType<WorkerStore['list']> {
    return (await this.#ports.store.workers.list(endpoint.id)).filter(worker => worker.state !== 'EXITED')
  }

  /**
   * Removes an endpoint: its jobs become CANCELLED and who waits for them is answered, its workers are ended.
   * @throws AppError `not_found`, or `conflict` unless `force` or workersMin and workersMax are 0
   */
  async remove(owner: OwnerId, id: EndpointId, force = false): Promise<void> {
    const { store, clock, emit, notifier } = this.#ports
    const endpoint = await this.find(owner, id)
    if (!force && (endpoint.workersMin !== 0 || endpoint.workersMax !== 0)) {
      throw new AppError('conflict', `endpoint ${id} can be deleted only when workersMin and workersMax are 0`)
    }
    const removed = await store.endpoints.remove(id, clock.now())
    if (removed === null) throw notFound('endpoint', id)
    this.#jobs.moved('cancel', removed.cancelled)
    emit('endpoint.deleted', { endpointId: id })
    notifier.publish(`load:${id}`)
    for (const worker of removed.workers) await this.#fleet.kill(worker.id, 'endpoint_deleted')
  }

  async #check(owner: OwnerId, config: EndpointConfig, templateId: TemplateId): Promise<void> {
    const failures = endpointFailures(config)
    const template = await this.#ports.store.templates.find(owner, templateId)
    if (template === null) failures.push(`template ${templateId} not found`)
    else if (!template.isServerless) failures.push(`template ${templateId} is not a serverless template`)
    if (failures.length > 0) throw invalid(failures)
  }

  async #checkTypeChange(before: Endpoint, after: EndpointConfig): Promise<void> {
    if (before.type === after.type) return
    const queue = (await this.#ports.store.endpoints.snapshot(before.id))?.queue
    if (queue !== undefined && queue.queued + queue.queuedLowPriority + queue.inProgress > 0) {
      throw new AppError('conflict', `the type of endpoint ${before.id} cannot change while it has unfinished jobs`)
    }
  }
}
