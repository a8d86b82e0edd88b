import type { AuditFilter, KeptEntry } from '../../../core/audit/entry.ts'
import { parseInstant } from '../../../core/instants.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, type Rule, route } from '../route.ts'
import { AuditPage, AuditQuery, AuditVerification } from '../schemas/audit.ts'
import { pagination } from '../schemas/common.ts'

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
        const signal = AbortSignal.any([request.signal, stopping, held()])
        const { anchor, head, broken } = await auditReader.verify(caller, signal)
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
