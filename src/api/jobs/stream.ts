import type { Context } from 'hono'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError } from '../../core/errors.ts'
import type { JobId } from '../../core/ids.ts'
import { isFinal, type Job } from '../../core/jobs/job.ts'
import { jobTimes } from '../../core/jobs/job-view.ts'
import type { StreamAnswer } from '../../services/jobs/streams.ts'
import type { ApiParts } from '../parts.ts'
import { jsonText, type SurfaceEnv } from '../surface.ts'

/** Length of a stream's long poll in ms. Shorter than the 10 s after which the Python client gives up. */
export const STREAM_HOLD_MS = 8_000

/** One stream request. */
export interface StreamRequest {
  readonly jobId: JobId
  /** Length of the long poll in ms. */
  readonly holdMs: number
  /** Aborts when the caller may no longer read the stream; its reason is the error. */
  readonly ended: AbortSignal
}

type Call = Context<{ Bindings: SurfaceEnv }>

/**
 * `/stream/{job_id}` in its three shapes: an object with the chunks in `stream`, which every client reads; the bare
 * array of the specification for a request whose Accept is exactly `application/json`; and server-sent events.
 */
export async function stream(
  parts: ApiParts,
  call: Call,
  endpoint: Endpoint,
  request: StreamRequest,
): Promise<Response> {
  const { jobId, holdMs, ended } = request
  const accept = call.req.header('accept')?.trim() ?? ''
  if (accept.split(',').some(type => type.trim().startsWith('text/event-stream'))) {
    return eventStream(parts, call, endpoint, request)
  }
  const shape = readShape(call, accept)
  const answer = await parts.streams.next(endpoint.id, jobId, holdMs, [call.req.raw.signal, parts.stopping, ended])
  if (ended.aborted) {
    answer.settle(false)
    throw ended.reason
  }
  call.env.delivery.onSettled(answer.settle)
  const chunks = ['[', ...answer.chunks.flatMap((chunk, index) => (index === 0 ? [chunk] : [',', chunk])), ']']
  if (shape === 'array') return jsonText(chunks)
  const head = `{"id":${JSON.stringify(jobId)},"status":${JSON.stringify(answer.status)},"stream":`
  return jsonText([head, ...chunks, '}'])
}

function readShape(call: Call, accept: string): 'array' | 'envelope' {
  const format = call.req.query('format')
  if (format !== undefined && format !== 'array' && format !== 'envelope') {
    throw new AppError('invalid', '"format" must be array or envelope')
  }
  return format ?? (accept === 'application/json' ? 'array' : 'envelope')
}

/** One event per chunk, `restart` when another attempt starts over, and a last event `status` with the final job. */
async function eventStream(
  parts: ApiParts,
  call: Call,
  endpoint: Endpoint,
  { jobId, ended }: StreamRequest,
): Promise<Response> {
  const gone = new AbortController()
  const signals = [call.req.raw.signal, parts.stopping, ended, gone.signal]
  const next = (known: Job | null) => parts.streams.next(endpoint.id, jobId, STREAM_HOLD_MS, signals, known)
  let answer: StreamAnswer | null = await next(null)
  let known = answer.job
  let attempt = 0
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // A pull means that the previous part was sent.
        const current = answer ?? (await next(known))
        answer = null
        known = current.job
        if (signals.some(signal => signal.aborted)) {
          current.settle(false)
          controller.close()
          return
        }
        controller.enqueue(encoder.encode(eventsText(current, attempt, parts.ports.clock.now())))
        if (current.chunks.length > 0) attempt = current.attempt
        current.settle(true)
        if (isFinal(current.status)) controller.close()
      },
      cancel() {
        gone.abort()
      },
    },
    { highWaterMark: 0 },
  )
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  }
  return new Response(body, { headers })
}

function eventsText(answer: StreamAnswer, attemptBefore: number, nowMs: number): string {
  const restarted = answer.chunks.length > 0 && attemptBefore > 0 && answer.attempt !== attemptBefore
  const restart = restarted ? `event: restart\ndata: {"attempt":${answer.attempt}}\n\n` : ''
  const chunks = answer.chunks.map(chunk => `data: ${chunk.replaceAll(/\r?\n|\r/g, ' ')}\n\n`).join('')
  if (isFinal(answer.status)) return restart + chunks + endEvent(answer, nowMs)
  return restart + chunks || ': waiting\n\n'
}

function endEvent({ job, status }: StreamAnswer, nowMs: number): string {
  const { delayMs, executionMs } = jobTimes(job, nowMs)
  const error = job.error === null ? {} : { error: job.error }
  const end = {
    id: job.id,
    status,
    delayTime: delayMs,
    executionTime: executionMs,
    workerId: job.workerId ?? '',
    ...error,
  }
  return `event: status\ndata: ${JSON.stringify(end)}\n\n`
}
