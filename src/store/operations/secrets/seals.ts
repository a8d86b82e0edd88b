import { KEY_CANARY, PAYLOAD_KINDS, type PayloadKind, SEALED_MARK } from '../../../core/secrets/seals.ts'
import type { SealChange, SealedText, SealKind, SealStore } from '../../../ports/store/management-store.ts'
import { payload } from '../../tables/jobs.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Place of each kind: table, id of a row, sealed text, and the row that the text is bound to. */
const PLACES: Readonly<Record<SealKind, readonly [table: string, id: string, text: string, row: string]>> = {
  keyCanaries: ['key_canaries', 'id', 'sealed', 'id'],
  secrets: ['secrets', 'id', 'sealed', "owner || '/' || name"],
  webhookKeys: ['webhook_keys', 'endpoint_id', 'sealed', 'endpoint_id'],
  registries: ['registries', 'id', 'sealed', "owner || '/' || id"],
  alertReceivers: ['alert_receivers', 'id', 'sealed', "owner || '/' || id"],
  endpointKeys: ['api_keys', 'id', 'sealed', 'endpoint_id'],
  jobs: ['jobs', 'id', 's3_config', 'id'],
  templates: ['templates', 'id', 'config', 'owner'],
  endpoints: ['endpoints', 'id', 'config', 'owner'],
  releases: ['releases', 'id', 'config', 'owner'],
  jobInputs: ['jobs', 'id', payload('input'), 'id'],
  recordInputs: ['job_records', 'id', 'input', 'id'],
  largeTextParts: ['large_text_parts', 'id', 'text', 'id'],
  jobWebhooks: ['jobs', 'id', 'webhook', 'id'],
  draftInputs: ['batch_requests', 'id', 'input', 'id'],
  draftWebhooks: ['batch_requests', 'id', 'webhook', 'id'],
  batchWebhooks: ['batches', 'id', 'webhook', 'id'],
  deliveries: ['webhook_deliveries', 'id', 'url', 'job_id'],
}

/** Kinds that are a text with sealed ones in it. */
const WITHIN: ReadonlySet<SealKind> = new Set(['templates', 'endpoints', 'releases'])
const PAYLOADS: ReadonlySet<string> = new Set(PAYLOAD_KINDS)

/** $1 id, $2 the sealed text. Nothing happens where there is one. */
export const insertCanary = 'INSERT INTO key_canaries (id, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING'

/** $1 id. */
export const findCanary = 'SELECT sealed FROM key_canaries WHERE id = $1'

/** $1 the id before the first, $2 limit. */
export function listSeals(kind: SealKind): string {
  const [, , text] = PLACES[kind]
  if (WITHIN.has(kind)) return listWhere(kind, `${text} LIKE '%"${SEALED_MARK}%'`)
  const isSealed = `substr(${text}, 1, ${SEALED_MARK.length}) = '${SEALED_MARK}'`
  return listWhere(kind, PAYLOADS.has(kind) ? isSealed : `${text} IS NOT NULL`)
}

/** As {@link listSeals}, sealed or not. */
export function listPayloads(kind: PayloadKind): string {
  return listWhere(kind, `${PLACES[kind][2]} IS NOT NULL`)
}

function listWhere(kind: SealKind, condition: string): string {
  const [table, id, text, row] = PLACES[kind]
  return `
  SELECT ${id} AS id, ${row} AS bound_to, ${text} AS sealed FROM ${table} WHERE ${condition} AND ${id} > $1 ORDER BY ${id} LIMIT $2`
}

/** $1 id, $2 the text that must still be there, $3 the new one. */
export function replaceSeal(kind: Exclude<SealKind, 'jobInputs'>): string {
  const [table, id, text] = PLACES[kind]
  return `UPDATE ${table} SET ${text} = $3 WHERE ${id} = $1 AND ${text} = $2 RETURNING ${id}`
}

/** As {@link replaceSeal}, of an input that is beside the state of its job. */
export const replaceSmallInput = `
  UPDATE jobs SET input = $3, input_bytes = octet_length(CAST($3 AS TEXT)) WHERE id = $1 AND input = $2 RETURNING id`

/** As {@link replaceSeal}, of one that is apart. */
export const replaceLargeInput = `
  UPDATE job_payloads SET text = $3 WHERE job_id = $1 AND kind = 'input' AND text = $2 RETURNING job_id`

/** $1 job, $2 bytes of its new input. */
export const setInputBytes = 'UPDATE jobs SET input_bytes = $2 WHERE id = $1'

/** All that is sealed. */
export const seals = {
  list: read(function* (kind: SealKind, after: string, limit: number): Steps<SealedText[]> {
    return (yield* query<SealRow>(listSeals(kind), [after, limit])).map(sealedTextFromRow)
  }),

  listPayloads: read(function* (kind: PayloadKind, after: string, limit: number): Steps<SealedText[]> {
    return (yield* query<SealRow>(listPayloads(kind), [after, limit])).map(sealedTextFromRow)
  }),

  replace: write(function* (kind: SealKind, changes: readonly SealChange[]): Steps<number> {
    let count = 0
    for (const { id, previous, next } of changes) {
      if (kind === 'jobInputs') count += yield* replaceInput({ id, previous, next })
      else count += (yield* query(replaceSeal(kind), [id, previous, next])).length
    }
    return count
  }),

  keepCanary: write(function* (sealed: string): Steps<string> {
    yield* perform(insertCanary, [KEY_CANARY, sealed])
    const row = yield* queryOne<{ sealed: string }>(findCanary, [KEY_CANARY])
    return row?.sealed ?? sealed
  }),
} satisfies PortOperations<SealStore>

/** Replaces an input. Returns the number of changed rows: 0 if the input is another one by now. */
function* replaceInput({ id, previous, next }: SealChange): Steps<number> {
  if ((yield* query(replaceSmallInput, [id, previous, next])).length > 0) return 1
  if ((yield* query(replaceLargeInput, [id, previous, next])).length === 0) return 0
  yield* perform(setInputBytes, [id, Buffer.byteLength(next)])
  return 1
}

interface SealRow {
  readonly id: string
  readonly bound_to: string
  readonly sealed: string
}

function sealedTextFromRow({ id, bound_to: row, sealed }: SealRow): SealedText {
  return { id, row, sealed }
}
