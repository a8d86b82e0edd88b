import { z } from '@hono/zod-openapi'
import { AUDIT_OUTCOMES, AUDIT_SURFACES } from '../../../core/audit/entry.ts'
import { DateTime, Pagination, pageLimit } from './common.ts'

const Hash = z.string().regex(/^[\da-f]{64}$/)
const Sequence = z.int().min(0)

const Change = z.looseObject({ field: z.string() }).openapi('AuditChange', {
  description: 'A field with its values from and to; or, where it may hold a secret, that it has changed',
})

const Entry = z
  .object({
    sequence: Sequence,
    at: DateTime,
    account: z.string().nullable(),
    keyId: z.string().nullable(),
    session: z.boolean(),
    address: z.string().nullable(),
    surface: z.enum(AUDIT_SURFACES),
    operation: z.string(),
    object: z.object({ kind: z.string(), id: z.string() }).nullable(),
    changes: z.array(Change),
    detail: z.record(z.string(), z.unknown()),
    outcome: z.enum(AUDIT_OUTCOMES),
    problem: z.string().nullable(),
    requestId: z.string().nullable(),
    begun: Sequence.nullable(),
    hash: Hash,
  })
  .openapi('AuditEntry')

/** A page of the audit log. */
export const AuditPage = z.object({ entries: z.array(Entry), pagination: Pagination }).openapi('AuditPage')

const Place = z.object({ sequence: Sequence, hash: Hash })

/** Result of a check of the chain. */
export const AuditVerification = z
  .object({
    intact: z.boolean(),
    anchor: Place,
    head: Place,
    broken: z.object({ sequence: Sequence, problem: z.string() }).nullable(),
  })
  .openapi('AuditVerification')

const Filter = z.string().min(1).max(200).optional()

/** Filters of the audit log, the page, and its format. */
export const AuditQuery = {
  account: Filter,
  key: Filter,
  operation: Filter,
  object: Filter,
  surface: z.enum(AUDIT_SURFACES).optional(),
  since: DateTime.optional(),
  until: DateTime.optional(),
  cursor: z
    .string()
    .regex(/^[1-9]\d{0,14}$/, 'is not one that an earlier page has returned')
    .optional(),
  limit: pageLimit(100),
  format: z.enum(['json', 'jsonl']).optional(),
}
