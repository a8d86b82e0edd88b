import type { AppEnvironment, AppTarget, DeployedApp, EnvironmentEndpoint } from '../../../core/apps/app.ts'
import type { Endpoint } from '../../../core/endpoints/endpoint.ts'
import { AppError } from '../../../core/errors.ts'
import type { AppId, BuildId, EndpointId, EnvironmentId, OwnerId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { AppStore } from '../../../ports/store/app-store.ts'
import { sliceParams } from '../../tables/statement.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** The columns of an app; see apps.ts of the schema. */
const APP_COLUMNS = 'id, owner, name, created_at_ms'
const ENVIRONMENT_COLUMNS = 'id, app_id, owner, name, active_build_id, created_at_ms'

/** A new app; no row when the name is taken. */
export const insertApp = `
  INSERT INTO apps (${APP_COLUMNS}) VALUES ($1, $2, $3, $4) ON CONFLICT (owner, name) DO NOTHING RETURNING id`

/** $1 owner, $2 app. */
export const findApp = `SELECT ${APP_COLUMNS} FROM apps WHERE id = $2 AND owner = $1`

/** $1 owner, $2 name. */
export const findAppByName = `SELECT ${APP_COLUMNS} FROM apps WHERE owner = $1 AND name = $2`

/** $1 owner, $2 and $3 the end of the previous page, $4 limit. */
export const listApps = `
  SELECT ${APP_COLUMNS} FROM apps WHERE owner = $1 AND (created_at_ms, id) > ($2, $3)
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 owner, $2 app. Nothing that refers to it can be added until the operation ends. */
export const lockApp = 'SELECT id FROM apps WHERE id = $2 AND owner = $1 {{lock_key}}'

/** $1 app. */
export const deleteApp = 'DELETE FROM apps WHERE id = $1'

/** A new environment; no row when the name is taken. */
export const insertEnvironment = `
  INSERT INTO app_environments (${ENVIRONMENT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (app_id, name) DO NOTHING RETURNING id`

/** $1 owner, $2 environment. */
export const findEnvironment = `SELECT ${ENVIRONMENT_COLUMNS} FROM app_environments WHERE id = $2 AND owner = $1`

/** $1 owner, $2 app, $3 name. */
export const findEnvironmentByName = `
  SELECT ${ENVIRONMENT_COLUMNS} FROM app_environments WHERE app_id = $2 AND name = $3 AND owner = $1`

/** $1 owner, $2 limit. */
export const environmentsOfOwner = `
  SELECT ${ENVIRONMENT_COLUMNS} FROM app_environments WHERE owner = $1 ORDER BY created_at_ms, id LIMIT $2`

/** $1 owner, $2 app, $3 limit. */
export const environmentsOfApp = `
  SELECT ${ENVIRONMENT_COLUMNS} FROM app_environments WHERE app_id = $2 AND owner = $1
  ORDER BY created_at_ms, id LIMIT $3`

/** $1 owner, $2 environment. No endpoint can be added to it until the operation ends. */
export const lockEnvironment = 'SELECT id FROM app_environments WHERE id = $2 AND owner = $1 {{lock_key}}'

/** $1 environment. */
export const deleteEnvironment = 'DELETE FROM app_environments WHERE id = $1'

/** $1 owner, $2 environment, $3 limit. */
export const endpointsOfEnvironment = `
  SELECT environment_id, endpoint_id, name FROM app_endpoints WHERE environment_id = $2 AND owner = $1
  ORDER BY name LIMIT $3`

/** $1 owner, $2 limit. */
export const appEndpointsOfOwner = `
  SELECT environment_id, endpoint_id, name FROM app_endpoints WHERE environment_id IN (
    SELECT id FROM app_environments WHERE owner = $1)
  ORDER BY name, endpoint_id LIMIT $2`

/** $1 owner, $2 app, $3 environment, $4 name of the endpoint or its id. The name first. */
export const findTarget = `
  SELECT e.endpoint_id FROM apps a
    JOIN app_environments v ON v.app_id = a.id AND v.name = $3
    JOIN app_endpoints e ON e.environment_id = v.id AND (e.name = $4 OR e.endpoint_id = $4)
  WHERE a.owner = $1 AND a.name = $2
  ORDER BY CASE WHEN e.name = $4 THEN 0 ELSE 1 END LIMIT 1`

/** $1 endpoint. */
export const dropPlace = 'DELETE FROM app_endpoints WHERE endpoint_id = $1'

/**
 * $1 endpoint, $2 owner, $3 environment, $4 name. No row when the name is taken or the environment is not the owner's.
 */
export const addPlace = `
  INSERT INTO app_endpoints (endpoint_id, environment_id, owner, name)
  SELECT $1, id, owner, $4 FROM app_environments WHERE id = $3 AND owner = $2
  ON CONFLICT (environment_id, name) DO NOTHING RETURNING endpoint_id`

/** Limit of a list that is read as a whole. */
const MOST = 10_000
/** Limit of the names in a refusal. */
const NAMED = 10

interface AppRow {
  readonly id: AppId
  readonly owner: OwnerId
  readonly name: string
  readonly created_at_ms: number
}

interface EnvironmentRow {
  readonly id: EnvironmentId
  readonly app_id: AppId
  readonly owner: OwnerId
  readonly name: string
  readonly active_build_id: BuildId | null
  readonly created_at_ms: number
}

interface PlaceRow {
  readonly environment_id: EnvironmentId
  readonly endpoint_id: EndpointId
  readonly name: string
}

function appFromRow({ id, owner, name, created_at_ms: createdAtMs }: AppRow): DeployedApp {
  return { id, owner, name, createdAtMs }
}

function environmentFromRow(row: EnvironmentRow): AppEnvironment {
  const { id, owner, name } = row
  return { id, owner, appId: row.app_id, name, activeBuildId: row.active_build_id, createdAtMs: row.created_at_ms }
}

/** Apps and their environments. */
export const apps = {
  insert: write(function* ({ id, owner, name, createdAtMs }: DeployedApp): Steps<boolean> {
    return (yield* query(insertApp, [id, owner, name, createdAtMs])).length > 0
  }),

  find: read(function* (owner: OwnerId, id: AppId): Steps<DeployedApp | null> {
    const row = yield* queryOne<AppRow>(findApp, [owner, id])
    return row === null ? null : appFromRow(row)
  }),

  findByName: read(function* (owner: OwnerId, name: string): Steps<DeployedApp | null> {
    const row = yield* queryOne<AppRow>(findAppByName, [owner, name])
    return row === null ? null : appFromRow(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<DeployedApp[]> {
    return (yield* query<AppRow>(listApps, [owner, ...sliceParams(slice)])).map(appFromRow)
  }),

  remove: write(function* (owner: OwnerId, id: AppId): Steps<'removed' | 'absent' | string[]> {
    yield* lock(lockApp, [owner, id])
    if ((yield* queryOne(findApp, [owner, id])) === null) return 'absent'
    const environments = yield* query<EnvironmentRow>(environmentsOfApp, [owner, id, NAMED])
    if (environments.length > 0) return environments.map(({ name }) => name)
    yield* perform(deleteApp, [id])
    return 'removed'
  }),

  insertEnvironment: write(function* (environment: AppEnvironment): Steps<'added' | 'taken' | 'absent'> {
    const { id, owner, appId, name, activeBuildId, createdAtMs } = environment
    yield* lock(lockApp, [owner, appId])
    if ((yield* queryOne(findApp, [owner, appId])) === null) return 'absent'
    const rows = yield* query(insertEnvironment, [id, appId, owner, name, activeBuildId, createdAtMs])
    return rows.length > 0 ? 'added' : 'taken'
  }),

  findEnvironment: read(function* (owner: OwnerId, id: EnvironmentId): Steps<AppEnvironment | null> {
    const row = yield* queryOne<EnvironmentRow>(findEnvironment, [owner, id])
    return row === null ? null : environmentFromRow(row)
  }),

  findEnvironmentByName: read(function* (owner: OwnerId, appId: AppId, name: string): Steps<AppEnvironment | null> {
    const row = yield* queryOne<EnvironmentRow>(findEnvironmentByName, [owner, appId, name])
    return row === null ? null : environmentFromRow(row)
  }),

  environments: read(function* (owner: OwnerId, appId: AppId | null): Steps<AppEnvironment[]> {
    const rows = yield* appId === null
      ? query<EnvironmentRow>(environmentsOfOwner, [owner, MOST])
      : query<EnvironmentRow>(environmentsOfApp, [owner, appId, MOST])
    return rows.map(environmentFromRow)
  }),

  endpoints: read(function* (owner: OwnerId, environmentId: EnvironmentId | null): Steps<EnvironmentEndpoint[]> {
    const rows = yield* environmentId === null
      ? query<PlaceRow>(appEndpointsOfOwner, [owner, MOST])
      : query<PlaceRow>(endpointsOfEnvironment, [owner, environmentId, MOST])
    return rows.map(row => ({ environmentId: row.environment_id, id: row.endpoint_id, name: row.name }))
  }),

  removeEnvironment: write(function* (owner: OwnerId, id: EnvironmentId): Steps<'removed' | 'absent' | EndpointId[]> {
    yield* lock(lockEnvironment, [owner, id])
    if ((yield* queryOne(findEnvironment, [owner, id])) === null) return 'absent'
    const places = yield* query<PlaceRow>(endpointsOfEnvironment, [owner, id, NAMED])
    if (places.length > 0) return places.map(row => row.endpoint_id)
    yield* perform(deleteEnvironment, [id])
    return 'removed'
  }),

  target: read(function* (owner: OwnerId, { app, environment, endpoint }: AppTarget): Steps<EndpointId | null> {
    const row = yield* queryOne<PlaceRow>(findTarget, [owner, app, environment, endpoint])
    return row?.endpoint_id ?? null
  }),
} satisfies PortOperations<AppStore>

/**
 * Notes the place of an endpoint in its environment. An environment that does not exist is left alone: endpoints of
 * older servers may name one.
 * @throws AppError `conflict` when another endpoint of the environment has its name
 */
export function* placeInEnvironment(
  { id, owner, name, flashEnvironmentId }: Endpoint,
  previous: Endpoint | null,
): Steps<void> {
  if (previous?.name === name && previous.flashEnvironmentId === flashEnvironmentId) return
  if (previous !== null && previous.flashEnvironmentId !== null) yield* perform(dropPlace, [id])
  if (flashEnvironmentId === null) return
  if ((yield* query(addPlace, [id, owner, flashEnvironmentId, name])).length > 0) return
  if ((yield* queryOne(findEnvironment, [owner, flashEnvironmentId])) === null) return
  throw new AppError('conflict', `environment ${flashEnvironmentId} already has an endpoint named '${name}'`)
}
