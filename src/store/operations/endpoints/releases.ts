import { type Configuration, configDiff, MAX_RELEASES, type Release } from '../../../core/endpoints/release.ts'
import type { EndpointId } from '../../../core/ids.ts'
import type { ReleaseStore } from '../../../ports/store/management-store.ts'
import * as sql from '../../tables/releases.ts'
import { ofRelease, type ReleaseRow, toRelease } from '../../tables/releases.ts'
import { type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

function* imageOf(endpointId: EndpointId, version: number): Steps<string | null> {
  return (yield* queryOne<{ image: string | null }>(sql.imageOfRelease, [endpointId, version]))?.image ?? null
}

/** Releases of endpoints. */
export const releases = {
  list: read(function* (endpointId: EndpointId): Steps<Release[]> {
    return (yield* query<ReleaseRow>(sql.listReleases, [endpointId, MAX_RELEASES])).map(toRelease)
  }),
  image: read(imageOf),
  pinImage: write(function* (endpointId, version, { image, replaced }): Steps<string | null> {
    yield* perform(sql.pinImage, [endpointId, version, image, replaced])
    return yield* imageOf(endpointId, version)
  }),
  images: read(function* (): Steps<string[]> {
    return (yield* query<{ image: string }>(sql.imagesInUse)).map(({ image }) => image)
  }),
} satisfies OperationsOf<ReleaseStore>

/**
 * The release of an endpoint's new version, in the transaction that makes it.
 * @param before null for the first version
 */
export function* addRelease(before: Configuration | null, after: Configuration, nowMs: number): Steps<void> {
  const { id: endpointId, owner, version } = after.endpoint
  const diff = before === null ? [] : configDiff(before, after)
  const rest = { source: 'MANUAL', createdBy: owner, createdAtMs: nowMs, diff } as const
  yield* perform(sql.insertRelease, ofRelease({ endpointId, owner, version, ...rest }))
  yield* perform(sql.deleteOldReleases, [endpointId, version - MAX_RELEASES])
}
