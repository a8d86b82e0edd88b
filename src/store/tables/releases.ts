/** Statements and rows of releases of endpoints. */
import type { DiffEntry, KeptConfiguration, KeptRelease, PastRelease, Release } from '../../core/endpoints/release.ts'
import type { FailureStop } from '../../core/endpoints/rollout-facts.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import { MIN_JUDGED_RESULTS } from '../../core/scaling/rollout-judge.ts'
import type { SqlValue } from './statement.ts'

/** Number of results of the newest release above which they are scaled to half of it. */
const KEPT_RESULTS = 400
/** True when the results of a release become too many with $3 more. */
const isFull = `judged = 0 AND results + $3 > ${KEPT_RESULTS} AND version = (SELECT version FROM endpoints WHERE id = $1)`

/** The columns of a release in lists, without the configuration; see schema/initial/endpoints.ts. */
const LISTED_COLUMNS =
  'id, endpoint_id, version, owner, source, created_by, created_at_ms, diff, restores, image, canary'

/** A new release. */
export const insertRelease = `
  INSERT INTO releases (${LISTED_COLUMNS}, config, ready_at_ms, judged, crashes, results, failed)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, 0, 0)`

/** True when a release has worked: it is no canary, and was not stopped. @param release the name of its row */
const worked = (release: string) =>
  `${release}.ready_at_ms IS NOT NULL AND ${release}.canary IS NULL AND ${release}.stopped_for IS NULL`

/** @param endpoint its id @param more a condition */
const newest = (endpoint: string, more: string) => `COALESCE((
    SELECT MAX(working.version) FROM releases AS working
    WHERE working.endpoint_id = ${endpoint} AND ${worked('working')}${more}), 0)`

/**
 * The last release of an endpoint that has worked, which a rollout that stops falls back to.
 * @param endpoint its id
 */
const newestWorking = (endpoint: string) => newest(endpoint, '')

/** The last one of these that new releases are compared with. @param endpoint its id */
const newestGood = (endpoint: string) => newest(endpoint, ` AND working.results >= ${MIN_JUDGED_RESULTS}`)

/** $1 endpoint, $2 the newest version that is removed. */
export const deleteOldReleases = `
  DELETE FROM releases WHERE endpoint_id = $1 AND version <= $2
    AND version <> ${newestWorking('$1')} AND version <> ${newestGood('$1')}`

/**
 * $1 endpoint, $2 the newest version whose configuration may be removed, $3 limit of the characters of all
 * configurations.
 */
export const dropOldConfigurations = `
  UPDATE releases SET config = NULL WHERE endpoint_id = $1 AND version <= $2 AND config IS NOT NULL
    AND version <> ${newestWorking('$1')} AND version <> ${newestGood('$1')} AND version <= (
    SELECT MAX(version) FROM (
      SELECT version, SUM(LENGTH(config)) OVER (ORDER BY version DESC) AS characters
      FROM releases WHERE endpoint_id = $1 AND config IS NOT NULL) AS sums
    WHERE characters > $3)`

/** $1 endpoint, $2 limit. */
export const listReleases = `
  SELECT ${LISTED_COLUMNS}, CASE WHEN ${worked('releases')} THEN 1 ELSE 0 END AS has_worked
  FROM releases WHERE endpoint_id = $1 ORDER BY version DESC LIMIT $2`

/** $1 endpoint, $2 version. */
export const findRelease = `SELECT ${LISTED_COLUMNS}, config FROM releases WHERE endpoint_id = $1 AND version = $2`

/** $1 endpoint, $2 version. */
export const imageOfRelease = 'SELECT image FROM releases WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 image, $4 the present image; null without one. */
export const pinImage = `
  UPDATE releases SET image = $3 WHERE endpoint_id = $1 AND version = $2 AND image IS NOT DISTINCT FROM $4`

/** $1 endpoint, $2 version. */
export const modelsOfRelease = 'SELECT models FROM releases WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 commits by references, as JSON. */
export const setModels = 'UPDATE releases SET models = $3 WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version. */
export const suspendFailures = 'SELECT suspend_failures FROM releases WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 failures to suspend its workers, as JSON; null for none. */
export const setSuspendFailures = 'UPDATE releases SET suspend_failures = $3 WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version. */
export const gpuMemory = 'SELECT gpu_memory FROM releases WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 GPU memory that its workers needed, as JSON. */
export const setGpuMemory = 'UPDATE releases SET gpu_memory = $3 WHERE endpoint_id = $1 AND version = $2'

/** $1 endpoint, $2 version, $3 the version that it goes back to. */
export const restoreModels = `
  UPDATE releases SET models = (SELECT models FROM releases WHERE endpoint_id = $1 AND version = $3)
  WHERE endpoint_id = $1 AND version = $2`

