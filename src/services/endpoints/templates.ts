import { servingChangeProblems } from '../../core/endpoints/saved-env.ts'
import { isUnchanged, type Template, type TemplateInput, templateProblems } from '../../core/endpoints/template.ts'
import { type AppError, invalidFields, invalidRequest, notFound } from '../../core/errors.ts'
import { type FieldProblem, fieldProblem, problemSentence } from '../../core/field-problem.ts'
import type { OwnerId, TemplateId } from '../../core/ids.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import { startFailureText } from '../../core/workers/start-failure.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { mapConcurrently } from '../map-concurrently.ts'
import { onePage } from '../paging.ts'
import { retryOnConflict } from '../retry-on-conflict.ts'
import { shortId } from '../short-id.ts'
import { type Changer, changedAccount, isOnMachine, requireRunRight } from './host-folders.ts'
import { imageRefusal } from './image-access.ts'
import { withWorkerKey } from './server-keys.ts'

/** Limit of parallel reads where each endpoint is read on its own. */
const CONCURRENCY = 16

/**
 * Changes of a template, or a function of the current template that returns them; fields that are left out are kept.
 */
export type TemplateChanges = Partial<TemplateInput> | ((previous: Template) => Partial<TemplateInput>)

/** A new template to save, or a change of one. */
export type TemplateToSave =
  | { readonly config: TemplateInput }
  | { readonly id: TemplateId; readonly changes: TemplateChanges }

/** A template as it was saved, and as it was before; null for a new one. */
export interface SavedTemplate {
  readonly template: Template
  readonly previous: Template | null
}

/** Templates: what workers run. */
export class Templates {
  readonly #ports
  readonly #quotas

  constructor(ports: Ports, quotas: Quotas) {
    this.#ports = ports
    this.#quotas = quotas
  }

