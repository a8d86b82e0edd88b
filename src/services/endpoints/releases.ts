import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import {
  type KeptRelease,
  type Release,
  restoredEndpoint,
  restoredTemplate,
  type WorkersOnLatest,
  workersOnLatest,
} from '../../core/endpoints/release.ts'
import type { FailureStop } from '../../core/endpoints/rollout-facts.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import { type FieldProblem, fieldProblem } from '../../core/field-problem.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import {
  findRolloutState,
  mayStop,
  plannedRelease,
  type RolloutState,
  rolloutProblem,
} from '../../core/scaling/rollout.ts'
import type { EndpointSnapshot } from '../../core/scaling/scale.ts'
import { secretNames } from '../../core/secrets/secret.ts'
import type { StartFailure } from '../../core/workers/start-failure.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Endpoints } from './endpoints.ts'
import { type Changer, changedAccount } from './host-folders.ts'

/** A release with the number of workers that run it. */
export interface ListedRelease extends Release {
  readonly workerCount: number
}

/** A release with its configuration and the number of workers that run it. */
export type ShownRelease = KeptRelease & ListedRelease

/** The progress of the newest release. */
export interface Rollout extends WorkersOnLatest {
  readonly state: RolloutState
  /** The problem of the release; null while it has none. */
  readonly reason: string | null
  /** The release whose workers go on while the rollout is stopped, or beside a canary; null otherwise. */
  readonly workingVersion: number | null
  /** The percentage of workers that the newest release has as a canary; null for other releases. */
  readonly canary: number | null
  /**
   * Results for which it was stopped although a worker was ready: it failed clearly more often than the previous
   * release. Null for all other releases.
   */
  readonly stop: FailureStop | null
}

/** The releases of an endpoint and the progress of the newest one. */
export interface ReleaseList {
  readonly endpointVersion: number
  readonly rollout: Rollout
  /** Newest first; at most `MAX_RELEASES`. */
  readonly releases: readonly ListedRelease[]
}

/** Questions of {@link Releases} about workers; the fleet implements them. */
export interface ReleaseWorkers {
  /** The reason why no worker of this endpoint could be started now; null when one could. */
  startFailure(endpoint: Endpoint): Promise<StartFailure | null>
}

/** Releases: the changes of endpoints that their workers had to see, and the way back. */
export class Releases {
  readonly #ports
  readonly #endpoints
  readonly #workers

  constructor(ports: Ports, endpoints: Endpoints, workers: ReleaseWorkers) {
    this.#ports = ports
    this.#endpoints = endpoints
    this.#workers = workers
  }

