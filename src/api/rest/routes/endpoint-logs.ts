import { notFound } from '../../../core/errors.ts'
import type { EndpointId, OwnerId } from '../../../core/ids.ts'
import { parseInstant } from '../../../core/instants.ts'
import { type LastEvent, readEventId } from '../../../core/observing/log-cursor.ts'
import type { LogFinder, LogScope } from '../../../services/observing/log-finder.ts'
import type { LogEvent } from '../../../services/observing/log-stream.ts'
import { asEvents, asLines, asTextLines, type EventWriting, streamedAnswer } from '../../event-stream.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, type Rule, route } from '../route.ts'
import { EVENT_STREAM, IdParam } from '../schemas/common.ts'
import { EndpointLogQuery, EndpointLogsLastEventId } from '../schemas/logs.ts'
import { endpointId } from './serverless.ts'

type Query = Members<typeof EndpointLogQuery>

/** Default number of old lines for a reader that follows. */
const DEFAULT_TAIL = 100
/** Time to follow after the end of the job, in ms: workers print a little after that. */
const LINGER_MS = 2_000

const WRITINGS: Readonly<Record<NonNullable<Query['format']>, EventWriting<LogEvent>>> = {
  events: asEvents(logData, true),
  lines: asLines(logData),
  text: asTextLines(({ tsMs, workerId, source, line }: LogEvent) =>
    [new Date(tsMs).toISOString(), workerId, source, line].join(' '),
  ),
}

const workerOrJob: Rule<typeof EndpointLogQuery> = ({ worker, job }) =>
  worker !== undefined && job !== undefined ? ['query.job: cannot be given together with worker'] : []

/**
 * An addition to the public contract: the logs of all workers of an endpoint, of one, or of
 * a job, followed or to keep.
 */
export function endpointLogRoutes({ endpoints, logs, stopping }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/serverless/{id}/logs',
        operationId: 'getEndpointLogs',
        tag: 'Serverless',
        level: 'read',
        summary:
          'What the workers of an endpoint print, or one of them, or for a job, as server-sent events; with follow=false what is kept now, as JSON lines',
        params: IdParam,
        query: EndpointLogQuery,
        queryRules: [workerOrJob],
        headers: { 'Last-Event-ID': EndpointLogsLastEventId },
        success: EVENT_STREAM,
        problems: [400, 404],
      },
      async ({ caller, params, query, headers, request, held }) => {
        const { id } = await endpoints.find(caller.owner, endpointId(params.id))
        const scope = await logScope(logs, caller.owner, id, query)
        const follow = query.follow === 'true'
        const writing = WRITINGS[query.format ?? (follow ? 'events' : 'lines')]
        if (request.method === 'HEAD') return new Response(null, { headers: writing.headers })
        const stream = await logs.open(caller.owner, scope, {
          tail: query.tail ?? DEFAULT_TAIL,
          source: query.source ?? null,
          text: query.text ?? null,
          follow,
          lingerMs: LINGER_MS,
          sinceMs: query.since === undefined ? null : parseInstant(query.since),
          after: firstEvent(query, headers['Last-Event-ID']),
        })
        const note = stream.note === null ? '' : writing.note(stream.note)
        const opening = (eventId: string) => `${writing.opening(eventId)}${note}`
        return streamedAnswer(stream, { ...writing, opening }, [request.signal, stopping, held()])
      },
    ),
  ]
}

/** A reader that does not follow and gives no tail gets all stored lines. */
function firstEvent({ follow, tail, since }: Query, lastEventId: string | undefined): LastEvent | null {
  if (lastEventId !== undefined) return readEventId(lastEventId)
  if (follow === 'true' || tail !== undefined) return null
  const sinceMs = since === undefined ? null : parseInstant(since)
  return { kind: 'instant', ms: (sinceMs ?? 0) - 1 }
}

async function logScope(logs: LogFinder, owner: OwnerId, id: EndpointId, { worker, job }: Query): Promise<LogScope> {
  if (worker !== undefined) return logs.findWorker(id, worker)
  if (job === undefined) return { kind: 'endpoint', id }
  const subject = await logs.locate(owner, job)
  if (subject.kind !== 'job' || subject.endpointId !== id) throw notFound('job', job)
  return subject
}

function logData({ workerId, jobId, source, tsMs, line }: LogEvent): object {
  return { workerId, jobId, source, ts: new Date(tsMs).toISOString(), line }
}
