import { z } from '@hono/zod-openapi'
import { AUDIT_OUTCOMES, AUDIT_SURFACES, type AuditFilter, type KeptEntry } from '../../../core/audit/entry.ts'
import { parseInstant } from '../../../core/instants.ts'
import { joinSignals } from '../../../ports/signals.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, type Rule, route } from '../route.ts'
import { DateTime, Pagination, pageLimit, pagination } from '../schemas/common.ts'

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
const AuditPage = z.object({ entries: z.array(Entry), pagination: Pagination }).openapi('AuditPage')

const Place = z.object({ sequence: Sequence, hash: Hash })

/** Result of a check of the chain. */
const AuditVerification = z
  .object({
    intact: z.boolean(),
    anchor: Place,
    head: Place,
    broken: z.object({ sequence: Sequence, problem: z.string() }).nullable(),
  })
  .openapi('AuditVerification')

const Filter = z.string().min(1).max(200).optional()

/** Filters of the audit log, the page, and its format. */
const AuditQuery = {
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

const TAG = 'Audit log'
const LINES = 'application/x-ndjson'
const FILTERS = ['account', 'key', 'operation', 'object', 'surface', 'since', 'until'] as const
type Query = Members<typeof AuditQuery>

const instants: Rule<typeof AuditQuery> = given =>
  (['since', 'until'] as const)
    .filter(name => given[name] !== undefined && parseInstant(given[name]) === null)
    .map(name => `query.${name}: must be a date and time such as 2026-01-31T12:00:00Z`)

const wholeExport: Rule<typeof AuditQuery> = (given, sent) =>
  given.format === 'jsonl' && [...FILTERS, 'cursor', 'limit'].some(name => sent.has(name))
    ? ['query.format: an export has the whole log, so it takes no filter, cursor or limit']
    : []

/** Additions to the public contract: the audit log, for the operator. */
export function auditRoutes({ auditReader, stopping }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/audit',
        operationId: 'listAuditEntries',
        tag: TAG,
        level: 'operator',
        summary:
          'Who changed what, and which secrets were used, newest first; for keys with all rights of the operator. With format=jsonl the whole log as JSON lines, oldest first',
        query: AuditQuery,
        queryRules: [instants, wholeExport],
        success: { status: 200, schema: AuditPage },
        problems: [400],
      },
      async ({ caller, query, request, held }) => {
        const asksLines = request.headers.get('accept')?.includes(LINES) === true
        if (query.format === 'jsonl' || (query.format === undefined && asksLines)) {
          const headers = { 'content-type': LINES, 'cache-control': 'no-store' }
          const parts = auditReader.all(caller)
          if (request.method === 'HEAD') return new Response(null, { headers })
          return new Response(exportLines(parts, [request.signal, stopping, held()]), { headers })
        }
        const { items, nextCursor } = await auditReader.page(caller, filterFromQuery(query), query)
        return { entries: items, pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'get',
        path: '/v2/audit/verification',
        operationId: 'verifyAuditLog',
        tag: TAG,
        level: 'operator',
        summary:
          'Whether each entry of the audit log is bound to the one before; for keys with all rights of the operator',
        success: { status: 200, schema: AuditVerification },
      },
      async ({ caller, request, held }): Promise<object> => {
        using ended = joinSignals(request.signal, stopping, held())
        const { anchor, head, broken } = await auditReader.verify(caller, ended.signal)
        return { intact: broken === null, anchor, head, broken }
      },
    ),
  ]
}

function filterFromQuery(query: Query): AuditFilter {
  const { account = null, key = null, operation = null, object = null, surface = null, since, until } = query
  const [sinceMs, untilMs] = [since, until].map(text => (text === undefined ? null : parseInstant(text)))
  return { account, key, operation, object, surface, sinceMs: sinceMs ?? null, untilMs: untilMs ?? null }
}

/** An entry for external verification: the hashed content is in it byte for byte. */
export function entryLine({ content, hash }: Pick<KeptEntry, 'content' | 'hash'>): string {
  return `{"entry":${content},"hash":"${hash}"}\n`
}

/** A part at a time, as fast as the client reads. A cut-off export has no last line, and ends with an error. */
function exportLines(
  parts: AsyncGenerator<readonly KeptEntry[]>,
  signals: readonly AbortSignal[],
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (const signal of signals) signal.throwIfAborted()
        const { value, done } = await parts.next()
        if (done === true) controller.close()
        else controller.enqueue(encoder.encode(value.map(entryLine).join('')))
      },
      async cancel() {
        await parts.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}
