/** Statements and rows of releases of endpoints. */
import type { DiffEntry, Release } from '../../core/endpoints/release.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { SqlValue } from '../operations/operation.ts'

/** The columns of a release; see releases.ts. */
export const RELEASE_COLUMNS = 'endpoint_id, version, owner, source, created_by, created_at_ms, diff'

/** A new release. */
export const insertRelease = `INSERT INTO releases (${RELEASE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)`

/** $1 endpoint, $2 the newest version that goes. */
export const deleteOldReleases = 'DELETE FROM releases WHERE endpoint_id = $1 AND version <= $2'

/** $1 endpoint, $2 how many. */
export const listReleases = `
  SELECT ${RELEASE_COLUMNS} FROM releases WHERE endpoint_id = $1 ORDER BY version DESC LIMIT $2`

/** $1 endpoint, $2 version. */
export const imageOfRelease = 'SELECT image FROM releases WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 image, $4 what is there; null for nothing. */
export const pinImage = `
  UPDATE releases SET image = $3 WHERE endpoint_id = $1 AND version = $2 AND image IS NOT DISTINCT FROM $4`

/** Those of each endpoint's present version and of the one before. */
export const imagesInUse = `
  SELECT DISTINCT releases.image AS image FROM releases JOIN endpoints ON endpoints.id = releases.endpoint_id
  WHERE releases.image IS NOT NULL AND releases.version >= endpoints.version - 1`

/** A row of `releases`. */
export interface ReleaseRow {
  readonly endpoint_id: EndpointId
  readonly version: number
  readonly owner: OwnerId
  readonly source: 'MANUAL'
  readonly created_by: OwnerId | null
  readonly created_at_ms: number
  readonly diff: string
}

/** A row as a release. Its id is its endpoint's with the version, so that it needs no column. */
export function toRelease(row: ReleaseRow): Release {
  const { endpoint_id: endpointId, version, owner, source } = row
  return {
    id: `${endpointId}-${version}`,
    endpointId,
    owner,
    version,
    source,
    createdBy: row.created_by,
    createdAtMs: row.created_at_ms,
    diff: JSON.parse(row.diff) as DiffEntry[],
  }
}

/** A release's values in the order of its columns. */
export function ofRelease(release: Omit<Release, 'id'>): SqlValue[] {
  const { endpointId, version, owner, source, createdBy, createdAtMs, diff } = release
  return [endpointId, version, owner, source, createdBy, createdAtMs, JSON.stringify(diff)]
}
