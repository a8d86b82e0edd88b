import {
  addHeld,
  type HeldJobs,
  NOTHING_HELD,
  type ObjectCounts,
  type ObjectKind,
} from '../../../core/accounts/quotas.ts'
import type { EndpointId, OwnerId, SecretId } from '../../../core/ids.ts'
import type { Position } from '../../../core/pages.ts'
import type { HeldPart, QuotaStore, SecretBytes } from '../../../ports/store/quota-store.ts'
import { type OperationsOf, query, queryOne, read, type Steps } from '../operation.ts'
import * as sql from './quota-statements.ts'

type CountRow = Readonly<Record<ObjectKind | 'workers_min', number>>
type JobSizeRow = Readonly<Record<'queued_at_ms' | 'input_bytes' | 'output_bytes' | 'stream_bytes', number>> & {
  readonly id: string
  readonly status: string
}

/** What accounts have. */
export const quotas = {
  objects: read(function* (owner: OwnerId): Steps<ObjectCounts> {
    const row = yield* queryOne<CountRow>(sql.countObjects, [owner])
    const { workers_min: workersMin, ...counts } = row!
    return { ...counts, workersMin: Number(workersMin) }
  }),

  secretBytes: read(function* (owner: OwnerId, id: SecretId | null): Steps<SecretBytes> {
    type Row = Readonly<Record<'bytes' | 'sealed' | 'description', number>>
    const row = yield* queryOne<Row>(sql.secretBytes, [owner, id ?? ''])
    return { all: Number(row!.bytes), sealed: Number(row!.sealed), description: Number(row!.description) }
  }),

  beside: read(function* (endpointId: EndpointId): Steps<HeldJobs> {
    const drafts = yield* queryOne<{ requests: number; bytes: number }>(sql.heldByDrafts, [endpointId])
    const deliveries = yield* queryOne<{ bytes: number }>(sql.heldByDeliveries, [endpointId])
    const queuedBytes = Number(drafts?.bytes ?? 0)
    const storedBytes = queuedBytes + Number(deliveries?.bytes ?? 0)
    return { queuedJobs: drafts?.requests ?? 0, queuedBytes, storedBytes }
  }),

  jobs: read(function* (endpointId: EndpointId, after: Position | null, limit: number): Steps<HeldPart> {
    const from = [after?.createdAtMs ?? -1, after?.id ?? '']
    const rows = yield* query<JobSizeRow>(sql.heldByJobs, [endpointId, ...from, limit])
    const last = rows.at(-1)
    const next = last === undefined || rows.length < limit ? null : { createdAtMs: last.queued_at_ms, id: last.id }
    return { held: rows.map(heldBy).reduce(addHeld, NOTHING_HELD), next }
  }),
} satisfies OperationsOf<QuotaStore>

function heldBy({ status, input_bytes, output_bytes, stream_bytes }: JobSizeRow): HeldJobs {
  const waits = status === 'IN_QUEUE'
  const storedBytes = input_bytes + output_bytes + stream_bytes
  return { queuedJobs: waits ? 1 : 0, queuedBytes: waits ? input_bytes : 0, storedBytes }
}