/** $1 endpoint, $2 version, $3 now. One of its workers is ready. */
export const releaseReady = `
  UPDATE releases SET ready_at_ms = $3 WHERE endpoint_id = $1 AND version = $2 AND ready_at_ms IS NULL`

/**
 * $1 endpoint, $2 version, $3 creation of a worker of it, $4 that worker. It was not ready, and no other worker
 * shows that the release is.
 */
export const releaseNeverReady = `
  UPDATE releases SET ready_at_ms = NULL WHERE endpoint_id = $1 AND version = $2 AND ready_at_ms >= $3
    AND NOT EXISTS (SELECT 1 FROM workers WHERE endpoint_id = $1 AND version = $2 AND id <> $4
      AND ((jobs_finished > 0 AND stop_reason IS DISTINCT FROM 'failed_start') OR (ready_at_ms IS NOT NULL AND state <> 'EXITED')))`

/** $1 endpoint, $2 version. One of its workers crashed. */
export const releaseCrashed = `
  UPDATE releases SET crashes = crashes + 1 WHERE endpoint_id = $1 AND version = $2 AND ready_at_ms IS NULL`

/** A release that replaces workers at once counts as ready from its first moment, when no worker can be. */
const ROLLOUT_COLUMNS = `ready_at_ms, crashes, canary, stopped_for, stop,
  CASE WHEN ready_at_ms = created_at_ms AND judged = 0 AND version > 1 THEN 1 ELSE 0 END AS replaces_at_once`

/** $1 endpoint, $2 version. */
export const rolloutOfRelease = `SELECT ${ROLLOUT_COLUMNS} FROM releases WHERE endpoint_id = $1 AND version = $2`

/** $1 endpoint. As {@link rolloutOfRelease}, of its present version. */
export const presentRollout = `SELECT ${ROLLOUT_COLUMNS} FROM releases
  WHERE endpoint_id = $1 AND version = (SELECT version FROM endpoints WHERE id = $1)`

/**
 * $1 ids of endpoints, as a JSON list. As {@link rolloutOfRelease} and {@link workingRelease}, of their present
 * versions: those that are canaries, those of which no worker has been ready, and those that are stopped.
 */
export const openRollouts = `
  SELECT newest.endpoint_id, newest.ready_at_ms, newest.crashes, newest.canary, newest.stop,
    working.version AS working_version, working.config AS working_config
  FROM endpoints
  JOIN releases AS newest ON newest.endpoint_id = endpoints.id AND newest.version = endpoints.version
  LEFT JOIN releases AS working ON working.endpoint_id = endpoints.id AND working.version = COALESCE(newest.stopped_for, (
    SELECT MAX(older.version) FROM releases AS older
    WHERE older.endpoint_id = endpoints.id AND older.version < endpoints.version
      AND ${worked('older')} AND older.config IS NOT NULL))
  WHERE endpoints.id IN ({{id_list}})
    AND (newest.ready_at_ms IS NULL OR newest.canary IS NOT NULL OR newest.stopped_for IS NOT NULL)`

/**
 * $1 endpoint, $2 version. It is no longer a canary, and not stopped; one that was stopped is not judged again. No
 * row if it is neither, or another version is the newest.
 */
export const promoteRelease = `
  UPDATE releases SET canary = NULL, stopped_for = NULL, stop = NULL, judged = CASE WHEN stopped_for IS NULL THEN judged ELSE 0 END
  WHERE endpoint_id = $1 AND version = $2 AND (canary IS NOT NULL OR stopped_for IS NOT NULL)
    AND version = (SELECT version FROM endpoints WHERE id = $1) RETURNING version`

/** $1 endpoint, $2 version. The newest release before it that has worked. */
export const workingRelease = `
  SELECT version, config FROM releases
  WHERE endpoint_id = $1 AND version < $2 AND ${worked('releases')} AND config IS NOT NULL
  ORDER BY version DESC LIMIT 1`

/**
 * $1 endpoint, $2 version, $3 results, $4 those of them that failed. Of the newest release, once it is no longer
 * judged, only the last results weigh; the results that an older one is compared with only grow.
 */
export const addResults = `
  UPDATE releases SET
    results = CASE WHEN ${isFull} THEN ${KEPT_RESULTS / 2} ELSE results + $3 END,
    failed = CASE WHEN ${isFull} THEN CAST(((failed + $4) * ${KEPT_RESULTS / 2} + results + $3 - 1) / (results + $3) AS {{integer}}) ELSE failed + $4 END
  WHERE endpoint_id = $1 AND version = $2`

/** $1 endpoint, $2 version, $3 the version whose results it goes on from. */
export const restoreResults = `
  UPDATE releases SET (results, failed) = (SELECT results, failed FROM releases WHERE endpoint_id = $1 AND version = $3)
  WHERE endpoint_id = $1 AND version = $2`

