import {
  type Endpoint,
  type EndpointConfig,
  endpointProblems,
  idleTimeoutProblems,
  tidied,
  typeChangeProblem,
  workersMustSee,
} from '../../core/endpoints/endpoint.ts'
import { pausedFrom } from '../../core/endpoints/pause.ts'
import { canaryProblem } from '../../core/endpoints/rollout-facts.ts'
import { savedEnv, servingChangeProblems } from '../../core/endpoints/saved-env.ts'
import {
  isSameEnv,
  isUnchanged,
  TEMPLATE_DEFAULTS,
  type Template,
  type TemplateInput,
} from '../../core/endpoints/template.ts'
import { togetherProblems, type VolumeKind, volumeKind } from '../../core/endpoints/volume.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import { distinctProblems, type FieldProblem, fieldProblem } from '../../core/field-problem.ts'
import { typesHere } from '../../core/hardware/inventory.ts'
import type { EndpointId, OwnerId, TemplateId, VolumeId, WorkerId } from '../../core/ids.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import { findFallback } from '../../core/scaling/rollout.ts'
import { waitingCount } from '../../core/scaling/scale.ts'
import type { StopReason } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { ReleaseOptions } from '../../ports/store/management-store.ts'
import type { WorkerStore } from '../../ports/store/store.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { onePage, readInParts } from '../paging.ts'
import { retryOnConflict } from '../retry-on-conflict.ts'
import { shortId } from '../short-id.ts'
import type { EndpointDomains } from './endpoint-domains.ts'
import { type Changer, changedAccount, requireRunRight } from './host-folders.ts'
import { isOfDevSession } from './live-endpoints.ts'
import { envWithWorkerKey, withWorkerKey } from './server-keys.ts'
import { savedTemplateProblems } from './templates.ts'

/** Templates of one read. */
const PART = 200
/** Default disk of an endpoint's own template, in GB. */
const DISK_GB = 10

/** Fields of an endpoint to change; those that are left out are kept. */
export type EndpointChanges = Partial<EndpointConfig> & { readonly templateId?: TemplateId }

/** An endpoint with what its workers run. */
export interface WithTemplate {
  readonly endpoint: Endpoint
  readonly template: Template
}

/** The content of a template that an endpoint has for itself; members that are left out have their defaults. */
export type OwnTemplate = Partial<TemplateInput> & { readonly image: string }

/** A value, or a function of the current endpoint and template that returns it. */
export type EndpointUpdate<Value> = Value | ((endpoint: Endpoint, template: Template) => Value)

/** A new endpoint to save. */
export interface NewEndpoint {
  readonly config: EndpointConfig
  /**
   * The id of a template, whose changes are changes of the endpoint from then on, or the content of a template of its
   * own, which no list shows and which goes with the endpoint.
   */
  readonly runs: TemplateId | OwnTemplate
  /** The id of the endpoint, unless it is taken; left out, or taken: a random one. */
  readonly wantedId?: EndpointId | undefined
}

/** A change of an endpoint to save. Fields that are left out stay as they are. */
export interface EndpointChange {
  readonly id: EndpointId
  readonly changes?: EndpointUpdate<EndpointChanges>
  /**
   * Changes of its template. A template that is shared or listed stays as it is, and the endpoint gets a copy of its
   * own. An environment replaces all variables of the endpoint.
   */
  readonly template?: EndpointUpdate<Partial<TemplateInput>>
  /** True to refuse an idleTimeout without an effect; it is saved otherwise. */
  readonly refusesUnusedIdleTimeout?: boolean
  /** Makes a new version in any case, with these properties. */
  readonly release?: ReleaseOptions
}

/** An endpoint as it was saved, and as it was before; null for a new one. */
export interface SavedEndpoint extends WithTemplate {
  readonly previous: WithTemplate | null
}

/** Operations of {@link Endpoints} on workers; the fleet implements them. */
export interface WorkerActions {
  /** Gives a worker no more work; it is stopped when it holds none. */
  drain(id: WorkerId, reason: StopReason): Promise<void>
  /** Ends a worker at once. */
  kill(id: WorkerId, reason: StopReason): Promise<void>
}

