import { AppError, invalid, notFound } from '../core/errors.ts'
import type { OwnerId, TemplateId } from '../core/ids.ts'
import { type Template, type TemplateInput, templateFailures } from '../core/template.ts'
import type { Ports } from '../ports/ports.ts'
import { shortId } from './short-id.ts'

/** Templates: what workers run. */
export class Templates {
  readonly #ports: Ports

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** @throws AppError `invalid` with all failures, the taken name among them */
  async create(owner: OwnerId, input: TemplateInput, listed = true): Promise<Template> {
    const { store, random, clock } = this.#ports
    await this.#check(input)
    const template: Template = { ...input, id: shortId(random) as TemplateId, owner, listed, createdAtMs: clock.now() }
    if (!(await store.templates.insert(template))) throw nameTaken(input.name)
    this.#saved(template.id)
    return template
  }

  /**
   * Changes what is given and keeps the rest. Every endpoint that uses the template gets a new version.
   * @throws AppError `not_found`, or `invalid` with all failures
   */
  async update(owner: OwnerId, id: TemplateId, changes: Partial<TemplateInput>): Promise<Template> {
    const { store, notifier, emit } = this.#ports
    const template = { ...(await this.find(owner, id)), ...changes }
    await this.#check(template)
    const users = await store.templates.replace(template)
    if (users === null) throw nameTaken(template.name)
    this.#saved(id)
    for (const endpointId of users) {
      const version = (await store.endpoints.find(endpointId))?.version ?? 0
      emit('endpoint.saved', { endpointId, version, created: false })
      notifier.publish(`load:${endpointId}`)
    }
    return template
  }

  /** @throws AppError `not_found` */
  async find(owner: OwnerId, id: TemplateId): Promise<Template> {
    const template = await this.#ports.store.templates.find(owner, id)
    if (template === null) throw notFound('template', id)
    return template
  }

  /** Null when the owner has no template of that name. */
  findByName(owner: OwnerId, name: string): Promise<Template | null> {
    return this.#ports.store.templates.findByName(owner, name)
  }

  /** @throws AppError `not_found`, or `conflict` while an endpoint uses it */
  async removeByName(owner: OwnerId, name: string): Promise<void> {
    const template = await this.findByName(owner, name)
    if (template === null) throw notFound('template', `'${name}'`)
    const result = await this.#ports.store.templates.remove(owner, template.id)
    if (result === 'in_use') throw new AppError('conflict', `template '${name}' is in use by an endpoint`)
    this.#ports.emit('template.deleted', { templateId: template.id })
  }

  /** A folder is checked at once; an image reference is saved even where no container engine is found. */
  async #check(input: TemplateInput): Promise<void> {
    const failures = templateFailures(input)
    const isFolder = input.image.startsWith('dir:')
    const problem = isFolder ? await this.#ports.driver.check(input.image, input.args) : null
    if (problem !== null) failures.push(problem)
    if (failures.length > 0) throw invalid(failures)
  }

  #saved(templateId: TemplateId): void {
    this.#ports.emit('template.saved', { templateId })
    this.#ports.notifier.publish('endpoints')
  }
}

function nameTaken(name: string): AppError {
  return invalid([`a template named '${name}' already exists; template names are unique`])
}
