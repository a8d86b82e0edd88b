import {
  type Configuration,
  configDiff,
  type KeptConfiguration,
  type KeptRelease,
  keptConfiguration,
  MAX_KEPT_CHARACTERS,
  MAX_RELEASES,
  type Release,
} from '../../../core/endpoints/release.ts'
import { ROLLED_OUT, type RolloutFacts } from '../../../core/endpoints/rollout-facts.ts'
import type { EndpointId } from '../../../core/ids.ts'
import type { ReleaseOptions, ReleaseStore } from '../../../ports/store/management-store.ts'
import { lockEndpoint } from '../../tables/endpoints.ts'
import { deleteQueuedWorkersOf } from '../../tables/queued-workers.ts'
import * as sql from '../../tables/releases.ts'
import { type KeptReleaseRow, ofRelease, type ReleaseRow, toKeptRelease, toRelease } from '../../tables/releases.ts'
import { lock, type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

function* imageOf(endpointId: EndpointId, version: number): Steps<string | null> {
  return (yield* queryOne<{ image: string | null }>(sql.imageOfRelease, [endpointId, version]))?.image ?? null
}

function* modelsOf(endpointId: EndpointId, version: number): Steps<Record<string, string> | null> {
  const row = yield* queryOne<{ models: string | null }>(sql.modelsOfRelease, [endpointId, version])
  return row === null ? null : (JSON.parse(row.models ?? '{}') as Record<string, string>)
}

interface RolloutRow {
  readonly ready_at_ms: number | null
  readonly crashes: number
  readonly canary: number | null
}

/** What is known of the rollout of a version. The release to fall back to is read only while there may be a need. */
export function* rolloutFacts(endpointId: EndpointId, version: number): Steps<RolloutFacts> {
  const row = yield* queryOne<RolloutRow>(sql.rolloutOfRelease, [endpointId, version])
  if (row === null || (row.ready_at_ms !== null && row.canary === null)) return ROLLED_OUT
  const working = yield* queryOne<{ version: number; config: string }>(sql.workingRelease, [endpointId, version])
  return {
    wasReady: row.ready_at_ms !== null,
    crashes: row.crashes,
    canary: row.canary,
    working:
      working === null
        ? null
        : { version: working.version, configuration: JSON.parse(working.config) as KeptConfiguration },
  }
}

/** Releases of endpoints. */
export const releases = {
  list: read(function* (endpointId: EndpointId): Steps<Release[]> {
    return (yield* query<ReleaseRow>(sql.listReleases, [endpointId, MAX_RELEASES])).map(toRelease)
  }),
  find: read(function* (endpointId: EndpointId, version: number): Steps<KeptRelease | null> {
    const row = yield* queryOne<KeptReleaseRow>(sql.findRelease, [endpointId, version])
    return row === null ? null : toKeptRelease(row)
  }),
  rollout: read(rolloutFacts),
  promote: write(function* (endpointId: EndpointId, version: number): Steps<boolean> {
    yield* lock(lockEndpoint, [endpointId])
    return (yield* query(sql.promoteRelease, [endpointId, version])).length > 0
  }),
  image: read(imageOf),
  pinImage: write(function* (endpointId, version, { image, replaced }): Steps<string | null> {
    yield* perform(sql.pinImage, [endpointId, version, image, replaced])
    return yield* imageOf(endpointId, version)
  }),
  models: read(function* (endpointId, version): Steps<Record<string, string>> {
    return (yield* modelsOf(endpointId, version)) ?? {}
  }),
  pinModel: write(function* (endpointId, version, { reference, commit }): Steps<string | null> {
    yield* lock(lockEndpoint, [endpointId])
    const known = yield* modelsOf(endpointId, version)
    if (known === null) return null
    if (known[reference] !== undefined) return known[reference]
    yield* perform(sql.setModels, [endpointId, version, JSON.stringify({ ...known, [reference]: commit })])
    return commit
  }),
  images: read(function* (): Steps<string[]> {
    return (yield* query<{ image: string }>(sql.imagesInUse)).map(({ image }) => image)
  }),
} satisfies OperationsOf<ReleaseStore>

/**
 * The release of an endpoint's new version, in the transaction that makes it. Workers of the version before that wait for a place go: they are
 * of no use any more, and would keep the endpoint from ever being idle.
 * @param before null for the first version
 * @param options rarer properties of it
 */
export function* addRelease(
  before: Configuration | null,
  after: Configuration,
  nowMs: number,
  { restores = null, image = null, replacesAtOnce = false, canary = null }: ReleaseOptions = {},
): Steps<void> {
  const { id: endpointId, owner, version } = after.endpoint
  const release: KeptRelease = {
    id: `${endpointId}-${version}`,
    endpointId,
    owner,
    version,
    source: 'MANUAL',
    createdBy: owner,
    createdAtMs: nowMs,
    diff: before === null ? [] : configDiff(before, after),
    restores,
    image,
    canary,
    configuration: keptConfiguration(after),
  }
  yield* perform(sql.insertRelease, ofRelease(release, replacesAtOnce ? nowMs : null))
  yield* perform(deleteQueuedWorkersOf, [endpointId])
  if (restores !== null) yield* perform(sql.restoreModels, [endpointId, version, restores])
  yield* perform(sql.deleteOldReleases, [endpointId, version - MAX_RELEASES])
  yield* perform(sql.dropOldConfigurations, [endpointId, version - 2, MAX_KEPT_CHARACTERS])
}
