/** Statements on releases of endpoints. */

/** The columns of a release; see rows/releases.ts. */
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
