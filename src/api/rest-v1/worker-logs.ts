import { z } from '@hono/zod-openapi'
import { parseInstant } from '../../core/instants.ts'
import type { LogEvent, LogStream } from '../../services/observing/log-stream.ts'
import { asEvents, EVENT_STREAM_HEADERS, streamedAnswer } from '../event-stream.ts'
import type { ApiParts } from '../parts.ts'
import { type RestRoute, route } from '../rest/route.ts'
import { podLogs } from '../rest/routes/pods.ts'
import { EVENT_STREAM } from '../rest/schemas/common.ts'
import { LogQuery } from '../rest/schemas/logs.ts'

/** Maximum characters of the lines of one response, the newest. */
const MAX_CHARACTERS = 1_048_576
/** Time that a stream stays open after the last line of an ended worker, in ms. */
const LINGER_MS = 15_000

const Id = z.string().min(1).max(191)
const Query = {
  type: z.enum(['all', 'container', 'system']).default('all'),
  stream: z.enum(['true', 'false']).default('false'),
  tail: LogQuery.tail.removeDefault().optional(),
  since: LogQuery.since,
}
const EVENTS = asEvents(
  ({ tsMs, source, line }: LogEvent) => ({ ts: new Date(tsMs).toISOString(), source, line }),
  false,
)

/**
 * The logs of a worker at the path of Flash and `rp logs`: at RunPod it is on a host of its own (`RUNPOD_HAPI_URL`).
 */
export function workerLogRoutes(parts: ApiParts): RestRoute[] {
  const { logs, stopping } = parts
  /** @param path of a worker; or of a task, whose id a client pastes in as it is */
  const logRoute = (path: string) =>
    route(
      {
        method: 'get',
        path: `/v1${path}`,
        operationId: `v1 get ${path}`,
        tag: 'v1',
        summary: '',
        level: 'read',
        params: { id: Id, host: Id.optional() },
        query: Query,
        success: EVENT_STREAM,
      },
      async ({ caller, params, query, request, held }) => {
        const worker = await podLogs(parts, caller, params.id)
        const isFollowed = query.stream === 'true'
        if (request.method === 'HEAD') {
          return new Response(null, isFollowed ? { headers: EVENT_STREAM_HEADERS } : {})
        }
        const stream = await logs.open(caller.owner, worker, {
          tail: query.tail ?? (isFollowed ? 100 : 1_000),
          source: query.type === 'all' ? null : query.type,
          text: null,
          follow: isFollowed,
          lingerMs: LINGER_MS,
          sinceMs: query.since === undefined ? null : parseInstant(query.since),
          after: null,
        })
        if (isFollowed) return streamedAnswer(stream, EVENTS, [request.signal, stopping, held()])
        return Response.json(await linesBySource(stream))
      },
    )
  return ['/pod/{id}/logs', '/pod/{host}/tasks/{id}/logs'].map(logRoute)
}

/**
 * All lines of a stream that ends, each after its time, by their sources; the newest within {@link MAX_CHARACTERS}.
 */
async function linesBySource(stream: LogStream): Promise<Record<'container' | 'system', string[]>> {
  const kept: { readonly source: string; readonly text: string }[] = []
  let characters = 0
  try {
    for (let batch = await stream.next(0); batch !== null; batch = await stream.next(0)) {
      for (const { tsMs, source, line } of batch.events) {
        const text = `${new Date(tsMs).toISOString()} ${line}`
        kept.push({ source, text })
        characters += text.length
      }
      while (characters > MAX_CHARACTERS) characters -= kept.shift()!.text.length
    }
  } finally {
    stream.close()
  }
  const of = (wanted: string) => kept.flatMap(({ source, text }) => (source === wanted ? [text] : []))
  return { container: of('container'), system: of('system') }
}
