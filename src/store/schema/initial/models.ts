/** Other names of models: `endpoint_ids` is a JSON list of endpoints, the preferred one first. */
export const modelAliases = `CREATE TABLE model_aliases (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  endpoint_ids TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  PRIMARY KEY (owner, name)
) {{strict}}`

/**
 * The models that a worker of an endpoint said last: `version` is the release that was served then, `models` a JSON
 * list of their names.
 */
export const servedModels = `CREATE TABLE served_models (
  endpoint_id TEXT PRIMARY KEY REFERENCES endpoint_ids (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  version {{integer}} NOT NULL,
  models TEXT NOT NULL,
  said_at_ms {{integer}} NOT NULL
) {{strict}}`
