import type { Endpoint } from '../../../core/endpoints/endpoint.ts'
import type { Volume, VolumeKind, VolumeType } from '../../../core/endpoints/volume.ts'
import type { EndpointId, OwnerId, VolumeId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { VolumeChanges, VolumeStore } from '../../../ports/store/management-store.ts'
import { type SqlValue, sliceParams } from '../../tables/statement.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** The columns of a volume; see volumes.ts. */
const VOLUME_COLUMNS = 'id, owner, name, size_gb, data_center, type, created_at_ms'

/** A new volume. */
export const insertVolume = `INSERT INTO network_volumes (${VOLUME_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)`

/** $1 owner, $2 volume, $3 name, $4 size; NULL to keep one. No row when it is gone or larger. */
export const updateVolume = `
  UPDATE network_volumes SET name = COALESCE($3, name), size_gb = COALESCE($4, size_gb)
  WHERE id = $2 AND owner = $1 AND size_gb <= COALESCE($4, size_gb)
  RETURNING ${VOLUME_COLUMNS}`

/** $1 owner, $2 volume. */
export const findVolume = `SELECT ${VOLUME_COLUMNS} FROM network_volumes WHERE id = $2 AND owner = $1`

/** $1 owner, $2 and $3 the end of the previous page, $4 limit, $5 kind; 'all' for both. */
export const listVolumes = `
  SELECT ${VOLUME_COLUMNS} FROM network_volumes WHERE owner = $1 AND (created_at_ms, id) > ($2, $3)
    AND $5 IN ('all', CASE WHEN data_center IS NULL THEN 'global' ELSE 'network' END)
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 owner, $2 volume. No new reference to it is possible. */
export const lockVolume = 'SELECT id FROM network_volumes WHERE id = $2 AND owner = $1 {{lock_key}}'

/** $1 volume, $2 limit. */
export const usersOfVolume = `
  SELECT endpoint_id FROM endpoint_volumes WHERE volume_id = $1 ORDER BY endpoint_id LIMIT $2`

/** $1 owner, $2 volume. */
export const deleteVolume = 'DELETE FROM network_volumes WHERE id = $2 AND owner = $1 RETURNING id'

/** $1 endpoint. */
export const dropLinks = 'DELETE FROM endpoint_volumes WHERE endpoint_id = $1'

/** $1 endpoint, $2 owner, $3 volume. Nothing for a volume that is not the owner's. */
export const addLink = `
  INSERT INTO endpoint_volumes (endpoint_id, volume_id, owner)
  SELECT $1, id, owner FROM network_volumes WHERE id = $3 AND owner = $2
  ON CONFLICT (endpoint_id, volume_id) DO NOTHING`

/** A row of `network_volumes`. */
interface VolumeRow {
  readonly id: VolumeId
  readonly owner: OwnerId
  readonly name: string
  readonly size_gb: number
  readonly data_center: string | null
  readonly type: VolumeType
  readonly created_at_ms: number
}

/** A row as a volume. */
function volumeFromRow(row: VolumeRow): Volume {
  const { id, owner, name, type } = row
  return { id, owner, name, type, sizeGb: row.size_gb, dataCenter: row.data_center, createdAtMs: row.created_at_ms }
}

/** A volume's values in the order of its columns. */
function volumeParams(volume: Volume): SqlValue[] {
  const { id, owner, name, sizeGb, dataCenter, type, createdAtMs } = volume
  return [id, owner, name, sizeGb, dataCenter, type, createdAtMs]
}

/** Limit of endpoints that are named when a volume cannot be removed. */
const NAMED = 10

/** Volumes of both kinds. */
export const volumes = {
  insert: write(function* (volume: Volume): Steps<void> {
    yield* perform(insertVolume, volumeParams(volume))
  }),

  update: write(function* (owner: OwnerId, id: VolumeId, changes: VolumeChanges): Steps<Volume | null> {
    const { name = null, sizeGb = null } = changes
    const row = yield* queryOne<VolumeRow>(updateVolume, [owner, id, name, sizeGb])
    return row === null ? null : volumeFromRow(row)
  }),

  find: read(function* (owner: OwnerId, id: VolumeId): Steps<Volume | null> {
    const row = yield* queryOne<VolumeRow>(findVolume, [owner, id])
    return row === null ? null : volumeFromRow(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice, kind?: VolumeKind): Steps<Volume[]> {
    return (yield* query<VolumeRow>(listVolumes, [owner, ...sliceParams(slice), kind ?? 'all'])).map(volumeFromRow)
  }),

  remove: write(function* (owner: OwnerId, id: VolumeId): Steps<'removed' | 'absent' | EndpointId[]> {
    yield* lock(lockVolume, [owner, id])
    if ((yield* queryOne(findVolume, [owner, id])) === null) return 'absent'
    const users = yield* query<{ endpoint_id: EndpointId }>(usersOfVolume, [id, NAMED])
    if (users.length > 0) return users.map(row => row.endpoint_id)
    yield* perform(deleteVolume, [owner, id])
    return 'removed'
  }),
} satisfies PortOperations<VolumeStore>

/** Notes which volumes an endpoint uses, so that none of them can be removed. */
export function* linkVolumes({ id, owner, networkVolumeIds }: Endpoint): Steps<void> {
  yield* perform(dropLinks, [id])
  for (const volume of networkVolumeIds) yield* perform(addLink, [id, owner, volume])
}
