import {
  type Endpoint,
  type EndpointConfig,
  endpointProblems,
  idleTimeoutProblems,
  tidied,
  typeChangeProblem,
  workersMustSee,
} from '../../core/endpoints/endpoint.ts'
import { canaryProblem } from '../../core/endpoints/rollout-facts.ts'
import { savedEnv, servingChangeProblems } from '../../core/endpoints/saved-env.ts'
import {
  isSameEnv,
  isUnchanged,
  TEMPLATE_DEFAULTS,
  type Template,
  type TemplateInput,
} from '../../core/endpoints/template.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import { distinctProblems, type FieldProblem, fieldProblem } from '../../core/field-problem.ts'
import { typesHere } from '../../core/hardware/inventory.ts'
import type { EndpointId, OwnerId, TemplateId, WorkerId } from '../../core/ids.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import { fallbackOf } from '../../core/scaling/rollout.ts'
import type { StopReason } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { ReleaseOptions } from '../../ports/store/management-store.ts'
import type { WorkerStore } from '../../ports/store/store.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { mapConcurrently } from '../map-concurrently.ts'
import { onePage } from '../paging.ts'
import { retryOnConflict } from '../retry-on-conflict.ts'
import { shortId } from '../short-id.ts'
import type { EndpointDomains } from './endpoint-domains.ts'
import { type Changer, ownerOf, requireFolderRight } from './host-folders.ts'
import { savedTemplateProblems } from './templates.ts'

/** Above this number of endpoints, one read of all templates is cheaper than a read of each. */
const FEW = 3
/** Limit of parallel reads where each template is read on its own. */
const CONCURRENCY = 16
/** Default disk of an endpoint's own template, in GB. */
const DISK_GB = 10

/** Changes to an endpoint; what is left out is kept. */
export type EndpointChanges = Partial<EndpointConfig> & { readonly templateId?: TemplateId }

/** An endpoint with what its workers run. */
export interface WithTemplate {
  readonly endpoint: Endpoint
  readonly template: Template
}

/** What an endpoint with a template of its own runs; what is left out gets the default. */
export type OwnTemplate = Partial<TemplateInput> & { readonly image: string }

/** A value, or a function of the current endpoint and template that returns it. */
export type GivenEndpoint<Value> = Value | ((endpoint: Endpoint, template: Template) => Value)

/** As {@link GivenEndpoint}, from the endpoint alone. */
export type GivenChanges = EndpointChanges | ((endpoint: Endpoint) => EndpointChanges)

/** Rarer options of {@link Endpoints.updateOwnTemplate}. */
export interface OwnTemplateUpdate {
  /** Whether an idleTimeout that has no effect now is kept; it is refused otherwise. */
  readonly keepsUnusedIdleTimeout?: boolean
  /** Makes a new version in any case, with these properties. */
  readonly release?: ReleaseOptions
}

/** Operations of {@link Endpoints} on workers; the fleet implements them. */
export interface EndpointWorkers {
  /** Gives a worker no more work; it is stopped when it holds none. */
  drain(id: WorkerId, reason: StopReason): Promise<void>
  /** Ends a worker at once. */
  kill(id: WorkerId, reason: StopReason): Promise<void>
}

/** Endpoints: what they run, for which account, and with how many workers. */
export class Endpoints {
  readonly #ports: Ports
  readonly #workers: EndpointWorkers
  readonly #quotas: Quotas
  readonly #domains: EndpointDomains
  readonly #deletesRunning: boolean

  /** @param deletesRunning whether endpoints of all accounts can be removed while they may have workers */
  constructor(
    ports: Ports,
    workers: EndpointWorkers,
    quotas: Quotas,
    domains: EndpointDomains,
    deletesRunning = false,
  ) {
    this.#ports = ports
    this.#workers = workers
    this.#quotas = quotas
    this.#domains = domains
    this.#deletesRunning = deletesRunning
  }

