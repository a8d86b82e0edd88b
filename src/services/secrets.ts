import { AppError, invalid, notFound } from '../core/errors.ts'
import type { OwnerId, SecretId } from '../core/ids.ts'
import { type Secret, secretFailures } from '../core/secret.ts'
import type { Ports } from '../ports/ports.ts'
import { shortId } from './short-id.ts'

/** Secrets: values that only workers ever see. */
export class Secrets {
  readonly #ports: Pick<Ports, 'store' | 'vault' | 'random' | 'clock' | 'notifier'>

  constructor(ports: Pick<Ports, 'store' | 'vault' | 'random' | 'clock' | 'notifier'>) {
    this.#ports = ports
  }

  /** @throws AppError `invalid` with all failures, or `conflict` when the name exists */
  async create(owner: OwnerId, name: string, value: string, description: string | null): Promise<Secret> {
    const { store, vault, random, clock, notifier } = this.#ports
    const failures = secretFailures(name, value)
    if (failures.length > 0) throw invalid(failures)
    const secret: Secret = { id: shortId(random) as SecretId, owner, name, description, createdAtMs: clock.now() }
    if (!(await store.secrets.insert(secret, vault.seal(value)))) {
      throw new AppError('conflict', `a secret named '${name}' already exists`)
    }
    notifier.publish('endpoints')
    return secret
  }

  /** @throws AppError `not_found` */
  async remove(owner: OwnerId, id: SecretId): Promise<void> {
    if (!(await this.#ports.store.secrets.remove(owner, id))) throw notFound('secret', id)
    this.#ports.notifier.publish('endpoints')
  }
}
