import { type Release, type Rollout, rolloutOf } from '../../core/endpoints/release.ts'
import { notFound } from '../../core/errors.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

/** A release with how many workers run it. */
export interface ListedRelease extends Release {
  readonly workerCount: number
}

/** The releases of an endpoint and how far the newest one has come. */
export interface ReleaseList {
  readonly endpointVersion: number
  readonly rollout: Rollout
  /** Newest first; at most `MAX_RELEASES`. */
  readonly releases: readonly ListedRelease[]
}

/** Releases: which changes of endpoints their workers had to see. */
export class Releases {
  readonly #ports: Pick<Ports, 'store'>

  constructor(ports: Pick<Ports, 'store'>) {
    this.#ports = ports
  }

  /** @throws AppError `not_found`, also for an endpoint of another owner */
  async list(owner: OwnerId, id: EndpointId): Promise<ReleaseList> {
    const { store } = this.#ports
    const snapshot = await store.endpoints.snapshot(id)
    if (snapshot === null || snapshot.endpoint.owner !== owner) throw notFound('endpoint', id)
    const { version } = snapshot.endpoint
    const versions = snapshot.workers.map(worker => worker.version)
    const releases = (await store.releases.list(id)).map(release => ({
      ...release,
      workerCount: versions.filter(one => one === release.version).length,
    }))
    return { endpointVersion: version, rollout: rolloutOf(version, versions), releases }
  }
}
