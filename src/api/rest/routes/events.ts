import { z } from '@hono/zod-openapi'
import type { NumberedEvent } from '../../../services/observing/recent-events.ts'
import { asNamedEvents, EVENT_STREAM_HEADERS, streamedAnswer } from '../../event-stream.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { EVENT_STREAM } from '../schemas/common.ts'
import { endpointId } from './serverless.ts'

const EVENTS = asNamedEvents(({ type, atMs, endpointId, fields }: NumberedEvent) => ({
  name: type,
  data: { type, at: new Date(atMs).toISOString(), endpointId, ...fields },
}))

/** An addition to the public contract: live events of the endpoints of an account. */
export function eventRoutes({ endpoints, feed, stopping }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/events',
        operationId: 'streamEvents',
        tag: 'Events',
        level: 'read',
        summary: 'What happens to endpoints, their jobs and workers, as server-sent events',
        query: { endpoint: z.string().min(1).max(191).optional() },
        headers: { 'Last-Event-ID': z.string().min(1).max(100).optional() },
        success: EVENT_STREAM,
        problems: [400, 404],
      },
      async ({ caller, query, headers, request, held }) => {
        const only = query.endpoint === undefined ? null : endpointId(query.endpoint)
        if (only !== null) await endpoints.find(caller.owner, only)
        if (request.method === 'HEAD') return new Response(null, { headers: EVENT_STREAM_HEADERS })
        const reading = feed.open(caller.owner, { endpointId: only, after: headers['Last-Event-ID'] ?? null })
        return streamedAnswer(reading, EVENTS, [request.signal, stopping, held()])
      },
    ),
  ]
}
