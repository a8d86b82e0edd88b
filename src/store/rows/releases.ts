import type { DiffEntry, Release } from '../../core/endpoints/release.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { SqlValue } from '../operations/operation.ts'

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
