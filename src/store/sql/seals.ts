/** Statements on all that is sealed, wherever it is. */
import type { SealKind } from '../../ports/management-store.ts'

/** Where each kind is: table, what identifies a row, and the sealed text. */
const PLACES: Readonly<Record<SealKind, readonly [table: string, id: string, text: string]>> = {
  secrets: ['secrets', 'id', 'sealed'],
  webhookKeys: ['webhook_keys', 'endpoint_id', 'sealed'],
  registries: ['registries', 'id', 'sealed'],
  endpointKeys: ['api_keys', 'id', 'sealed'],
  jobs: ['jobs', 'id', 's3_config'],
}

/** $1 id behind which to begin, $2 how many. */
export function listSeals(kind: SealKind): string {
  const [table, id, text] = PLACES[kind]
  return `
  SELECT ${id} AS id, ${text} AS sealed FROM ${table} WHERE ${text} IS NOT NULL AND ${id} > $1 ORDER BY ${id} LIMIT $2`
}

/** $1 id, $2 the text that must still be there, $3 the new one. */
export function replaceSeal(kind: SealKind): string {
  const [table, id, text] = PLACES[kind]
  return `UPDATE ${table} SET ${text} = $3 WHERE ${id} = $1 AND ${text} = $2 RETURNING ${id}`
}
