import type { Endpoint } from '../../../core/endpoints/endpoint.ts'
import type { NetworkVolume } from '../../../core/endpoints/volume.ts'
import type { EndpointId, OwnerId, VolumeId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { VolumeChanges, VolumeStore } from '../../../ports/store/management-store.ts'
import { ofSlice } from '../../tables/slices.ts'
import * as sql from '../../tables/volumes.ts'
import { ofVolume, toVolume, type VolumeRow } from '../../tables/volumes.ts'
import { lock, type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Limit of endpoints that are named when a volume cannot be removed. */
const NAMED = 10

/** Network volumes. */
export const volumes = {
  insert: write(function* (volume: NetworkVolume): Steps<void> {
    yield* perform(sql.insertVolume, ofVolume(volume))
  }),

  update: write(function* (owner: OwnerId, id: VolumeId, changes: VolumeChanges): Steps<NetworkVolume | null> {
    const { name = null, sizeGb = null } = changes
    const row = yield* queryOne<VolumeRow>(sql.updateVolume, [owner, id, name, sizeGb])
    return row === null ? null : toVolume(row)
  }),

  find: read(function* (owner: OwnerId, id: VolumeId): Steps<NetworkVolume | null> {
    const row = yield* queryOne<VolumeRow>(sql.findVolume, [owner, id])
    return row === null ? null : toVolume(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<NetworkVolume[]> {
    return (yield* query<VolumeRow>(sql.listVolumes, [owner, ...ofSlice(slice)])).map(toVolume)
  }),

  remove: write(function* (owner: OwnerId, id: VolumeId): Steps<'removed' | 'absent' | EndpointId[]> {
    yield* lock(sql.lockVolume, [owner, id])
    if ((yield* queryOne(sql.findVolume, [owner, id])) === null) return 'absent'
    const users = yield* query<{ endpoint_id: EndpointId }>(sql.usersOfVolume, [id, NAMED])
    if (users.length > 0) return users.map(row => row.endpoint_id)
    yield* perform(sql.deleteVolume, [owner, id])
    return 'removed'
  }),
} satisfies OperationsOf<VolumeStore>

/** Notes which volumes an endpoint uses, so that none of them can be removed. */
export function* linkVolumes({ id, owner, networkVolumeIds }: Endpoint): Steps<void> {
  yield* perform(sql.dropLinks, [id])
  for (const volume of networkVolumeIds) yield* perform(sql.addLink, [id, owner, volume])
}
