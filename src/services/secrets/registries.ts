import { invalidFields, notFound } from '../../core/errors.ts'
import type { OwnerId, RegistryId } from '../../core/ids.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import { type Registry, type RegistryInput, registryProblems } from '../../core/secrets/registry.ts'
import { registryPlace } from '../../core/secrets/seals.ts'
import type { RegistryCredential } from '../../ports/driver.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { onePage } from '../paging.ts'
import { shortId } from '../short-id.ts'

/** Registries: credentials for private images. */
export class Registries {
  readonly #ports
  readonly #quotas

  constructor(ports: Ports, quotas: Quotas) {
    this.#ports = ports
    this.#quotas = quotas
  }

  /** @throws AppError `invalid` with all failures, or `conflict` past a limit of the account */
  async create(owner: OwnerId, input: RegistryInput): Promise<Registry> {
    const { store, vault, random, clock } = this.#ports
    const problems = registryProblems(input)
    if (problems.length > 0) throw invalidFields(problems)
    const { name, username, password } = input
    const registry = { id: shortId(random) as RegistryId, owner, name, username, createdAtMs: clock.now() }
    const insert = () => store.registries.insert(registry, vault.seal(password, registryPlace(owner, registry.id)))
    await this.#quotas.adding(owner, 'registries', insert)
    return registry
  }

  /**
   * The owner's registries, oldest first.
   * @throws AppError `invalid` for a cursor that no page had
   */
  list(owner: OwnerId, request: PageRequest = {}): Promise<Page<Registry>> {
    return onePage(request, slice => this.#ports.store.registries.list(owner, slice))
  }

  /** @throws AppError `not_found`, also for a registry of another owner */
  async find(owner: OwnerId, id: RegistryId): Promise<Registry> {
    const registry = await this.#ports.store.registries.find(owner, id)
    if (registry === null) throw notFound('registry', id)
    return registry
  }

  /**
   * Changes the given fields and keeps the others. Images that are present are not pulled again.
   * @throws AppError `not_found`, or `invalid` with all failures
   */
  async update(owner: OwnerId, id: RegistryId, changes: Partial<RegistryInput>): Promise<Registry> {
    const { store, vault } = this.#ports
    const { password, ...names } = changes
    await this.find(owner, id)
    const problems = registryProblems(changes)
    if (problems.length > 0) throw invalidFields(problems)
    const sealed = password === undefined ? {} : { sealed: vault.seal(password, registryPlace(owner, id)) }
    const registry = await store.registries.update(owner, id, { ...names, ...sealed })
    if (registry === null) throw notFound('registry', id)
    return registry
  }

  /**
   * Removes it, also from its templates; endpoints of these get a new version.
   * @throws AppError `not_found`
   */
  async remove(owner: OwnerId, id: RegistryId): Promise<void> {
    const { store, clock, emit, notifier } = this.#ports
    const users = await store.registries.remove(owner, id, clock.now())
    if (users === null) throw notFound('registry', id)
    for (const endpointId of users) {
      const endpoint = await store.endpoints.find(endpointId)
      if (endpoint === null) continue
      emit('endpoint.saved', { endpointId, owner: endpoint.owner, version: endpoint.version, created: false })
      notifier.publish(`load:${endpointId}`)
    }
  }
}

/**
 * User and password for the pull of an image; for drivers, never for callers.
 * @throws AppError `not_found`, also for a registry of another owner
 */
export async function registryCredential(
  { store, vault }: Ports,
  owner: OwnerId,
  id: RegistryId,
): Promise<RegistryCredential> {
  const registry = await store.registries.find(owner, id)
  const sealed = await store.registries.sealedPassword(owner, id)
  if (registry === null || sealed === null) throw notFound('registry', id)
  return { username: registry.username, password: vault.open(sealed, registryPlace(owner, id)) }
}
