/** Statements on all that is sealed, wherever it is. */
import type { SealKind } from '../../ports/management-store.ts'

/** Where each kind is: table, what identifies a row, the sealed text, and what that is bound to. */
const PLACES: Readonly<Record<SealKind, readonly [table: string, id: string, text: string, row: string]>> = {
  secrets: ['secrets', 'id', 'sealed', "owner || '/' || name"],
  webhookKeys: ['webhook_keys', 'endpoint_id', 'sealed', 'endpoint_id'],
  registries: ['registries', 'id', 'sealed', "owner || '/' || id"],
  endpointKeys: ['api_keys', 'id', 'sealed', 'endpoint_id'],
  jobs: ['jobs', 'id', 's3_config', 'id'],
}

/** $1 id behind which to begin, $2 how many. */
export function listSeals(kind: SealKind): string {
  const [table, id, text, row] = PLACES[kind]
  return `
  SELECT ${id} AS id, ${row} AS bound_to, ${text} AS sealed FROM ${table} WHERE ${text} IS NOT NULL AND ${id} > $1 ORDER BY ${id} LIMIT $2`
}

/** $1 id, $2 the text that must still be there, $3 the new one. */
export function replaceSeal(kind: SealKind): string {
  const [table, id, text] = PLACES[kind]
  return `UPDATE ${table} SET ${text} = $3 WHERE ${id} = $1 AND ${text} = $2 RETURNING ${id}`
}