  /** @throws AppError `not_found`, also for an endpoint of another owner */
  async list(owner: OwnerId, id: EndpointId): Promise<ReleaseList> {
    const snapshot = await this.#snapshot(owner, id)
    const versions = snapshot.workers.map(worker => worker.version)
    const releases = (await this.#ports.store.releases.list(id)).map(release => counted(release, versions))
    return { endpointVersion: snapshot.endpoint.version, rollout: await this.#rollout(snapshot), releases }
  }

  /**
   * One release with its configuration.
   * @throws AppError `not_found`, also for an endpoint of another owner
   */
  async find(owner: OwnerId, id: EndpointId, version: number): Promise<ShownRelease> {
    const { workers } = await this.#snapshot(owner, id)
    const versions = workers.map(worker => worker.version)
    return counted(await this.#require(id, version), versions)
  }

  /**
   * Makes a new version whose workers run the configuration of an older one, with the same exact image. Where its
   * template is shared or listed, the endpoint gets a copy of its own first, so that no other endpoint changes.
   * Fields that make no release, such as workersMax, stay.
   * @returns the new version
   * @throws AppError `not_found`; `conflict` for the present version, for a version whose configuration is no longer
   *   kept, and as a change of the endpoint; `invalid` with all objects that the configuration names and that were
   *   removed; `forbidden` as services/endpoints/host-folders.ts says
   */
  async rollBack(by: Changer, id: EndpointId, version: number): Promise<ShownRelease> {
    const owner = changedAccount(by)
    const { version: present } = await this.#endpoints.find(owner, id)
    const { configuration, image } = await this.#require(id, version)
    if (version === present) throw new AppError('conflict', isPresent(id, version))
    if (configuration === null) throw new AppError('conflict', notKept(id, version))
    const missing = await this.#missingSecrets(owner, savedEnv(configuration.endpoint, configuration.template))
    if (missing.length > 0) throw invalidFields(missing)
    const { endpoint } = await this.#endpoints.save(by, {
      id,
      changes: present => {
        // Another rollback may have finished first.
        if (present.version === version) throw new AppError('conflict', isPresent(id, version))
        return restoredEndpoint(present, configuration)
      },
      template: restoredTemplate(configuration, image),
      release: { restores: version, image },
    })
    return this.find(owner, id, endpoint.version)
  }

  /**
   * Makes a canary an ordinary release, whose workers replace those of the previous release. A release that was
   * stopped because it failed its jobs continues, and is not judged again.
   * @throws AppError `not_found`, also for an endpoint of another owner; `conflict` for a release that is neither, or
   *   not the newest
   */
  async promote(owner: OwnerId, id: EndpointId, version: number): Promise<ShownRelease> {
    await this.find(owner, id, version)
    if (!(await this.#ports.store.releases.promote(id, version))) {
      const problem = 'is not a canary and was not stopped because its jobs failed, or is not the newest release'
      throw new AppError('conflict', `release ${version} of endpoint ${id} ${problem}`)
    }
    this.#ports.notifier.publish(`load:${id}`)
    return this.find(owner, id, version)
  }

  async #snapshot(owner: OwnerId, id: EndpointId): Promise<EndpointSnapshot> {
    const snapshot = await this.#ports.store.endpoints.snapshot(id)
    if (snapshot === null || snapshot.endpoint.owner !== owner) throw notFound('endpoint', id)
    return snapshot
  }

  async #rollout(snapshot: EndpointSnapshot): Promise<Rollout> {
    const { endpoint, rollout, workers } = snapshot
    const failure = mayStop(rollout) ? await this.#workers.startFailure(endpoint) : null
    const state = findRolloutState(snapshot, failure)
    const { snapshot: planned, template, canary } = plannedRelease(snapshot, failure)
    const latest = workersOnLatest(
      endpoint.version,
      workers.map(({ version }) => version),
    )
    return {
      ...latest,
      inProgress: state !== 'COMPLETE',
      state,
      reason: rolloutProblem(snapshot, failure),
      workingVersion: template === null ? null : planned.endpoint.version,
      canary: canary?.percent ?? null,
      stop: state === 'STOPPED' ? rollout.stop : null,
    }
  }

  async #require(id: EndpointId, version: number): Promise<KeptRelease> {
    const release = await this.#ports.store.releases.find(id, version)
    if (release === null) throw notFound('release', `${version} of endpoint ${id}`)
    return release
  }

  async #missingSecrets(owner: OwnerId, env: Readonly<Record<string, string>>): Promise<FieldProblem[]> {
    const names = secretNames(env)
    const values = names.length === 0 ? new Map() : await this.#ports.store.secrets.sealedValues(owner, names)
    return names.filter(name => !values.has(name)).map(name => fieldProblem('env', 'not found', `secret ${name}`))
  }
}

function counted<Kind extends Release>(release: Kind, versions: readonly number[]): Kind & ListedRelease {
  return { ...release, workerCount: versions.filter(workerVersion => workerVersion === release.version).length }
}

function isPresent(id: EndpointId, version: number): string {
  return `endpoint ${id} runs release ${version} already; name an older one`
}

function notKept(id: EndpointId, version: number): string {
  return `the configuration of release ${version} of endpoint ${id} is no longer kept; the newest ones are, up to 4 MiB together`
}