  /**
   * Makes an endpoint that is linked to a template: each change of the template is a change of the endpoint.
   * @param wantedId the id to use, unless it is taken; a new random one otherwise
   * @throws AppError `invalid` with all failures, an unknown template among them; `forbidden` as services/endpoints/host-folders.ts says
   */
  async create(by: Changer, given: EndpointConfig, templateId: TemplateId, wantedId?: EndpointId): Promise<Endpoint> {
    const config = tidied(given)
    const owner = ownerOf(by)
    const problems = await this.#problems(owner, config)
    const template = await this.#ports.store.templates.find(owner, templateId)
    if (template !== null) requireFolderRight(by, { template, config }, null)
    problems.push(...linkProblems(templateId, template))
    if (template !== null) problems.push(...servingChangeProblems({ config, template }, null))
    if (problems.length > 0) throw invalidFields(problems)
    const taken = wantedId === undefined || !(await this.#ports.store.endpoints.isFree(wantedId))
    return this.#insert(owner, config, templateId, taken ? this.#newId() : wantedId)
  }

  /**
   * Makes an endpoint with a template of its own, which no list shows and which goes with the endpoint. Both come
   * about in one step. The template is a serverless one. Its name is made here, unless one is given that is free.
   * @throws AppError `invalid` with all failures of both; `forbidden` as services/endpoints/host-folders.ts says
   */
  async createWithOwnTemplate(by: Changer, given: EndpointConfig, content: OwnTemplate): Promise<Endpoint> {
    const { config, own } = await this.#checkedNew(by, given, content)
    return this.#insert(ownerOf(by), config, own.id, this.#newId(), own)
  }

  /**
   * What {@link createWithOwnTemplate} would make now; changes nothing.
   * @throws AppError as that
   */
  async previewWithOwnTemplate(by: Changer, given: EndpointConfig, content: OwnTemplate): Promise<WithTemplate> {
    const { config, own: template } = await this.#checkedNew(by, given, content)
    const endpoint = this.#newEndpoint(ownerOf(by), config, template.id, this.#newId())
    return this.#admitted(endpoint, async () => ({ endpoint, template }))
  }

  async #checkedNew(
    by: Changer,
    given: EndpointConfig,
    content: OwnTemplate,
  ): Promise<{ readonly config: EndpointConfig; readonly own: Template }> {
    const config = tidied(given)
    const owner = ownerOf(by)
    const own = await this.#namedTemplate(owner, config.name, content)
    requireFolderRight(by, { template: own, config }, null)
    const problems: FieldProblem[] = [
      ...(await this.#problems(owner, config)),
      ...(await savedTemplateProblems(this.#ports, owner, own)),
      ...servingChangeProblems({ config, template: own }, null),
    ]
    if (problems.length > 0) throw invalidFields(distinctProblems(problems))
    return { config, own }
  }

  /**
   * Changes what is given and keeps the rest; makes a new version when workers must see the change.
   * @throws AppError `not_found`, `invalid` with all failures, `conflict` when others keep changing it meanwhile or its
   *   type would change while jobs are unfinished, `forbidden` as services/endpoints/host-folders.ts says
   */
  async update(by: Changer, id: EndpointId, given: GivenChanges): Promise<Endpoint> {
    const owner = ownerOf(by)
    return this.#change(owner, id, async before => {
      const changes = typeof given === 'function' ? given(before) : given
      const after = tidied({ ...before, ...changes })
      const problems = await this.#problems(owner, after, before)
      const template = await this.#ports.store.templates.find(owner, after.templateId)
      if (changes.templateId !== undefined) problems.push(...linkProblems(changes.templateId, template))
      if (template !== null) {
        const known = after.templateId === before.templateId ? { config: before, template } : null
        requireFolderRight(by, { template, config: after }, known)
        problems.push(...servingChangeProblems({ config: after, template }, known))
      }
      if (problems.length > 0) throw invalidFields(problems)
      const newVersion = after.templateId !== before.templateId || workersMustSee(before, after)
      return { after, newVersion, own: undefined }
    })
  }

  /**
   * Changes an endpoint and what it runs, in one step. Where its template is shared or listed, the endpoint gets a copy
   * of its own first. An environment that is given replaces the whole one that the endpoint has.
   * @param changes of the endpoint
   * @param templateChanges of what it runs
   * @param how in which way, besides
   * @throws AppError as {@link update}; `invalid` also for an idleTimeout that has no effect, where that is refused
   */
  async updateOwnTemplate(
    by: Changer,
    id: EndpointId,
    changes: GivenEndpoint<EndpointChanges>,
    templateChanges: GivenEndpoint<Partial<TemplateInput>> = {},
    options: OwnTemplateUpdate = {},
  ): Promise<Endpoint> {
    return this.#change(ownerOf(by), id, this.#ownTemplateChange(by, changes, templateChanges, options))
  }

  /**
   * What {@link updateOwnTemplate} would come to now; changes nothing.
   * @throws AppError as that
   */
  async previewUpdate(
    by: Changer,
    id: EndpointId,
    changes: GivenEndpoint<EndpointChanges>,
    templateChanges: GivenEndpoint<Partial<TemplateInput>> = {},
    options: OwnTemplateUpdate = {},
  ): Promise<WithTemplate> {
    const owner = ownerOf(by)
    const decide = this.#ownTemplateChange(by, changes, templateChanges, options)
    return retryOnConflict(`endpoint ${id}`, async () => {
      const planned = await this.#planned(owner, id, decide)
      if (planned === null) return null
      const { after: endpoint, own } = planned
      return this.#withinLimits(planned, async () => {
        const template = own ?? (await this.#ports.store.templates.find(owner, endpoint.templateId))
        return template === null ? null : { endpoint, template }
      })
    })
  }

