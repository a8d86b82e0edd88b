import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { notFound } from '../../core/errors.ts'
import { isEndpointId, type OwnerId } from '../../core/ids.ts'
import { MODEL_ALIASES, type ModelAlias, tooManyAliases } from '../../core/openai/model-alias.ts'
import type { Ports } from '../../ports/ports.ts'

/** An alias with the endpoints that are left of it, the preferred one first. */
export interface ShownAlias {
  readonly name: string
  readonly endpoints: readonly Pick<Endpoint, 'id' | 'name'>[]
  readonly createdAtMs: number
}

/** Other names of models, which the keys of an account share. */
export class ModelAliases {
  readonly #ports

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /** All of an account, by name. */
  async list(owner: OwnerId): Promise<ShownAlias[]> {
    const aliases = await this.#ports.store.modelAliases.list(owner)
    return Promise.all(aliases.map(alias => this.#shown(alias)))
  }

  /**
   * Makes an alias, or replaces the endpoints of one.
   * @param endpoints names or ids, the preferred one first
   * @throws AppError `not_found` for an endpoint that the account has not, `conflict` for one alias too many
   */
  async save(owner: OwnerId, name: string, endpoints: readonly string[]): Promise<ShownAlias> {
    const { store, clock, notifier } = this.#ports
    const found = await Promise.all(endpoints.map(text => this.#find(owner, text)))
    const missing = endpoints.find((_, at) => found[at] === null)
    if (missing !== undefined) throw notFound('endpoint', missing)
    const endpointIds = [...new Set(found.map(endpoint => endpoint!.id))].slice(0, MODEL_ALIASES.endpoints)
    const alias = { owner, name, endpointIds, createdAtMs: clock.now() }
    if (!(await store.modelAliases.save(alias))) throw tooManyAliases()
    notifier.publish('endpoints')
    return this.#shown((await store.modelAliases.find(owner, name)) ?? alias)
  }

  /** @throws AppError `not_found` */
  async remove(owner: OwnerId, name: string): Promise<void> {
    if (!(await this.#ports.store.modelAliases.remove(owner, name))) throw notFound('alias', name)
    this.#ports.notifier.publish('endpoints')
  }

  async #find(owner: OwnerId, text: string): Promise<Endpoint | null> {
    const { endpoints } = this.#ports.store
    const [named] = await endpoints.named(owner, text)
    if (named !== undefined) return named
    const one = isEndpointId(text) ? await endpoints.find(text) : null
    return one === null || one.owner !== owner ? null : one
  }

  async #shown({ name, endpointIds, createdAtMs }: ModelAlias): Promise<ShownAlias> {
    const found = await Promise.all(endpointIds.map(id => this.#ports.store.endpoints.find(id)))
    const endpoints = found.flatMap(endpoint => (endpoint === null ? [] : [{ id: endpoint.id, name: endpoint.name }]))
    return { name, endpoints, createdAtMs }
  }
}
