import type { Caller } from '../../core/accounts/permission.ts'
import type { Body } from '../../core/bodies/body-readings.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, toAppError } from '../../core/errors.ts'
import type { Job } from '../../core/jobs/job.ts'
import { JOB_TIMES } from '../../core/jobs/retention.ts'
import { readTraceparent } from '../../core/jobs/trace-context.ts'
import { KeyLimitError, requireWithin } from '../../core/key-limits.ts'
import { errorForm } from '../../core/openai/error-form.ts'
import { inForm, openAiRefusal, readOpenAiCall } from '../../core/openai/openai.ts'
import { reportsTokens, type TokenUsage } from '../../core/openai/token-usage.ts'
import type { ApiParts } from '../parts.ts'
import { heldFor, refusalHeaders, reportFailure, type SurfaceCall } from '../surface.ts'
import { OpenaiExchange, respond } from './exchange.ts'

/** A request that is a job now. */
export interface SubmittedCall {
  readonly job: Job
  /** True if the client wants server-sent events. */
  readonly stream: boolean
  /** The path after `/openai`. */
  readonly route: string
  /** Fields about the limits of the caller's key, names and values in turn. */
  readonly limits: readonly string[]
  /** True if the event of usage of its stream is for the server alone. */
  readonly hidesUsage: boolean
  /** The model in the request that decides about the right to it; null at the address of an endpoint. */
  readonly model: string | null
}

/**
 * Submits a request as a job of an endpoint.
 * @param route the path after `/openai`
 * @throws AppError `invalid` for a body that is not JSON, KeyLimitError, and as the submission of jobs
 */
export async function submitCall(
  parts: ApiParts,
  { request }: SurfaceCall,
  endpoint: Endpoint,
  {
    route,
    body,
    caller,
    hidesUsage = false,
    model = null,
  }: {
    readonly route: string
    readonly body: Body
    readonly caller: Caller
    readonly hidesUsage?: boolean
    readonly model?: string | null
  },
): Promise<SubmittedCall> {
  const call =
    typeof body === 'string'
      ? readOpenAiCall(route, body)
      : await parts.ports.bodies.read(endpoint.owner, 'openAiCall', body, route)
  if (parts.stopping.aborted) throw new AppError('unavailable', 'the server is stopping')
  // A client that reads a long stream slowly gets more time to receive its end.
  const kept = call.stream ? { askedWaitMs: JOB_TIMES.waitMs.max } : {}
  const isLimited = caller.limits !== undefined && reportsTokens(request.method, route)
  const limits = isLimited ? requireWithin(await parts.access.keyLimits.decide(caller)) : []
  const traceparent = readTraceparent(request.headers.get('traceparent'))
  const job = await parts.jobs.submit(endpoint, call.submission, { kind: 'runsync', traceparent, ...kept })
  return { job, stream: call.stream, route, limits, hidesUsage, model }
}

/**
 * The response to a request that is a job, once its worker has answered or begun to.
 * @param waitsFor cause for which a stream waits, whose head is sent at once then; null where a worker is ready
 */
export async function answerOfJob(
  parts: ApiParts,
  call: SurfaceCall,
  caller: Caller,
  { job, stream, route, limits, hidesUsage, model }: SubmittedCall,
  waitsFor: string | null = null,
): Promise<Response> {
  const { owner, endpointId } = job
  const requireRight = (whose: Caller) => parts.access.requireModel(whose, endpointId, model)
  const ended = heldFor(parts.access, call.env, caller, requireRight)
  const onTokens = reportsTokens(call.request.method, route)
    ? (usage: TokenUsage | null) => parts.ports.emit('tokens.used', { owner, endpointId, keyId: caller.keyId, usage })
    : null
  const exchange = new OpenaiExchange(parts, job, call, ended, { onTokens, hidesUsage, form: errorForm(route) })
  try {
    const begun = stream && waitsFor !== null ? exchange.early(waitsFor) : stream ? exchange.stream() : exchange.whole()
    const response = await begun
    for (let at = 0; at + 1 < limits.length; at += 2) response.headers.set(limits[at]!, limits[at + 1]!)
    return response
  } catch (error) {
    // Cancel the job: no client would receive its result.
    await exchange.cancelJob()
    return refuse(parts, call, error, exchange.headers)
  }
}

/** The response for an error, in the form of OpenAI's API, or of that of Anthropic's for its operations. */
export function refuse(
  parts: ApiParts,
  call: SurfaceCall,
  thrown: unknown,
  headers: Readonly<Record<string, string>> = {},
): Response {
  reportFailure(parts.ports.emit, 'openai', call, thrown)
  const error = toAppError(thrown)
  const limits = error instanceof KeyLimitError ? pairs(error.headers) : {}
  const form = errorForm(call.env.route.url.pathname)
  return respond(inForm(openAiRefusal(error), form), { ...headers, ...refusalHeaders(error), ...limits })
}

function pairs(fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(Array.from({ length: fields.length / 2 }, (_, at) => fields.slice(2 * at, 2 * at + 2)))
}
