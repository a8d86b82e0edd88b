import { z } from '@hono/zod-openapi'
import { parseInstant } from '../../../core/instants.ts'
import { readEventId } from '../../../core/observing/log-cursor.ts'
import type { LogScope } from '../../../services/observing/log-finder.ts'
import type { LogEvent } from '../../../services/observing/log-stream.ts'
import { asEvents, EVENT_STREAM_HEADERS, streamedAnswer } from '../../event-stream.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, type RouteCall, route } from '../route.ts'
import { EVENT_STREAM } from '../schemas/common.ts'
import { LastEventId, LogQuery } from '../schemas/logs.ts'
import { endpointId } from './serverless.ts'

/** Longer than the pause of some seconds that official clients treat as the end of a snapshot, in ms. */
const LINGER_MS = 15_000

const NAME = z.string().min(1).max(191)
/** The lines of a worker as events. */
const WORKER_EVENTS = asEvents(logData, false)

type LogCall = Pick<
  RouteCall<Record<never, never>, typeof LogQuery, { 'Last-Event-ID': typeof LastEventId }, Record<never, never>>,
  'caller' | 'query' | 'headers' | 'request' | 'held'
>

/** The lines of workers as server-sent events, which go on until the workers have ended. */
export async function followedLog(
  { logs, stopping }: ApiParts,
  scope: LogScope,
  { caller, query, headers, request, held }: LogCall,
): Promise<Response> {
  if (request.method === 'HEAD') return new Response(null, { headers: EVENT_STREAM_HEADERS })
  const lastEventId = headers['Last-Event-ID']
  const stream = await logs.open(caller.owner, scope, {
    tail: query.tail,
    source: query.source ?? null,
    text: null,
    follow: true,
    lingerMs: LINGER_MS,
    sinceMs: query.since === undefined ? null : parseInstant(query.since),
    after: lastEventId === undefined ? null : readEventId(lastEventId),
  })
  return streamedAnswer(stream, WORKER_EVENTS, [request.signal, stopping, held()])
}

/** Output and events of one worker, as server-sent events. */
export function workerLogRoutes(parts: ApiParts): RestRoute[] {
  const { endpoints, logs } = parts
  return [
    route(
      {
        method: 'get',
        path: '/v2/serverless/{id}/workers/{workerId}/logs',
        operationId: 'getWorkerLogs',
        tag: 'Serverless',
        level: 'read',
        summary: 'What a worker prints, and what is done with it, as server-sent events that go on until it has ended',
        params: { id: NAME, workerId: NAME },
        query: LogQuery,
        headers: { 'Last-Event-ID': LastEventId },
        success: EVENT_STREAM,
        problems: [400, 404],
      },
      async call => {
        const { caller, params } = call
        const endpoint = await endpoints.find(caller.owner, endpointId(params.id))
        const worker = await logs.findWorker(endpoint.id, params.workerId)
        return followedLog(parts, worker, call)
      },
    ),
  ]
}

function logData({ tsMs, source, line }: LogEvent): object {
  return { ts: new Date(tsMs).toISOString(), source, line }
}