  #ownTemplateChange(
    by: Changer,
    changes: GivenEndpoint<EndpointChanges>,
    templateChanges: GivenEndpoint<Partial<TemplateInput>>,
    { keepsUnusedIdleTimeout = false, release }: OwnTemplateUpdate,
  ): Decide {
    const owner = ownerOf(by)
    return async before => {
      const template = await this.#ports.store.templates.find(owner, before.templateId)
      if (template === null) return null
      const wanted = settled(changes, before, template)
      const given = this.#withSavedImage(settled(templateChanges, before, template))
      // The same variables stay where they are, some at the endpoint and some in its template.
      const isEnvKept = wanted.env === undefined && isSameEnv(given.env ?? {}, savedEnv(before, template))
      const content: Partial<TemplateInput> = isEnvKept ? omitted(given, 'env') : given
      const merged = tidied({ ...before, ...(content.env === undefined ? {} : { env: {} }), ...wanted })
      const own = await this.#changedTemplate(template, merged.name, content)
      const problems = await this.#problems(owner, merged, before)
      if (!keepsUnusedIdleTimeout && wanted.idleTimeoutS !== undefined) {
        problems.push(...idleTimeoutProblems(merged))
      }
      if (own !== undefined) problems.push(...(await savedTemplateProblems(this.#ports, owner, own)))
      const serving = { config: merged, template: own ?? template }
      requireFolderRight(by, serving, { config: before, template })
      problems.push(...servingChangeProblems(serving, { config: before, template }))
      if (problems.length > 0) throw invalidFields(distinctProblems(problems))
      const after = { ...merged, templateId: own?.id ?? before.templateId }
      const isSeen = own !== undefined || workersMustSee(before, after)
      if (release?.canary != null) await this.#checkCanary(before, after, isSeen)
      const newVersion = isSeen || release !== undefined
      return { after, newVersion, own, release }
    }
  }

  /**
   * Replaces its workers with a new release: new ones start, and the old ones end after their jobs. Crashes of before delay no start any
   * more, and a stopped rollout begins again.
   * @param replacesAtOnce whether old workers go although no new one has been ready
   * @throws AppError as {@link find}
   */
  async restart(owner: OwnerId, id: EndpointId, replacesAtOnce = false): Promise<Endpoint> {
    return this.#change(owner, id, async before => ({
      after: before,
      newVersion: true,
      own: undefined,
      release: { replacesAtOnce },
    }))
  }

  /** @throws AppError `not_found`, also for an endpoint of another owner */
  async find(owner: OwnerId, id: EndpointId): Promise<Endpoint> {
    const endpoint = await this.#ports.store.endpoints.find(id)
    if (endpoint === null || endpoint.owner !== owner) throw notFound('endpoint', id)
    return endpoint
  }

  /**
   * Endpoints of an owner, oldest first.
   * @throws AppError `invalid` for a cursor that no page had
   */
  list(owner: OwnerId, request: PageRequest = {}): Promise<Page<Endpoint>> {
    return onePage(request, slice => this.#ports.store.endpoints.list(owner, slice))
  }

  /**
   * An endpoint with what its workers run.
   * @throws AppError `not_found`, also for an endpoint of another owner
   */
  withTemplate(owner: OwnerId, id: EndpointId): Promise<WithTemplate> {
    return retryOnConflict(`endpoint ${id}`, async () => {
      const endpoint = await this.find(owner, id)
      // The template of its own goes when it is linked to another one.
      const template = await this.#ports.store.templates.find(owner, endpoint.templateId)
      return template === null ? null : { endpoint, template }
    })
  }

  /** What endpoints of one owner run, in as few reads as possible; those that are gone by now have nothing in it. */
  async templatesOf(endpoints: readonly Endpoint[]): Promise<ReadonlyMap<Endpoint, Template>> {
    const { templates } = this.#ports.store
    const many = endpoints.length > FEW ? await templates.ofEndpoints(endpoints[0]!.owner) : []
    const known = new Map(many.map(template => [template.id, template]))
    // Where they are few, and where an endpoint was linked to another one between the two reads.
    const missing = new Map(endpoints.map(endpoint => [endpoint.templateId, endpoint.owner]))
    for (const id of known.keys()) missing.delete(id)
    for (const found of await mapConcurrently([...missing], CONCURRENCY, ([id, owner]) => templates.find(owner, id))) {
      if (found !== null) known.set(found.id, found)
    }
    return new Map(
      endpoints.flatMap(endpoint => {
        const template = known.get(endpoint.templateId)
        return template === undefined ? [] : [[endpoint, template] as const]
      }),
    )
  }

  /** The endpoint's workers that have not ended. */
  async workersOf(endpoint: Endpoint): ReturnType<WorkerStore['list']> {
    return (await this.#ports.store.workers.list(endpoint.id)).filter(worker => worker.state !== 'EXITED')
  }

  /**
   * Ends one worker in order: it gets no more jobs, finishes those that it holds, and stops. Where the endpoint still wants as many
   * workers, another one is started in its place.
   * @throws AppError `not_found` when the endpoint has no such worker, or it has ended
   */
  async endWorker(owner: OwnerId, id: EndpointId, workerId: WorkerId): Promise<void> {
    const endpoint = await this.find(owner, id)
    const worker = await this.#ports.store.workers.find(workerId)
    if (worker === null || worker.endpointId !== endpoint.id || worker.state === 'EXITED') {
      throw notFound('worker', workerId)
    }
    await this.#workers.drain(workerId, 'requested')
  }

  /**
   * Removes an endpoint and a template of its own: its jobs are CANCELLED, calls that wait for them get a response, and its workers are ended. Their
   * rows and their webhooks follow in steps; see control/remover.ts.
   * @throws AppError `not_found`, or `conflict` while workersMin or workersMax is not 0, unless `force`, the server or the
   *   account lets such endpoints be removed
   */
  async remove(owner: OwnerId, id: EndpointId, force = false): Promise<void> {
    const { store, clock, emit, notifier } = this.#ports
    const endpoint = await this.find(owner, id)
    if (!force && !(await this.#mayRemove(endpoint))) throw new AppError('conflict', stillRunning(id))
    const remove = () => store.endpoints.remove(id, clock.now())
    const removed = await this.#domains.changing(endpoint, null, remove).finally(() => {
      // For callers that wait for one of its jobs; it may be gone even if the store failed.
      notifier.publish(`deleted:${id}`)
      notifier.publish(`load:${id}`)
      notifier.publish('endpoints')
    })
    if (removed === null) throw notFound('endpoint', id)
    emit('endpoint.deleted', { endpointId: id, owner })
    // One that serves drains: the loop that ends it knows whether it has requests.
    for (const { id, serves } of removed.workers) {
      if (serves === null) await this.#workers.kill(id, 'endpoint_deleted')
      else await this.#workers.drain(id, 'endpoint_deleted')
    }
  }

  async #mayRemove({ owner, workersMin, workersMax }: Endpoint): Promise<boolean> {
    if (this.#deletesRunning || (workersMin === 0 && workersMax === 0)) return true
    return (await this.#ports.store.accounts.find(owner))?.deleteRunningEndpoints === true
  }

  #newId(): EndpointId {
    return shortId(this.#ports.random) as EndpointId
  }

  async #insert(
    owner: OwnerId,
    config: EndpointConfig,
    templateId: TemplateId,
    id: EndpointId,
    own?: Template,
  ): Promise<Endpoint> {
    const { store, emit, notifier } = this.#ports
    const endpoint = this.#newEndpoint(owner, config, templateId, id)
    const insert = () => store.endpoints.insert(endpoint, own)
    await this.#admitted(endpoint, () => this.#domains.changing(null, endpoint, insert))
    emit('endpoint.saved', { endpointId: id, owner, version: 1, created: true })
    notifier.publish('endpoints')
    return endpoint
  }

  #newEndpoint(owner: OwnerId, config: EndpointConfig, templateId: TemplateId, id: EndpointId): Endpoint {
    return { ...config, id, owner, templateId, version: 1, createdAtMs: this.#ports.clock.now() }
  }

  /** Acts while the account may have one endpoint more. @throws AppError `conflict` when its domain is taken */
  async #admitted<Done>(endpoint: Endpoint, act: () => Promise<Done>): Promise<Done> {
    const { owner, workersMin } = endpoint
    await this.#domains.requireFree(endpoint)
    return this.#quotas.adding(owner, 'endpoints', () => this.#quotas.keepingWorkers(owner, workersMin, act))
  }

  /** Acts while the account may keep the workers of the changed endpoint. */
  #withinLimits<Done>({ before, after }: PlannedChange, act: () => Promise<Done>): Promise<Done> {
    const { owner } = after
    const more = after.workersMin - before.workersMin
    return more > 0 ? this.#quotas.inTurn(owner, () => this.#quotas.keepingWorkers(owner, more, act)) : act()
  }

  /** A change with everything about it checked. Null where it has to be decided anew. */
  async #planned(owner: OwnerId, id: EndpointId, decide: Decide): Promise<PlannedChange | null> {
    const before = await this.find(owner, id)
    const change = await decide(before)
    if (change === null) return null
    await this.#checkTypeChange(before, change.after)
    if (change.after.domain !== before.domain) await this.#domains.requireFree(change.after)
    const version = before.version + (change.newVersion ? 1 : 0)
    return { ...change, before, after: { ...change.after, version } }
  }

  async #change(owner: OwnerId, id: EndpointId, decide: Decide): Promise<Endpoint> {
    const { store, clock, emit, notifier } = this.#ports
    return retryOnConflict(`endpoint ${id}`, async () => {
      const planned = await this.#planned(owner, id, decide)
      if (planned === null) return null
      const { before, after, own, release } = planned
      const replace = () => store.endpoints.replace(after, before, clock.now(), own, release)
      const change = () => this.#domains.changing(before, after, replace)
      if (!(await this.#withinLimits(planned, change))) return null
      emit('endpoint.saved', { endpointId: id, owner, version: after.version, created: false })
      notifier.publish(`load:${id}`)
      notifier.publish('endpoints')
      return after
    })
  }

  /** Undefined where the template stays as it is. */
  async #changedTemplate(
    template: Template,
    endpointName: string,
    content: Partial<TemplateInput>,
  ): Promise<Template | undefined> {
    const changed: Template = { ...template, ...content }
    if (isUnchanged(changed, template)) return undefined
    const shared = template.listed || (await this.#ports.store.templates.users(template.id)).length > 1
    return shared ? this.#ownTemplate(template.owner, endpointName, changed) : changed
  }

  async #namedTemplate(owner: OwnerId, endpointName: string, content: OwnTemplate): Promise<Template> {
    const own = this.#ownTemplate(owner, endpointName, content)
    if (content.name === undefined) return own
    const taken = await this.#ports.store.templates.findByName(owner, content.name)
    return taken === null ? { ...own, name: content.name } : own
  }

  #withSavedImage(content: Partial<TemplateInput>): Partial<TemplateInput> {
    return content.image === undefined ? content : { ...content, image: this.#ports.driver.savedImage(content.image) }
  }

  #ownTemplate(owner: OwnerId, endpointName: string, content: OwnTemplate): Template {
    const { random, clock, driver } = this.#ports
    const id = shortId(random) as TemplateId
    return {
      ...TEMPLATE_DEFAULTS,
      diskGb: DISK_GB,
      volumeGb: 0,
      ...content,
      image: driver.savedImage(content.image),
      isServerless: true,
      isPublic: false,
      listed: false,
      createdAtMs: clock.now(),
      id,
      owner,
      name: `${endpointName.slice(0, 120)}__template__${id}`,
    }
  }

  /** @param before what is changed; what it refers to was checked when it was saved */
  async #problems(owner: OwnerId, config: EndpointConfig, before?: EndpointConfig): Promise<FieldProblem[]> {
    const local = config.compute.kind === 'gpu' ? typesHere(await this.#ports.machine.parts()) : []
    const problems = endpointProblems(config, local)
    problems.push(...this.#domains.problems(config, before ?? null))
    for (const id of config.networkVolumeIds) {
      if (before?.networkVolumeIds.includes(id) === true) continue
      const volume = await this.#ports.store.volumes.find(owner, id)
      if (volume === null) problems.push(fieldProblem('networkVolumeIds', 'not found', `network volume ${id}`))
    }
    return problems
  }

  /** @param isSeen whether workers see the change @throws AppError `invalid`; `conflict` without a release that goes on beside the canary */
  async #checkCanary(before: Endpoint, after: EndpointConfig, isSeen: boolean): Promise<void> {
    const problem = canaryProblem(after, isSeen)
    if (problem !== null) throw invalidFields([problem])
    const rollout = await this.#ports.store.releases.rollout(before.id, before.version)
    if (rollout.wasReady && rollout.canary === null) return
    if (fallbackOf({ rollout, endpoint: after }) !== null) return
    const what = 'no worker of another release has been ready, so none could go on beside a canary'
    throw new AppError('conflict', `endpoint ${before.id}: ${what}; leave rollout out`)
  }

  async #checkTypeChange(before: Endpoint, after: EndpointConfig): Promise<void> {
    if (before.type === after.type) return
    const queue = (await this.#ports.store.endpoints.snapshot(before.id))?.queue
    const unfinished = queue === undefined ? 0 : queue.queued + queue.queuedLowPriority + queue.inProgress
    const problem = typeChangeProblem(before, after, unfinished)
    if (problem !== null) throw new AppError('conflict', problem)
  }
}