  /**
   * Saves a new template or a change of one. After a change every endpoint that uses it gets a new version, unless
   * nothing changes.
   * @param isTried true to check everything and change nothing: the result is that of a save at this moment
   * @throws AppError `invalid` with all failures, the taken name among them; `not_found`; `conflict` past a limit of
   *   the account, or when others keep changing it; `forbidden` as services/endpoints/host-folders.ts says
   */
  save(by: Changer, template: TemplateToSave, isTried = false): Promise<SavedTemplate> {
    if (!('id' in template)) return this.#create(by, template.config, isTried)
    return retryOnConflict(`template ${template.id}`, () => this.#change(by, template.id, template.changes, isTried))
  }

  async #create(by: Changer, config: TemplateInput, isTried: boolean): Promise<SavedTemplate> {
    const { random, clock, driver, store } = this.#ports
    const owner = changedAccount(by)
    const input = await withWorkerKey(this.#ports, owner, { ...config, image: driver.savedImage(config.image) })
    requireRunRight(this.#ports, by, { template: input, config: null }, null)
    const problems = await savedTemplateProblems(this.#ports, owner, input)
    if (problems.length > 0) throw invalidFields(problems)
    const id = shortId(random) as TemplateId
    const template = { ...input, id, owner, listed: true, createdAtMs: clock.now() }
    const insert = () => (isTried ? this.#isNameFree(template) : store.templates.insert(template))
    if (!(await this.#quotas.adding(owner, 'templates', insert))) throw nameTaken(template.name)
    if (!isTried) this.#saved(id)
    return { template, previous: null }
  }

  async #isNameFree({ owner, name, id }: Template): Promise<boolean> {
    const named = await this.#ports.store.templates.findByName(owner, name)
    return named === null || named.id === id
  }

  /** Null where others have changed it since it was read. */
  async #change(
    by: Changer,
    id: TemplateId,
    changes: TemplateChanges,
    isTried: boolean,
  ): Promise<SavedTemplate | null> {
    const { store, notifier, emit, clock } = this.#ports
    const { template, previous } = await this.#checkedChange(by, id, changes)
    if (isTried && !(await this.#isNameFree(template))) throw nameTaken(template.name)
    if (isTried) return { template, previous }
    if (isUnchanged(template, previous)) return { template: previous, previous }
    const users = await store.templates.replace(template, previous, clock.now())
    if (users === null) throw nameTaken(template.name)
    if (users === 'changed') return null
    this.#saved(id)
    for (const endpointId of users) {
      const endpoint = await store.endpoints.find(endpointId)
      if (endpoint === null) continue
      emit('endpoint.saved', { endpointId, owner: endpoint.owner, version: endpoint.version, created: false })
      notifier.publish(`load:${endpointId}`)
    }
    return { template, previous }
  }

  async #checkedChange(
    by: Changer,
    id: TemplateId,
    changes: TemplateChanges,
  ): Promise<{ readonly template: Template; readonly previous: Template }> {
    const { store, driver } = this.#ports
    const owner = changedAccount(by)
    const previous = await this.find(owner, id)
    const changed = { ...previous, ...(typeof changes === 'function' ? changes(previous) : changes) }
    const template = await withWorkerKey(this.#ports, owner, { ...changed, image: driver.savedImage(changed.image) })
    requireRunRight(this.#ports, by, { template, config: null }, { template: previous, config: null })
    const problems = await savedTemplateProblems(this.#ports, owner, template)
    problems.push(...(await this.#servingProblems(template, previous)))
    if (problems.length > 0) throw invalidFields(problems)
    if (previous.isServerless && !template.isServerless && (await store.templates.users(id)).length > 0) {
      throw invalidRequest([`template '${previous.name}' is in use by an endpoint, so it must stay serverless`])
    }
    return { template, previous }
  }

  /** @throws AppError `not_found`, also for a template of another owner */
  async find(owner: OwnerId, id: TemplateId): Promise<Template> {
    const template = await this.#ports.store.templates.find(owner, id)
    if (template === null) throw notFound('template', id)
    return template
  }

  /**
   * One of the owner's, or a public one of another, which is shown without its registry.
   * @throws AppError `not_found`
   */
  async findVisible(owner: OwnerId, id: TemplateId): Promise<Template> {
    const ownTemplate = await this.#ports.store.templates.find(owner, id)
    if (ownTemplate !== null) return ownTemplate
    const shared = await this.#ports.store.templates.findPublic(id)
    if (shared === null) throw notFound('template', id)
    return { ...shared, registry: null }
  }

  /** Null when the owner has no template of that name. */
  findByName(owner: OwnerId, name: string): Promise<Template | null> {
    return this.#ports.store.templates.findByName(owner, name)
  }

  /**
   * The owner's templates, oldest first, without those that belong to one endpoint alone.
   * @throws AppError `invalid` for a cursor that no page had
   */
  list(owner: OwnerId, request: PageRequest = {}): Promise<Page<Template>> {
    return onePage(request, slice => this.#ports.store.templates.list(owner, slice))
  }

  /**
   * Public templates of all owners, oldest first, without their registries.
   * @throws AppError `invalid` for a cursor that no page had
   */
  async listPublic(request: PageRequest = {}): Promise<Page<Template>> {
    const page = await onePage(request, slice => this.#ports.store.templates.listPublic(slice))
    return { ...page, items: page.items.map(template => ({ ...template, registry: null })) }
  }

  /** @throws AppError `not_found`, or `invalid` while an endpoint uses it */
  async remove(owner: OwnerId, id: TemplateId): Promise<void> {
    await this.#remove(await this.find(owner, id))
  }

  /** @throws AppError `not_found`, or `invalid` while an endpoint uses it */
  async removeByName(owner: OwnerId, name: string): Promise<void> {
    const template = await this.findByName(owner, name)
    if (template === null) throw notFound('template', `'${name}'`)
    await this.#remove(template)
  }

  async #remove({ owner, id, name }: Template): Promise<void> {
    const result = await this.#ports.store.templates.remove(owner, id)
    if (result === 'in_use') throw invalidRequest([`template '${name}' is in use by an endpoint`])
    if (result === 'absent') throw notFound('template', id)
    this.#ports.emit('template.deleted', { templateId: id })
  }

  /** Problems that keep endpoints of the template from serving; each problem once, with the first of them. */
  async #servingProblems(template: Template, previous: Template): Promise<FieldProblem[]> {
    if (JSON.stringify(template.env) === JSON.stringify(previous.env)) return []
    const { endpoints, templates } = this.#ports.store
    const problems = new Map<string, FieldProblem>()
    const users = await mapConcurrently(await templates.users(template.id), CONCURRENCY, id => endpoints.find(id))
    for (const config of users) {
      if (config === null) continue
      for (const servingProblem of servingChangeProblems({ config, template }, { config, template: previous })) {
        const key = problemSentence(servingProblem)
        const problem = `${servingProblem.problem} (load-balancing endpoint '${config.name}' uses this template)`
        if (!problems.has(key)) problems.set(key, { ...servingProblem, problem })
      }
    }
    return [...problems.values()]
  }

  #saved(templateId: TemplateId): void {
    this.#ports.emit('template.saved', { templateId })
    this.#ports.notifier.publish('endpoints')
  }
}

/**
 * Everything wrong with a template, its folder and registry included. A folder is checked at once; an image
 * reference is saved even where no container engine is found.
 */
export async function savedTemplateProblems(
  ports: Ports,
  owner: OwnerId,
  input: TemplateInput,
): Promise<FieldProblem[]> {
  const problems = templateProblems(input)
  const failure = isOnMachine(ports, input.image)
    ? await ports.driver.check(input.image, input.args)
    : imageRefusal(ports, owner, input.image)
  if (failure !== null) problems.push(fieldProblem('image', `cannot run here: ${startFailureText(failure)}`))
  const hasRegistry = input.registry === null || (await ports.store.registries.find(owner, input.registry)) !== null
  if (!hasRegistry) problems.push(fieldProblem('registry', 'not found', `registry ${input.registry}`))
  return problems
}

function nameTaken(name: string): AppError {
  return invalidRequest([`a template named '${name}' already exists; template names are unique`])
}
