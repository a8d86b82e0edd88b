import type { EndpointId } from '../../../core/ids.ts'
import type { ServedModels } from '../../../core/openai/model-names.ts'
import type { ServedModelStore } from '../../../ports/store/management-store.ts'
import { type PortOperations, perform, query, read, type Steps, writeUnflushed } from '../operation.ts'

/** $1 endpoint, $2 version, $3 names as JSON, $4 instant. Nothing for an endpoint that was deleted. */
export const saveServedModels = `
  INSERT INTO served_models (endpoint_id, owner, version, models, said_at_ms)
  SELECT id, owner, CAST($2 AS {{integer}}), $3, CAST($4 AS {{integer}}) FROM endpoints WHERE id = $1
  ON CONFLICT (endpoint_id) DO UPDATE
    SET version = excluded.version, models = excluded.models, said_at_ms = excluded.said_at_ms`

/** $1 ids, as a JSON list. */
export const servedModelsOfThese = `
  SELECT endpoint_id, version, models, said_at_ms FROM served_models WHERE endpoint_id IN ({{id_list}})`

interface ServedRow {
  readonly endpoint_id: EndpointId
  readonly version: number
  readonly models: string
  readonly said_at_ms: number
}

function servedFromRow({ endpoint_id: endpointId, version, models, said_at_ms: saidAtMs }: ServedRow): ServedModels {
  return { endpointId, version, models: JSON.parse(models) as string[], saidAtMs }
}

/** The models that workers said they serve. */
export const servedModels = {
  save: writeUnflushed(function* ({ endpointId, version, models, saidAtMs }: ServedModels): Steps<void> {
    yield* perform(saveServedModels, [endpointId, version, JSON.stringify(models), saidAtMs])
  }),

  of: read(function* (ids: readonly EndpointId[]): Steps<ServedModels[]> {
    return (yield* query<ServedRow>(servedModelsOfThese, [JSON.stringify(ids)])).map(servedFromRow)
  }),
} satisfies PortOperations<ServedModelStore>