/**
 * $1 ids of endpoints, as a JSON list. The newest releases that are judged, with the last good one of each: the
 * newest one that has worked and has results enough, else the newest one that has worked. A canary is compared with
 * its base, which runs beside it.
 */
export const judgedReleases = `
  SELECT newest.endpoint_id, newest.version, newest.ready_at_ms, newest.results, newest.failed,
    good.version AS good_version, good.results AS good_results, good.failed AS good_failed
  FROM endpoints
  JOIN releases AS newest ON newest.endpoint_id = endpoints.id AND newest.version = endpoints.version
  LEFT JOIN releases AS good ON good.endpoint_id = endpoints.id AND good.version = (
    SELECT older.version FROM releases AS older
    WHERE older.endpoint_id = endpoints.id AND older.version < endpoints.version
      AND ${worked('older')} AND older.config IS NOT NULL
    ORDER BY CASE WHEN newest.canary IS NULL AND older.results >= ${MIN_JUDGED_RESULTS} THEN 0 ELSE 1 END, older.version DESC LIMIT 1)
  WHERE endpoints.id IN ({{id_list}}) AND newest.judged = 1 AND newest.ready_at_ms IS NOT NULL`

/** $1 endpoint, $2 version. It is no longer judged. */
export const endTrial = 'UPDATE releases SET judged = 0 WHERE endpoint_id = $1 AND version = $2'

/**
 * $1 endpoint, $2 version, $3 the version that goes on, $4 the results, as JSON. No row if it is not judged, or
 * another version is the newest.
 */
export const stopRelease = `
  UPDATE releases SET judged = 0, stopped_for = $3, stop = $4 WHERE endpoint_id = $1 AND version = $2 AND judged = 1
    AND version = (SELECT version FROM endpoints WHERE id = $1) RETURNING version`

/** $1 the endpoint after which they come, $2 limit. */
export const endpointsAfter = 'SELECT id FROM endpoints WHERE id > $1 ORDER BY id LIMIT $2'

/**
 * $1 ids of endpoints, as a JSON list. Those of each endpoint's present version, of the one before, of the last one
 * that has worked, and of one that goes on instead.
 */
export const imagesInUse = `
  SELECT DISTINCT releases.image AS image FROM endpoints JOIN releases ON releases.endpoint_id = endpoints.id
  WHERE endpoints.id IN ({{id_list}}) AND releases.image IS NOT NULL
    AND (releases.version >= endpoints.version - 1 OR releases.version = ${newestWorking('endpoints.id')}
      OR releases.version = ${newestGood('endpoints.id')}
      OR releases.version = (SELECT stopped.stopped_for FROM releases AS stopped
        WHERE stopped.endpoint_id = endpoints.id AND stopped.version = endpoints.version))`

/** A row of {@link openRollouts}. */
export interface OpenRolloutRow {
  readonly endpoint_id: EndpointId
  readonly ready_at_ms: number | null
  readonly crashes: number
  readonly canary: number | null
  readonly stop: string | null
  readonly working_version: number | null
  readonly working_config: string | null
}

/** A row of {@link judgedReleases}. */
export interface JudgedRow {
  readonly endpoint_id: EndpointId
  readonly version: number
  readonly ready_at_ms: number
  readonly results: number
  readonly failed: number
  readonly good_version: number | null
  readonly good_results: number | null
  readonly good_failed: number | null
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

/** A row of {@link listReleases}. */
export interface PastReleaseRow extends ReleaseRow {
  readonly has_worked: number
}

/** A row with its configuration. */
export interface KeptReleaseRow extends ReleaseRow {
  readonly config: string | null
}

/** A row as a release. */
export function releaseFromRow(row: ReleaseRow): Release {
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

/** A row of {@link listReleases} as a release. */
export function pastReleaseFromRow(row: PastReleaseRow): PastRelease {
  return { ...releaseFromRow(row), hasWorked: Number(row.has_worked) === 1 }
}

/** A row with its configuration as a release. */
export function keptReleaseFromRow(row: KeptReleaseRow): KeptRelease {
  const { config } = row
  return { ...releaseFromRow(row), configuration: config === null ? null : (JSON.parse(config) as KeptConfiguration) }
}

/** A release's values in the order of the columns of `insertRelease`. */
export function releaseParams(release: KeptRelease, readyAtMs: number | null, isJudged: boolean): SqlValue[] {
  const { id, endpointId, version, owner, source, createdBy, createdAtMs, diff, restores, image, canary } = release
  const texts = [JSON.stringify(diff), restores, image, canary, JSON.stringify(release.configuration)] as const
  return [id, endpointId, version, owner, source, createdBy, createdAtMs, ...texts, readyAtMs, isJudged ? 1 : 0]
}

/** The failure that stopped a release, from its column; null if it was not stopped. */
export function readStop(text: string | null): FailureStop | null {
  return text === null ? null : (JSON.parse(text) as FailureStop)
}
