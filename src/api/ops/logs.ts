import type { Caller } from '../../core/accounts/permission.ts'
import { invalidRequest } from '../../core/errors.ts'
import { parseInstant } from '../../core/instants.ts'
import { type LastEvent, readEventId } from '../../core/observing/log-cursor.ts'
import type { LogSource } from '../../services/observing/log-feed.ts'
import { type LogQuery, MAX_TAIL } from '../../services/observing/log-finder.ts'
import type { LogEvent } from '../../services/observing/log-stream.ts'
import { asEvents, asLines, streamedAnswer } from '../event-stream.ts'
import type { ApiParts } from '../parts.ts'
import type { SurfaceCall } from '../surface.ts'

const DEFAULT_TAIL = 200
const MAX_TEXT = 1_000
/** Time to follow logs after the last job has ended, in ms: workers print a little after that. */
const LINGER_MS = 2_000

const EVENTS = asEvents(logData, true)
const LINES = asLines(logData)

/**
 * The logs of an endpoint, a worker or a job: `?tail=`, `?since=`, `?source=`, `?text=`, `?follow=1`. As
 * JSON lines, or as server-sent events if the client accepts them; these resume after a `Last-Event-ID` and
 * finish with an event `end`.
 * @param held registers the request as open; its signal aborts when the caller may no longer read logs
 */
export async function logs(
  { logs, stopping }: ApiParts,
  caller: Caller,
  call: SurfaceCall,
  id: string,
  held: () => AbortSignal,
): Promise<Response> {
  const { request } = call
  const query = readQuery(call)
  const located = await logs.locate(caller.owner, id)
  const writing = request.headers.get('accept')?.includes('text/event-stream') === true ? EVENTS : LINES
  if (request.method === 'HEAD') return new Response(null, { headers: writing.headers })
  const stream = await logs.open(caller.owner, located, query)
  const opening = (id: string) => `${writing.opening(id)}${stream.note === null ? '' : writing.note(stream.note)}`
  return streamedAnswer(stream, { ...writing, opening }, [request.signal, stopping, held()])
}

function logData({ workerId, jobId, source, tsMs, line }: LogEvent): object {
  return { workerId, jobId, source, ts: new Date(tsMs).toISOString(), line }
}

function readQuery({ request, env }: SurfaceCall): LogQuery {
  const given = env.route.url.searchParams
  const failures: string[] = []
  const tail = Number(given.get('tail') ?? DEFAULT_TAIL)
  if (!Number.isInteger(tail) || tail < 0 || tail > MAX_TAIL) {
    failures.push(`"tail" must be an integer from 0 to ${MAX_TAIL}`)
  }
  const since = given.get('since')
  const sinceMs = since === null ? null : parseInstant(since)
  if (since !== null && sinceMs === null) failures.push('"since" must be a date and time such as 2026-01-31T12:00:00Z')
  const source = given.get('source')
  if (source !== null && !isSource(source)) failures.push('"source" must be container or system')
  const text = given.get('text')
  if (text !== null && text.length > MAX_TEXT) failures.push(`"text" can have at most ${MAX_TEXT} characters`)
  const after = lastEvent(request, failures)
  if (failures.length > 0) throw invalidRequest(failures)
  return {
    tail,
    sinceMs,
    after,
    source: source as LogSource | null,
    text: text === '' ? null : text,
    follow: given.get('follow') === '1',
    lingerMs: LINGER_MS,
  }
}

function isSource(text: string): text is LogSource {
  return text === 'container' || text === 'system'
}

function lastEvent(request: Request, failures: string[]): LastEvent | null {
  const text = request.headers.get('last-event-id')
  if (text === null) return null
  const event = readEventId(text)
  if (event === null) failures.push('"Last-Event-ID" must be the id of an event, or an instant')
  return event
}
