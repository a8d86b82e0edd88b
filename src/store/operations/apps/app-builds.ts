import type { ArtifactUpload, DeployedBuild } from '../../../core/apps/app.ts'
import type { AppId, ArtifactKey, BuildId, EnvironmentId, OwnerId } from '../../../core/ids.ts'
import type { AppBuildStore } from '../../../ports/store/app-store.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** The columns of a build without its manifest; see apps.ts of the schema. */
const BUILD_COLUMNS = 'id, app_id, owner, artifact, bytes, unpacked_bytes, created_at_ms'
const UPLOAD_COLUMNS = 'artifact, app_id, owner, bytes, token_hash, created_at_ms, expires_at_ms'

/** A new upload. */
export const insertUpload = `INSERT INTO app_uploads (${UPLOAD_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)`

/** $1 artifact. */
export const findUpload = `SELECT ${UPLOAD_COLUMNS} FROM app_uploads WHERE artifact = $1`

/** $1 now, $2 limit. */
export const uploadsOver = `
  SELECT ${UPLOAD_COLUMNS} FROM app_uploads WHERE expires_at_ms <= $1 ORDER BY expires_at_ms, artifact LIMIT $2`

/** $1 artifact. */
export const deleteUpload = 'DELETE FROM app_uploads WHERE artifact = $1 RETURNING artifact'

