/** Other names of models: `endpoint_ids` is a JSON list of endpoints, the preferred one first. */
export const modelAliases = `CREATE TABLE model_aliases (
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  endpoint_ids TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  PRIMARY KEY (owner, name)
) {{strict}}`
