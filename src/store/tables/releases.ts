/** Statements and rows of releases of endpoints. */
import type { DiffEntry, KeptConfiguration, KeptRelease, Release } from '../../core/endpoints/release.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { SqlValue } from '../operations/operation.ts'

/** The columns of a release in lists, without the configuration; see schema/initial/endpoints.ts. */
const LISTED_COLUMNS =
  'id, endpoint_id, version, owner, source, created_by, created_at_ms, diff, restores, image, canary'

/** A new release. */
export const insertRelease = `
  INSERT INTO releases (${LISTED_COLUMNS}, config, ready_at_ms, crashes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0)`

/** The last release of an endpoint that has worked and is no canary, which a rollout that stops falls back to. @param endpoint its id */
const newestWorking = (endpoint: string) => `COALESCE((
    SELECT MAX(working.version) FROM releases AS working
    WHERE working.endpoint_id = ${endpoint} AND working.ready_at_ms IS NOT NULL AND working.canary IS NULL), 0)`

/** $1 endpoint, $2 the newest version that goes. */
export const deleteOldReleases = `
  DELETE FROM releases WHERE endpoint_id = $1 AND version <= $2 AND version <> ${newestWorking('$1')}`

/** $1 endpoint, $2 the newest version whose configuration may go, $3 how many characters those of all releases may have. */
export const dropOldConfigurations = `
  UPDATE releases SET config = NULL WHERE endpoint_id = $1 AND version <= $2 AND config IS NOT NULL
    AND version <> ${newestWorking('$1')} AND version <= (
    SELECT MAX(version) FROM (
      SELECT version, SUM(LENGTH(config)) OVER (ORDER BY version DESC) AS characters
      FROM releases WHERE endpoint_id = $1 AND config IS NOT NULL) AS sums
    WHERE characters > $3)`

/** $1 endpoint, $2 how many. */
export const listReleases = `
  SELECT ${LISTED_COLUMNS} FROM releases WHERE endpoint_id = $1 ORDER BY version DESC LIMIT $2`

/** $1 endpoint, $2 version. */
export const findRelease = `SELECT ${LISTED_COLUMNS}, config FROM releases WHERE endpoint_id = $1 AND version = $2`

/** $1 endpoint, $2 version. */
export const imageOfRelease = 'SELECT image FROM releases WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 image, $4 what is there; null for nothing. */
export const pinImage = `
  UPDATE releases SET image = $3 WHERE endpoint_id = $1 AND version = $2 AND image IS NOT DISTINCT FROM $4`

/** $1 endpoint, $2 version. */
export const modelsOfRelease = 'SELECT models FROM releases WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 commits by references, as JSON. */
export const setModels = 'UPDATE releases SET models = $3 WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 the version that it goes back to. */
export const restoreModels = `
  UPDATE releases SET models = (SELECT models FROM releases WHERE endpoint_id = $1 AND version = $3)
  WHERE endpoint_id = $1 AND version = $2`

/** $1 endpoint, $2 version, $3 now. One of its workers is ready. */
export const releaseReady = `
  UPDATE releases SET ready_at_ms = $3 WHERE endpoint_id = $1 AND version = $2 AND ready_at_ms IS NULL`

/** $1 endpoint, $2 version. One of its workers crashed. */
export const releaseCrashed = `
  UPDATE releases SET crashes = crashes + 1 WHERE endpoint_id = $1 AND version = $2 AND ready_at_ms IS NULL`

/** $1 endpoint, $2 version. */
export const rolloutOfRelease =
  'SELECT ready_at_ms, crashes, canary FROM releases WHERE endpoint_id = $1 AND version = $2'

/**
 * $1 ids of endpoints, as a JSON list. As {@link rolloutOfRelease} and {@link workingRelease}, of their present versions: those that are canaries,
 * and those of which no worker has been ready.
 */
export const openRollouts = `
  SELECT newest.endpoint_id, newest.ready_at_ms, newest.crashes, newest.canary,
    working.version AS working_version, working.config AS working_config
  FROM endpoints
  JOIN releases AS newest ON newest.endpoint_id = endpoints.id AND newest.version = endpoints.version
  LEFT JOIN releases AS working ON working.endpoint_id = endpoints.id AND working.version = (
    SELECT MAX(older.version) FROM releases AS older
    WHERE older.endpoint_id = endpoints.id AND older.version < endpoints.version
      AND older.ready_at_ms IS NOT NULL AND older.canary IS NULL AND older.config IS NOT NULL)
  WHERE endpoints.id IN ({{id_list}}) AND (newest.ready_at_ms IS NULL OR newest.canary IS NOT NULL)`

/** $1 endpoint, $2 version. It is no canary any more; no row where it is none, or another version is the newest. */
export const promoteRelease = `
  UPDATE releases SET canary = NULL WHERE endpoint_id = $1 AND version = $2 AND canary IS NOT NULL
    AND version = (SELECT version FROM endpoints WHERE id = $1) RETURNING version`

/** $1 endpoint, $2 version. The newest release before it that has worked and is no canary. */
export const workingRelease = `
  SELECT version, config FROM releases
  WHERE endpoint_id = $1 AND version < $2 AND ready_at_ms IS NOT NULL AND canary IS NULL AND config IS NOT NULL
  ORDER BY version DESC LIMIT 1`

/** Those of each endpoint's present version, of the one before, and of the last one that has worked. */
export const imagesInUse = `
  SELECT DISTINCT releases.image AS image FROM releases JOIN endpoints ON endpoints.id = releases.endpoint_id
  WHERE releases.image IS NOT NULL
    AND (releases.version >= endpoints.version - 1 OR releases.version = ${newestWorking('endpoints.id')})`

/** A row of {@link openRollouts}. */
export interface OpenRolloutRow {
  readonly endpoint_id: EndpointId
  readonly ready_at_ms: number | null
  readonly crashes: number
  readonly canary: number | null
  readonly working_version: number | null
  readonly working_config: string | null
}

/** A row of `releases` without its configuration. */
export interface ReleaseRow {
  readonly id: string
  readonly endpoint_id: EndpointId
  readonly version: number
  readonly owner: OwnerId
  readonly source: 'MANUAL'
  readonly created_by: OwnerId | null
  readonly created_at_ms: number
  readonly diff: string
  readonly restores: number | null
  readonly image: string | null
  readonly canary: number | null
}

/** A row with its configuration. */
export interface KeptReleaseRow extends ReleaseRow {
  readonly config: string | null
}

/** A row as a release. */
export function toRelease(row: ReleaseRow): Release {
  const { id, endpoint_id: endpointId, version, owner, source, restores, image, canary } = row
  return {
    id,
    endpointId,
    owner,
    version,
    source,
    createdBy: row.created_by,
    createdAtMs: row.created_at_ms,
    diff: JSON.parse(row.diff) as DiffEntry[],
    restores,
    image,
    canary,
  }
}

/** A row with its configuration as a release. */
export function toKeptRelease(row: KeptReleaseRow): KeptRelease {
  const { config } = row
  return { ...toRelease(row), configuration: config === null ? null : (JSON.parse(config) as KeptConfiguration) }
}

/** A release's values in the order of the columns of `insertRelease`. */
export function ofRelease(release: KeptRelease, readyAtMs: number | null): SqlValue[] {
  const { id, endpointId, version, owner, source, createdBy, createdAtMs, diff, restores, image, canary } = release
  const texts = [JSON.stringify(diff), restores, image, canary, JSON.stringify(release.configuration)] as const
  return [id, endpointId, version, owner, source, createdBy, createdAtMs, ...texts, readyAtMs]
}