/** A new build. */
export const insertBuild = `
  INSERT INTO app_builds (${BUILD_COLUMNS}, manifest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

/** $1 owner, $2 build. */
export const findBuild = `SELECT ${BUILD_COLUMNS} FROM app_builds WHERE id = $2 AND owner = $1`

/** $1 owner, $2 build. */
export const findManifest = 'SELECT manifest FROM app_builds WHERE id = $2 AND owner = $1'

/** $1 owner, $2 build, $3 manifest. */
export const updateManifest = 'UPDATE app_builds SET manifest = $3 WHERE id = $2 AND owner = $1 RETURNING id'

/** $1 owner, $2 app, $3 limit. */
export const listBuilds = `
  SELECT ${BUILD_COLUMNS} FROM app_builds WHERE app_id = $2 AND owner = $1
  ORDER BY created_at_ms DESC, id DESC LIMIT $3`

/** $1 owner, $2 environment, $3 build. */
export const activateBuild = `
  UPDATE app_environments SET active_build_id = $3
  WHERE id = $2 AND owner = $1 AND EXISTS (
    SELECT 1 FROM app_builds WHERE id = $3 AND app_id = app_environments.app_id AND owner = $1)
  RETURNING id`

/** Builds that an environment has active. */
export const activeBuilds = `
  SELECT DISTINCT active_build_id AS id FROM app_environments WHERE active_build_id IS NOT NULL`

/** $1 the build after which they come, $2 limit. */
export const allBuilds = `SELECT ${BUILD_COLUMNS} FROM app_builds WHERE id > $1 ORDER BY id LIMIT $2`

/** $1 build. */
export const deleteBuild = `
  DELETE FROM app_builds WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM app_environments WHERE active_build_id = $1)
  RETURNING id`

/** $1 artifact. */
export const findArtifact = `
  SELECT artifact FROM app_builds WHERE artifact = $1
  UNION ALL SELECT artifact FROM app_uploads WHERE artifact = $1`

/** $1 owner. */
export const artifactBytes = `
  SELECT COALESCE((SELECT SUM(bytes) FROM app_builds WHERE owner = $1), 0)
    + COALESCE((SELECT SUM(bytes) FROM app_uploads WHERE owner = $1), 0) AS bytes`

interface BuildRow {
  readonly id: BuildId
  readonly app_id: AppId
  readonly owner: OwnerId
  readonly artifact: ArtifactKey
  readonly bytes: number
  readonly unpacked_bytes: number
  readonly created_at_ms: number
}

interface UploadRow {
  readonly artifact: ArtifactKey
  readonly app_id: AppId
  readonly owner: OwnerId
  readonly bytes: number
  readonly token_hash: string
  readonly created_at_ms: number
  readonly expires_at_ms: number
}

function buildFromRow(row: BuildRow): DeployedBuild {
  const { id, owner, artifact, bytes } = row
  const sizes = { bytes, unpackedBytes: row.unpacked_bytes }
  return { id, owner, appId: row.app_id, artifact, ...sizes, createdAtMs: row.created_at_ms }
}

function uploadFromRow(row: UploadRow): ArtifactUpload {
  const { owner, bytes } = row
  const times = { createdAtMs: row.created_at_ms, expiresAtMs: row.expires_at_ms }
  return { key: row.artifact, owner, appId: row.app_id, bytes, tokenHash: row.token_hash, ...times }
}

/** Builds of apps, and the uploads that become builds. */
export const appBuilds = {
  insertUpload: write(function* (upload: ArtifactUpload): Steps<void> {
    const { key, appId, owner, bytes, tokenHash, createdAtMs, expiresAtMs } = upload
    yield* perform(insertUpload, [key, appId, owner, bytes, tokenHash, createdAtMs, expiresAtMs])
  }),

  findUpload: read(function* (key: ArtifactKey): Steps<ArtifactUpload | null> {
    const row = yield* queryOne<UploadRow>(findUpload, [key])
    return row === null ? null : uploadFromRow(row)
  }),

  uploadsOver: read(function* (nowMs: number, limit: number): Steps<ArtifactUpload[]> {
    return (yield* query<UploadRow>(uploadsOver, [nowMs, limit])).map(uploadFromRow)
  }),

  removeUpload: write(function* (key: ArtifactKey): Steps<void> {
    yield* perform(deleteUpload, [key])
  }),

  insert: write(function* (build: DeployedBuild, manifest: string): Steps<boolean> {
    const { id, appId, owner, artifact, bytes, unpackedBytes, createdAtMs } = build
    if ((yield* query(deleteUpload, [artifact])).length === 0) return false
    yield* perform(insertBuild, [id, appId, owner, artifact, bytes, unpackedBytes, createdAtMs, manifest])
    return true
  }),

  find: read(function* (owner: OwnerId, id: BuildId): Steps<DeployedBuild | null> {
    const row = yield* queryOne<BuildRow>(findBuild, [owner, id])
    return row === null ? null : buildFromRow(row)
  }),

  manifest: read(function* (owner: OwnerId, id: BuildId): Steps<string | null> {
    return (yield* queryOne<{ manifest: string }>(findManifest, [owner, id]))?.manifest ?? null
  }),

  setManifest: write(function* (owner: OwnerId, id: BuildId, manifest: string): Steps<boolean> {
    return (yield* query(updateManifest, [owner, id, manifest])).length > 0
  }),

  list: read(function* (owner: OwnerId, appId: AppId, limit: number): Steps<DeployedBuild[]> {
    return (yield* query<BuildRow>(listBuilds, [owner, appId, limit])).map(buildFromRow)
  }),

  activate: write(function* (owner: OwnerId, environmentId: EnvironmentId, id: BuildId): Steps<boolean> {
    return (yield* query(activateBuild, [owner, environmentId, id])).length > 0
  }),

  active: read(function* (): Steps<BuildId[]> {
    return (yield* query<{ id: BuildId }>(activeBuilds)).map(row => row.id)
  }),

  all: read(function* (after: BuildId | null, limit: number): Steps<DeployedBuild[]> {
    return (yield* query<BuildRow>(allBuilds, [after ?? '', limit])).map(buildFromRow)
  }),

  remove: write(function* (id: BuildId): Steps<boolean> {
    return (yield* query(deleteBuild, [id])).length > 0
  }),

  hasArtifact: read(function* (key: ArtifactKey): Steps<boolean> {
    return (yield* query(findArtifact, [key])).length > 0
  }),

  bytes: read(function* (owner: OwnerId): Steps<number> {
    return Number((yield* queryOne<{ bytes: number }>(artifactBytes, [owner]))?.bytes ?? 0)
  }),
} satisfies PortOperations<AppBuildStore>