function stillRunning(id: EndpointId): string {
  return (
    `endpoint ${id} can be deleted only when workersMin and workersMax are 0; set them to 0 first, or let running endpoints be ` +
    'deleted with deleteRunningEndpoints of the account or --delete-running-endpoints of the server'
  )
}

/** What a change of an endpoint comes to. */
interface Change {
  readonly after: Endpoint
  readonly newVersion: boolean
  readonly own: Template | undefined
  readonly release?: ReleaseOptions | undefined
}

/** What a change comes to, from the endpoint as it is. Null where it has changed meanwhile. */
type Decide = (before: Endpoint) => Promise<Change | null>

/** A change that may be saved. */
interface PlannedChange extends Change {
  readonly before: Endpoint
}

function omitted<Value extends object, Name extends keyof Value>(value: Value, name: Name): Omit<Value, Name> {
  const { [name]: _, ...rest } = value
  return rest
}

function settled<Value extends object>(given: GivenEndpoint<Value>, endpoint: Endpoint, template: Template): Value {
  return typeof given === 'function' ? given(endpoint, template) : given
}

function linkProblems(id: TemplateId, template: Template | null): FieldProblem[] {
  if (template === null) return [fieldProblem('templateId', 'not found', `template ${id}`)]
  return template.isServerless ? [] : [fieldProblem('templateId', 'is not a serverless template', `template ${id}`)]
}
