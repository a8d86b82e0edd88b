import {
  addHeld,
  type HeldJobs,
  NOTHING_HELD,
  type ObjectCounts,
  type ObjectKind,
} from '../../../core/accounts/quotas.ts'
import type { EndpointId, OwnerId, SecretId } from '../../../core/ids.ts'
import { LARGE_PART_CHARACTERS } from '../../../core/jobs/large-text.ts'
import type { PagePosition } from '../../../core/pages.ts'
import type { HeldPart, QuotaStore, SecretBytes } from '../../../ports/store/quota-store.ts'
import { countUnusedParts } from '../../tables/large-texts.ts'
import { type PortOperations, query, queryOne, read, type Steps } from '../operation.ts'

/** Statements on the resources of an account. */

/** $1 owner. Templates that belong to one endpoint alone count with it. */
export const countObjects = `
  SELECT (SELECT COUNT(*) FROM endpoints WHERE owner = $1) AS endpoints,
    (SELECT COUNT(*) FROM templates WHERE owner = $1 AND listed = 1) AS templates,
    (SELECT COUNT(*) FROM secrets WHERE owner = $1) AS secrets,
    (SELECT COUNT(*) FROM registries WHERE owner = $1) AS registries,
    (SELECT COUNT(*) FROM network_volumes WHERE owner = $1) AS volumes,
    (SELECT COUNT(*) FROM apps WHERE owner = $1) AS apps,
    (SELECT COUNT(*) FROM app_environments WHERE owner = $1) AS environments,
    (SELECT COUNT(*) FROM app_builds WHERE owner = $1) AS builds,
    (SELECT COALESCE(SUM(workers_min), 0) FROM endpoints WHERE owner = $1) AS workers_min`

/** $1 owner, $2 one secret. */
export const secretBytes = `
  SELECT COALESCE(SUM(octet_length(sealed) + COALESCE(octet_length(description), 0)), 0) AS bytes,
    COALESCE(SUM(CASE WHEN id = $2 THEN octet_length(sealed) ELSE 0 END), 0) AS sealed,
    COALESCE(SUM(CASE WHEN id = $2 THEN COALESCE(octet_length(description), 0) ELSE 0 END), 0) AS description
  FROM secrets WHERE owner = $1`

/** $1 endpoint. Requests of drafts, which wait too. */
export const heldByDrafts = `
  SELECT COUNT(*) AS requests, COALESCE(SUM(bytes), 0) AS bytes FROM batch_requests
  WHERE batch_id IN (SELECT id FROM batches WHERE endpoint_id = $1 AND finished_at_ms IS NULL)`

/** $1 endpoint. */
export const heldByDeliveries = `
  SELECT COALESCE(SUM(octet_length(payload)), 0) AS bytes FROM webhook_deliveries
  WHERE endpoint_id = $1 AND state = 'PENDING'`

/** $1 endpoint, $2 and $3 the instant and the id after which they come, $4 limit. */
export const heldByJobs = `
  SELECT status, queued_at_ms, id, input_bytes, COALESCE(output_bytes, 0) AS output_bytes,
    COALESCE((SELECT total_bytes FROM chunks WHERE job_id = jobs.id ORDER BY seq DESC LIMIT 1), 0) AS stream_bytes
  FROM jobs WHERE endpoint_id = $1 AND (queued_at_ms, id) > ($2, $3) ORDER BY queued_at_ms, id LIMIT $4`

type CountRow = Readonly<Record<ObjectKind | 'workers_min', number>>
type JobSizeRow = Readonly<Record<'queued_at_ms' | 'input_bytes' | 'output_bytes' | 'stream_bytes', number>> & {
  readonly id: string
  readonly status: string
}

/** Objects, secrets and jobs of accounts. */
export const quotas = {
  objects: read(function* (owner: OwnerId): Steps<ObjectCounts> {
    const row = yield* queryOne<CountRow>(countObjects, [owner])
    const { workers_min: workersMin, ...counts } = row!
    return { ...counts, workersMin: Number(workersMin) }
  }),

  secretBytes: read(function* (owner: OwnerId, id: SecretId | null): Steps<SecretBytes> {
    type Row = Readonly<Record<'bytes' | 'sealed' | 'description', number>>
    const row = yield* queryOne<Row>(secretBytes, [owner, id ?? ''])
    return { all: Number(row!.bytes), sealed: Number(row!.sealed), description: Number(row!.description) }
  }),

  beside: read(function* (endpointId: EndpointId): Steps<HeldJobs> {
    const drafts = yield* queryOne<{ requests: number; bytes: number }>(heldByDrafts, [endpointId])
    const deliveries = yield* queryOne<{ bytes: number }>(heldByDeliveries, [endpointId])
    const queuedBytes = Number(drafts?.bytes ?? 0)
    const storedBytes = queuedBytes + Number(deliveries?.bytes ?? 0)
    return { queuedJobs: drafts?.requests ?? 0, queuedBytes, storedBytes }
  }),

  unusedTexts: read(function* (owner: OwnerId): Steps<number> {
    const row = yield* queryOne<{ parts: number }>(countUnusedParts, [owner])
    return Number(row?.parts ?? 0) * LARGE_PART_CHARACTERS
  }),

  jobs: read(function* (endpointId: EndpointId, after: PagePosition | null, limit: number): Steps<HeldPart> {
    const start = [after?.createdAtMs ?? -1, after?.id ?? '']
    const rows = yield* query<JobSizeRow>(heldByJobs, [endpointId, ...start, limit])
    const last = rows.at(-1)
    const next = last === undefined || rows.length < limit ? null : { createdAtMs: last.queued_at_ms, id: last.id }
    return { held: rows.map(heldBy).reduce(addHeld, NOTHING_HELD), next }
  }),
} satisfies PortOperations<QuotaStore>

function heldBy({ status, input_bytes, output_bytes, stream_bytes }: JobSizeRow): HeldJobs {
  const waits = status === 'IN_QUEUE'
  const storedBytes = input_bytes + output_bytes + stream_bytes
  return { queuedJobs: waits ? 1 : 0, queuedBytes: waits ? input_bytes : 0, storedBytes }
}
