import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { servingVariables } from '../../core/endpoints/serving.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import type { OwnerId, SecretId } from '../../core/ids.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import { secretPlace } from '../../core/secrets/seals.ts'
import { type Secret, secretNames, secretProblems } from '../../core/secrets/secret.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { onePage } from '../paging.ts'
import { shortId } from '../short-id.ts'

/** Secrets: values that only workers ever see. */
export class Secrets {
  readonly #ports
  readonly #quotas

  constructor(ports: Ports, quotas: Quotas) {
    this.#ports = ports
    this.#quotas = quotas
  }

  /**
   * @throws AppError `invalid` with all failures, or `conflict` when the name exists or past a limit of the account
   */
  async create(owner: OwnerId, name: string, value: string, description: string | null): Promise<Secret> {
    const { store, vault, random, clock, notifier } = this.#ports
    const problems = secretProblems({ name, value, description })
    if (problems.length > 0) throw invalidFields(problems)
    const times = { createdAtMs: clock.now(), valueUpdatedAtMs: null }
    const secret: Secret = { id: shortId(random) as SecretId, owner, name, description, ...times }
    const sealed = vault.seal(value, secretPlace(owner, name))
    const bytes = { sealedBytes: sealed.length, descriptionBytes: Buffer.byteLength(description ?? '') }
    const insert = () => store.secrets.insert(secret, sealed)
    const keep = () => this.#quotas.keepingSecret(owner, secret.id, bytes, insert)
    if (!(await this.#quotas.adding(owner, 'secrets', keep))) {
      throw new AppError('conflict', `a secret named '${name}' already exists`)
    }
    notifier.publish('endpoints')
    return secret
  }

  /**
   * The owner's secrets, oldest first.
   * @throws AppError `invalid` for a cursor that no page had
   */
  list(owner: OwnerId, request: PageRequest = {}): Promise<Page<Secret>> {
    return onePage(request, slice => this.#ports.store.secrets.list(owner, slice))
  }

  /** @throws AppError `not_found`, also for a secret of another owner */
  async find(owner: OwnerId, id: SecretId): Promise<Secret> {
    const secret = await this.#ports.store.secrets.find(owner, id)
    if (secret === null) throw notFound('secret', id)
    return secret
  }

  /** Null when the owner has no secret of that name. */
  findByName(owner: OwnerId, name: string): Promise<Secret | null> {
    return this.#ports.store.secrets.findByName(owner, name)
  }

  /**
   * Changes the given fields and keeps the others. Running workers keep the value of their start; variables of an
   * endpoint that concern requests change at once.
   * @throws AppError `not_found`, `invalid` with all failures, or `conflict` past a limit of the account
   */
  async update(
    owner: OwnerId,
    id: SecretId,
    changes: { readonly value?: string; readonly description?: string | null },
  ): Promise<Secret> {
    const { store, vault, clock, notifier } = this.#ports
    const { value, description } = changes
    const { name } = await this.find(owner, id)
    const problems = secretProblems(changes)
    if (problems.length > 0) throw invalidFields(problems)
    const sealed = value === undefined ? null : vault.seal(value, secretPlace(owner, name))
    const descriptionBytes = description === undefined ? null : Buffer.byteLength(description ?? '')
    const change = () =>
      store.secrets.update(owner, id, {
        ...(description === undefined ? {} : { description }),
        ...(sealed === null ? {} : { value: { sealed, atMs: clock.now() } }),
      })
    const bytes = { sealedBytes: sealed?.length ?? null, descriptionBytes }
    const secret = await this.#quotas.inTurn(owner, () => this.#quotas.keepingSecret(owner, id, bytes, change))
    if (secret === null) throw notFound('secret', id)
    if (value !== undefined) {
      notifier.publish('endpoints')
      // The value was changed; after a failure here, the endpoints are refreshed at their next request.
      await this.#lookAgain(secret).catch(() => {})
    }
    return secret
  }

  /** @throws AppError `not_found` */
  async remove(owner: OwnerId, id: SecretId): Promise<void> {
    if (!(await this.#ports.store.secrets.remove(owner, id))) throw notFound('secret', id)
    this.#ports.notifier.publish('endpoints')
  }

  /** Refreshes load-balancing endpoints whose serving variables have the secret: their limit may have changed. */
  async #lookAgain({ owner, name }: Secret): Promise<void> {
    const { store, notifier } = this.#ports
    const serving = (await store.endpoints.list(owner)).filter(({ type }) => type === 'LOAD_BALANCER')
    if (serving.length === 0) return
    const templates = new Map((await store.templates.ofEndpoints(owner)).map(template => [template.id, template]))
    for (const endpoint of serving) {
      const template = templates.get(endpoint.templateId)
      const variables = servingVariables(savedEnv(endpoint, template ?? { env: {} }))
      if (secretNames(variables).includes(name)) notifier.publish(`load:${endpoint.id}`)
    }
  }
}
