/** Statements on templates. */

/** The columns of a template; see rows/templates.ts. */
export const TEMPLATE_COLUMNS = 'id, owner, name, listed, created_at_ms, config'

/** A new template; no row when the name is taken. */
export const insertTemplate = `
  INSERT INTO templates (${TEMPLATE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (owner, name) DO NOTHING
  RETURNING id`

/** $1 template, $2 owner, $3 to $5 its new values. No row when another template has the name. */
export const replaceTemplate = `
  UPDATE templates SET name = $3, listed = $4, config = $5
  WHERE id = $1 AND owner = $2
    AND NOT EXISTS (SELECT 1 FROM templates AS other WHERE other.owner = $2 AND other.name = $3 AND other.id <> $1)
  RETURNING id`

/** $1 owner, $2 template. */
export const findTemplate = `SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE id = $2 AND owner = $1`

/** $1 owner, $2 name. */
export const findTemplateByName = `SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE owner = $1 AND name = $2`

/** $1 owner. */
export const listTemplates = `
  SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE owner = $1 ORDER BY created_at_ms, id`

/** $1 owner, $2 template. A row when an endpoint has it. */
export const usedTemplate = `
  SELECT id FROM templates WHERE id = $2 AND owner = $1
    AND EXISTS (SELECT 1 FROM endpoints WHERE template_id = $2)`

/** $1 owner, $2 template. */
export const deleteTemplate = 'DELETE FROM templates WHERE id = $2 AND owner = $1 RETURNING id'
