import type { AppEnvironment, DeployedApp, DeployedBuild, EnvironmentEndpoint } from '../../core/apps/app.ts'
import { buildIdFromEnv } from '../../core/apps/build.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { notFound } from '../../core/errors.ts'
import type { AppId, BuildId, OwnerId } from '../../core/ids.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import type { Ports } from '../../ports/ports.ts'
import { mapConcurrently } from '../map-concurrently.ts'
import { onePage } from '../paging.ts'

/** Endpoints that are read at once. */
const CONCURRENCY = 16
/** Limit of the endpoints of one app that are shown. */
const MOST_ENDPOINTS = 1_000
/** Limit of the builds of one app that are shown. */
const MOST_BUILDS = 100

/** An app with its environments, and the number of endpoints in all of them. */
export interface AppOverview {
  readonly app: DeployedApp
  readonly environments: readonly AppEnvironment[]
  readonly endpointCount: number
}

/** Live workers that run one build. */
export interface RunningBuild {
  /** Null for workers of a release that is gone or names no build. */
  readonly buildId: BuildId | null
  readonly workers: number
}

/** An endpoint of an environment with what it runs. */
export interface AppEndpoint extends EnvironmentEndpoint {
  /** The build of its newest release; null where that names none. */
  readonly buildId: BuildId | null
  /** Builds that its workers run now; others than `buildId` are of older releases. */
  readonly running: readonly RunningBuild[]
}

/** Everything that an app has. */
export interface AppContent extends AppOverview {
  /** By name; all environments together have at most 1,000 here. */
  readonly endpoints: readonly AppEndpoint[]
  /** The newest first, at most 100. */
  readonly builds: readonly DeployedBuild[]
}

/** Reads the parts of apps, and which endpoint runs which build. */
export class AppContents {
  readonly #ports

  constructor(ports: Ports) {
    this.#ports = ports
  }

  /**
   * The owner's apps, oldest first. Environments and endpoints are those of the first 10,000 of the account.
   * @param name only the app of this name
   * @throws AppError `invalid` for a cursor that no page had
   */
  async list(owner: OwnerId, request: PageRequest, name?: string): Promise<Page<AppOverview>> {
    const { apps } = this.#ports.store
    if (name !== undefined) {
      const app = await apps.findByName(owner, name)
      return { items: app === null ? [] : [await this.#overview(app)], nextCursor: null }
    }
    const page = await onePage(request, slice => apps.list(owner, slice))
    if (page.items.length === 0) return { items: [], nextCursor: page.nextCursor }
    const environments = Map.groupBy(await apps.environments(owner, null), ({ appId }) => appId)
    const endpoints = Map.groupBy(await apps.endpoints(owner, null), ({ environmentId }) => environmentId)
    const items = page.items.map(app => {
      const own = environments.get(app.id) ?? []
      const counts = own.map(({ id }) => endpoints.get(id)?.length ?? 0)
      return { app, environments: own, endpointCount: counts.reduce((sum, count) => sum + count, 0) }
    })
    return { items, nextCursor: page.nextCursor }
  }

  /** @throws AppError `not_found`, also for an app of another owner */
  async find(owner: OwnerId, id: AppId): Promise<AppContent> {
    const { store } = this.#ports
    const app = await store.apps.find(owner, id)
    if (app === null) throw notFound('app', id)
    const environments = await store.apps.environments(owner, id)
    const places = await this.#places(owner, environments)
    const shown = places.slice(0, MOST_ENDPOINTS)
    return {
      app,
      environments,
      endpointCount: places.length,
      endpoints: await mapConcurrently(shown, CONCURRENCY, place => this.#endpoint(owner, place)),
      builds: await store.appBuilds.list(owner, id, MOST_BUILDS),
    }
  }

  async #overview(app: DeployedApp): Promise<AppOverview> {
    const environments = await this.#ports.store.apps.environments(app.owner, app.id)
    return { app, environments, endpointCount: (await this.#places(app.owner, environments)).length }
  }

  async #places(owner: OwnerId, environments: readonly AppEnvironment[]): Promise<EnvironmentEndpoint[]> {
    const { apps } = this.#ports.store
    return (await mapConcurrently(environments, CONCURRENCY, ({ id }) => apps.endpoints(owner, id))).flat()
  }

  async #endpoint(owner: OwnerId, place: EnvironmentEndpoint): Promise<AppEndpoint> {
    const { store } = this.#ports
    const endpoint = await store.endpoints.find(place.id)
    const template = endpoint === null ? null : await store.templates.find(owner, endpoint.templateId)
    const buildId = endpoint === null || template === null ? null : buildIdFromEnv(savedEnv(endpoint, template))
    const alive = (await store.workers.list(place.id)).filter(({ state }) => state !== 'EXITED')
    const running = new Map<BuildId | null, number>()
    for (const [version, workers] of Map.groupBy(alive, worker => worker.version)) {
      const run = version === endpoint?.version ? buildId : await this.#ofRelease(place, version)
      running.set(run, (running.get(run) ?? 0) + workers.length)
    }
    return { ...place, buildId, running: [...running].map(([run, workers]) => ({ buildId: run, workers })) }
  }

  async #ofRelease({ id }: EnvironmentEndpoint, version: number): Promise<BuildId | null> {
    const configuration = (await this.#ports.store.releases.find(id, version))?.configuration ?? null
    return configuration === null ? null : buildIdFromEnv(savedEnv(configuration.endpoint, configuration.template))
  }
}