/** The endpoints of accounts: their configurations, their own templates, and the end of their workers. */
export class Endpoints {
  readonly #ports
  readonly #workers
  readonly #quotas
  readonly #domains
  readonly #deletesRunning

  /** @param deletesRunning true if endpoints of all accounts can be removed while they may have workers */
  constructor(ports: Ports, workers: WorkerActions, quotas: Quotas, domains: EndpointDomains, deletesRunning = false) {
    this.#ports = ports
    this.#workers = workers
    this.#quotas = quotas
    this.#domains = domains
    this.#deletesRunning = deletesRunning
  }

  /**
   * Saves a new endpoint or a change of one, in one step with its own template. A change that workers see makes a new
   * version.
   * @param isTried true to check everything and change nothing: the result is that of a save at this moment
   * @throws AppError `invalid` with all failures, unknown templates and volumes among them; `not_found` for an
   *   endpoint of another owner; `conflict` past a limit of the account, for a taken domain, when others keep changing
   *   the endpoint, and for another type while jobs are unfinished; `forbidden` as services/endpoints/host-folders.ts
   *   says
   */
  save(by: Changer, request: NewEndpoint | EndpointChange, isTried = false): Promise<SavedEndpoint> {
    const name = 'id' in request ? request.id : request.config.name
    return retryOnConflict(`endpoint ${name}`, async () => {
      const plan = await ('id' in request ? this.#plannedChange(by, request) : this.#plannedNew(by, request))
      if (plan === null) return null
      const { endpoint, template, previous } = plan
      const isSaved = await this.#withinLimits(plan, async () => isTried || (await this.#stored(plan)))
      return isSaved ? { endpoint, template, previous } : null
    })
  }

  async #plannedNew(by: Changer, { config: given, runs: wanted, wantedId }: NewEndpoint): Promise<CheckedSave> {
    const wantedConfig = tidied(given)
    const owner = changedAccount(by)
    const runs = typeof wanted === 'string' ? wanted : await withWorkerKey(this.#ports, owner, wanted)
    const ownTemplate = typeof runs === 'string' ? undefined : await this.#namedTemplate(owner, wantedConfig.name, runs)
    const linked = typeof runs === 'string' ? await this.#ports.store.templates.find(owner, runs) : null
    const template = ownTemplate ?? linked
    const config = { ...wantedConfig, env: await envWithWorkerKey(this.#ports, owner, wantedConfig.env, template) }
    if (template !== null) requireRunRight(this.#ports, by, { template, config }, null)
    const problems = await this.#problems(owner, config)
    if (typeof runs === 'string') problems.push(...linkProblems(runs, linked))
    if (ownTemplate !== undefined) problems.push(...(await savedTemplateProblems(this.#ports, owner, ownTemplate)))
    if (template !== null) problems.push(...servingChangeProblems({ config, template }, null))
    requireNone(problems, ownTemplate)
    const isFree = wantedId !== undefined && (await this.#ports.store.endpoints.isFree(wantedId))
    const id = isFree ? wantedId : (shortId(this.#ports.random) as EndpointId)
    const createdAtMs = this.#ports.clock.now()
    const endpoint = { ...config, id, owner, templateId: template!.id, version: 1, createdAtMs }
    await this.#domains.requireFree(endpoint)
    return { endpoint, template: template!, own: ownTemplate, previous: null }
  }

  /** Null where the endpoint got another template between two reads. */
  async #plannedChange(by: Changer, change: EndpointChange): Promise<CheckedSave | null> {
    const { id, changes = {}, template: templateChanges = {}, release } = change
    const owner = changedAccount(by)
    const { templates } = this.#ports.store
    const old = await this.#findChangeable(owner, id)
    const oldTemplate = await templates.find(owner, old.templateId)
    if (oldTemplate === null) return null
    const previous = { endpoint: old, template: oldTemplate }
    const newFields = settled(changes, previous)
    const changedFields = this.#withSavedImage(settled(templateChanges, previous))
    const templateFields = await withWorkerKey(this.#ports, owner, changedFields, oldTemplate.image)
    // The same variables stay where they are, some at the endpoint and some in its template.
    const isEnvKept = newFields.env === undefined && isSameEnv(templateFields.env ?? {}, savedEnv(old, oldTemplate))
    const content: Partial<TemplateInput> = isEnvKept ? omitted(templateFields, 'env') : templateFields
    const wanted = tidied({ ...old, ...(content.env === undefined ? {} : { env: {} }), ...newFields })
    const isLinked = wanted.templateId !== old.templateId
    const linked = isLinked ? await templates.find(owner, wanted.templateId) : oldTemplate
    const ownTemplate = await this.#changedTemplate(oldTemplate, wanted.name, content)
    const template = ownTemplate ?? linked
    const env = await envWithWorkerKey(this.#ports, owner, wanted.env, template)
    const config = { ...wanted, env, pausedFrom: pausedFrom(old, wanted) }
    const problems = await this.#problems(owner, config, old)
    if (newFields.templateId !== undefined) problems.push(...linkProblems(newFields.templateId, linked))
    if (change.refusesUnusedIdleTimeout && newFields.idleTimeoutS !== undefined) {
      problems.push(...idleTimeoutProblems(config))
    }
    if (ownTemplate !== undefined) problems.push(...(await savedTemplateProblems(this.#ports, owner, ownTemplate)))
    if (template !== null) {
      const previousRun = isLinked ? null : { config: old, template: oldTemplate }
      requireRunRight(this.#ports, by, { template, config }, previousRun)
      problems.push(...servingChangeProblems({ config, template }, previousRun))
    }
    requireNone(problems, ownTemplate)
    const isSeen = ownTemplate !== undefined || isLinked || workersMustSee(old, config)
    if (release?.canary != null) await this.#checkCanary(old, config, isSeen)
    const version = old.version + (isSeen || release !== undefined ? 1 : 0)
    const endpoint = { ...config, templateId: template!.id, version }
    await this.#checkTypeChange(old, endpoint)
    if (endpoint.domain !== old.domain) await this.#domains.requireFree(endpoint)
    const kind = release ?? (isOfDevSession(endpoint, template!) ? { replacesAtOnce: true } : undefined)
    return { endpoint, template: template!, own: ownTemplate, previous, release: kind }
  }

  /** Acts while the account may have the endpoint and its workers. */
  #withinLimits<Done>({ endpoint, previous }: CheckedSave, act: () => Promise<Done>): Promise<Done> {
    const { owner, workersMin } = endpoint
    const addedWorkers = workersMin - (previous?.endpoint.workersMin ?? 0)
    const keepingWorkers = () => this.#quotas.keepingWorkers(owner, addedWorkers, act)
    if (previous === null) return this.#quotas.adding(owner, 'endpoints', keepingWorkers)
    return addedWorkers > 0 ? this.#quotas.inTurn(owner, keepingWorkers) : act()
  }

  /** Writes an endpoint; false where it has changed since it was read. */
  async #stored({ endpoint, previous, own: ownTemplate, release }: EndpointWrite): Promise<boolean> {
    const { store, clock, emit, notifier } = this.#ports
    const { id, owner, version } = endpoint
    const old = previous?.endpoint ?? null
    const isStored = await this.#domains.changing(old, endpoint, async () => {
      if (old !== null) return store.endpoints.replace(endpoint, old, clock.now(), ownTemplate, release)
      await store.endpoints.insert(endpoint, ownTemplate)
      return true
    })
    if (!isStored) return false
    emit('endpoint.saved', { endpointId: id, owner, version, created: old === null })
    if (old !== null) notifier.publish(`load:${id}`)
    notifier.publish('endpoints')
    return true
  }

  /**
   * Replaces its workers with a new release: new ones start, and the old ones end after their jobs. Earlier crashes no
   * longer delay starts, and a stopped rollout begins again.
   * @param replacesAtOnce true if old workers end before a new one is ready
   * @throws AppError as {@link find}
   */
  restart(owner: OwnerId, id: EndpointId, replacesAtOnce = false): Promise<Endpoint> {
    return retryOnConflict(`endpoint ${id}`, async () => {
      const old = await this.#findChangeable(owner, id)
      const endpoint = { ...old, version: old.version + 1 }
      const write = { endpoint, previous: { endpoint: old }, release: { replacesAtOnce } }
      return (await this.#stored(write)) ? endpoint : null
    })
  }

  /** @throws AppError `not_found`, also for an endpoint of another owner */
  async find(owner: OwnerId, id: EndpointId): Promise<Endpoint> {
    const endpoint = await this.#ports.store.endpoints.find(id)
    if (endpoint === null || endpoint.owner !== owner) throw notFound('endpoint', id)
    return endpoint
  }

  /** An endpoint of clients: a task is none. */
  async #findChangeable(owner: OwnerId, id: EndpointId): Promise<Endpoint> {
    const endpoint = await this.find(owner, id)
    if (endpoint.runsOnce) throw notFound('endpoint', id)
    return endpoint
  }

  /**
   * Endpoints of an owner, oldest first; no tasks.
   * @throws AppError `invalid` for a cursor that no page had
   */
  list(owner: OwnerId, request: PageRequest = {}): Promise<Page<Endpoint>> {
    const { endpoints } = this.#ports.store
    return onePage(request, slice =>
      readInParts(
        slice,
        endpoint => endpoint,
        part => endpoints.list(owner, part),
      ),
    )
  }

  /**
   * An endpoint with what its workers run.
   * @throws AppError `not_found`, also for an endpoint of another owner
   */
  withTemplate(owner: OwnerId, id: EndpointId): Promise<WithTemplate> {
    return retryOnConflict(`endpoint ${id}`, async () => {
      const endpoint = await this.#findChangeable(owner, id)
      // The template of its own goes when it is linked to another one.
      const template = await this.#ports.store.templates.find(owner, endpoint.templateId)
      return template === null ? null : { endpoint, template }
    })
  }

  /**
   * The templates of endpoints of one owner, in few reads, each of a part. Endpoints that were deleted are left out.
   */
  async readTemplates(endpoints: readonly Endpoint[]): Promise<ReadonlyMap<Endpoint, Template>> {
    const owner = endpoints[0]?.owner
    const ids = [...new Set(endpoints.map(({ templateId }) => templateId))]
    const byId = new Map<TemplateId, Template>()
    for (let at = 0; owner !== undefined && at < ids.length; at += PART) {
      const part = await this.#ports.store.templates.ofThese(owner, ids.slice(at, at + PART))
      for (const template of part) byId.set(template.id, template)
    }
    return new Map(
      endpoints.flatMap(endpoint => {
        const template = byId.get(endpoint.templateId)
        return template === undefined ? [] : [[endpoint, template] as const]
      }),
    )
  }

  /** The endpoint's workers that have not ended. */
  async listWorkers(endpoint: Endpoint): ReturnType<WorkerStore['list']> {
    return (await this.#ports.store.workers.list(endpoint.id)).filter(worker => worker.state !== 'EXITED')
  }

  /**
   * Ends one worker in order: it gets no more jobs, finishes those that it holds, and stops. Where the endpoint still
   * wants as many workers, another one is started in its place.
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
   * Removes an endpoint and a template of its own: its jobs are CANCELLED, calls that wait for them get a response,
   * and its workers are ended. Their rows and their webhooks follow in steps; see control/remover.ts.
   * @throws AppError `not_found`, or `conflict` while workersMin or workersMax is not 0, unless `force`, the server or
   *   the account lets such endpoints be removed
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
    const ownTemplate = this.#ownTemplate(owner, endpointName, content)
    if (content.name === undefined) return ownTemplate
    const sameName = await this.#ports.store.templates.findByName(owner, content.name)
    return sameName === null ? { ...ownTemplate, name: content.name } : ownTemplate
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

  /** @param previous the present configuration; its references were checked when it was saved */
  async #problems(owner: OwnerId, config: EndpointConfig, previous?: EndpointConfig): Promise<FieldProblem[]> {
    const local = config.compute.kind === 'gpu' ? typesHere(await this.#ports.machine.parts()) : []
    const problems = endpointProblems(config, local)
    problems.push(...this.#domains.problems(config, previous ?? null))
    return [...problems, ...(await this.#volumeProblems(owner, config, previous?.networkVolumeIds ?? []))]
  }

  /** @param previous the present volumes, which may not exist any more */
  async #volumeProblems(
    owner: OwnerId,
    { networkVolumeIds, runsOnce }: EndpointConfig,
    previous: readonly VolumeId[],
  ): Promise<FieldProblem[]> {
    if (networkVolumeIds.every(id => previous.includes(id))) return []
    const problems: FieldProblem[] = []
    const kinds: VolumeKind[] = []
    for (const id of networkVolumeIds) {
      const volume = await this.#ports.store.volumes.find(owner, id)
      if (volume !== null) kinds.push(volumeKind(volume))
      else if (!previous.includes(id)) problems.push(fieldProblem('networkVolumeIds', 'not found', `volume ${id}`))
    }
    return [...problems, ...togetherProblems(kinds, runsOnce)]
  }

  /**
   * @param isSeen true if workers see the change
   * @throws AppError `invalid`; `conflict` without a release that goes on beside the canary
   */
  async #checkCanary(previous: Endpoint, after: EndpointConfig, isSeen: boolean): Promise<void> {
    const problem = canaryProblem(after, isSeen)
    if (problem !== null) throw invalidFields([problem])
    const rollout = await this.#ports.store.releases.rollout(previous.id, previous.version)
    if (rollout.wasReady && rollout.canary === null) return
    if (findFallback({ rollout, endpoint: after }) !== null) return
    const reason = 'no worker of another release was ever ready, so none could continue beside a canary'
    throw new AppError('conflict', `endpoint ${previous.id}: ${reason}; leave rollout out`)
  }

  async #checkTypeChange(previous: Endpoint, after: EndpointConfig): Promise<void> {
    if (previous.type === after.type) return
    const queue = (await this.#ports.store.endpoints.snapshot(previous.id))?.queue
    const unfinished = queue === undefined ? 0 : waitingCount(queue) + queue.inProgress
    const problem = typeChangeProblem(previous, after, unfinished)
    if (problem !== null) throw new AppError('conflict', problem)
  }
}

function stillRunning(id: EndpointId): string {
  return (
    `endpoint ${id} can be deleted only when workersMin and workersMax are 0; set them to 0 first, or let running endpoints be ` +
    'deleted with deleteRunningEndpoints of the account or --delete-running-endpoints of the server'
  )
}

/** A write of an endpoint. */
interface EndpointWrite {
  readonly endpoint: Endpoint
  /** Null for a new one. */
  readonly previous: Pick<WithTemplate, 'endpoint'> | null
  /** The template of its own to store; left out where a template stays as it is. */
  readonly own?: Template | undefined
  readonly release?: ReleaseOptions | undefined
}

/** A save with everything about it checked. */
interface CheckedSave extends EndpointWrite, WithTemplate {
  readonly previous: WithTemplate | null
}

function omitted<Value extends object, Name extends keyof Value>(value: Value, name: Name): Omit<Value, Name> {
  const { [name]: _, ...rest } = value
  return rest
}

function settled<Value extends object>(update: EndpointUpdate<Value>, { endpoint, template }: WithTemplate): Value {
  return typeof update === 'function' ? update(endpoint, template) : update
}

/**
 * @param ownTemplate a template whose problems are among those of its endpoint
 * @throws AppError `invalid` with all problems
 */
function requireNone(problems: readonly FieldProblem[], ownTemplate: Template | undefined): void {
  if (problems.length > 0) throw invalidFields(ownTemplate === undefined ? problems : distinctProblems(problems))
}

function linkProblems(id: TemplateId, template: Template | null): FieldProblem[] {
  if (template === null) return [fieldProblem('templateId', 'not found', `template ${id}`)]
  return template.isServerless ? [] : [fieldProblem('templateId', 'is not a serverless template', `template ${id}`)]
}
