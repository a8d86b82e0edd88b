import { type AppEnvironment, type AppTarget, appNameProblems, type DeployedApp } from '../../core/apps/app.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import type { AppId, EndpointId, EnvironmentId, OwnerId } from '../../core/ids.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { onePage } from '../paging.ts'
import { shortId } from '../short-id.ts'

/** Apps and their environments. */
export class Apps {
  readonly #ports
  readonly #quotas

  constructor(ports: Ports, quotas: Quotas) {
    this.#ports = ports
    this.#quotas = quotas
  }

  /** @throws AppError `invalid`, or `conflict` when the name exists or past a limit of the account */
  async create(owner: OwnerId, name: string): Promise<DeployedApp> {
    const { store, random, clock } = this.#ports
    const problems = appNameProblems(name)
    if (problems.length > 0) throw invalidFields(problems)
    const app: DeployedApp = { id: shortId(random) as AppId, owner, name, createdAtMs: clock.now() }
    if (await this.#quotas.adding(owner, 'apps', () => store.apps.insert(app))) return app
    throw new AppError('conflict', `an app named '${name}' already exists`)
  }

  /**
   * The owner's apps, oldest first.
   * @throws AppError `invalid` for a cursor that no page had
   */
  list(owner: OwnerId, request: PageRequest = {}): Promise<Page<DeployedApp>> {
    return onePage(request, slice => this.#ports.store.apps.list(owner, slice))
  }

  /** @throws AppError `not_found`, also for an app of another owner */
  async find(owner: OwnerId, id: AppId): Promise<DeployedApp> {
    const app = await this.#ports.store.apps.find(owner, id)
    if (app === null) throw notFound('app', id)
    return app
  }

  /** Null when the owner has no app of that name. */
  findByName(owner: OwnerId, name: string): Promise<DeployedApp | null> {
    return this.#ports.store.apps.findByName(owner, name)
  }

  /**
   * Removes an app with its builds.
   * @throws AppError `not_found`, or `conflict` while it has environments, with their names
   */
  async remove(owner: OwnerId, id: AppId): Promise<void> {
    const result = await this.#ports.store.apps.remove(owner, id)
    if (result === 'absent') throw notFound('app', id)
    if (result === 'removed') return
    const named = result.map(name => `'${name}'`).join(', ')
    throw new AppError('conflict', `app ${id} has environments that must be deleted first: ${named}`)
  }

  /**
   * @throws AppError `not_found` without the app, `invalid`, or `conflict` when the app has an environment of that
   *   name or past a limit of the account
   */
  async createEnvironment(owner: OwnerId, appId: AppId, name: string): Promise<AppEnvironment> {
    const { store, random, clock } = this.#ports
    const problems = appNameProblems(name)
    if (problems.length > 0) throw invalidFields(problems)
    const id = shortId(random) as EnvironmentId
    const environment: AppEnvironment = { id, owner, appId, name, activeBuildId: null, createdAtMs: clock.now() }
    const insert = () => store.apps.insertEnvironment(environment)
    const result = await this.#quotas.adding(owner, 'environments', insert)
    if (result === 'absent') throw notFound('app', appId)
    if (result === 'taken') throw new AppError('conflict', `the app already has an environment named '${name}'`)
    return environment
  }

  /** @throws AppError `not_found`, also for an environment of another owner */
  async findEnvironment(owner: OwnerId, id: EnvironmentId): Promise<AppEnvironment> {
    const environment = await this.#ports.store.apps.findEnvironment(owner, id)
    if (environment === null) throw notFound('environment', id)
    return environment
  }

  /**
   * Removes an environment; the builds of its app stay.
   * @throws AppError `not_found`, or `conflict` while it has endpoints, with their ids
   */
  async removeEnvironment(owner: OwnerId, id: EnvironmentId): Promise<void> {
    const result = await this.#ports.store.apps.removeEnvironment(owner, id)
    if (result === 'absent') throw notFound('environment', id)
    if (result === 'removed') return
    const named = result.join(', ')
    throw new AppError('conflict', `environment ${id} has endpoints that must be deleted first: ${named}`)
  }

  /**
   * The endpoint at a place of an app.
   * @throws AppError `not_found`
   */
  async target(owner: OwnerId, place: AppTarget): Promise<EndpointId> {
    const id = await this.#ports.store.apps.target(owner, place)
    if (id !== null) return id
    const { app, environment, endpoint } = place
    throw new AppError('not_found', `app '${app}', environment '${environment}': endpoint '${endpoint}' not found`)
  }
}
