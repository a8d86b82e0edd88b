import type { Caller } from '../../core/accounts/permission.ts'
import type { Body } from '../../core/bodies/body-readings.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { FormPart } from '../../core/openai/form.ts'
import { type MemberPlace, memberValue, replaced, textAt } from '../../core/openai/member-scan.ts'
import { isModelName, unknownModel, wrongModel } from '../../core/openai/model-names.ts'
import { reportsTokens } from '../../core/openai/token-usage.ts'
import { withOneMore } from '../../core/scaling/scale.ts'
import { withoutEnd } from '../../core/text-parts.ts'
import type { SocketAddress } from '../../core/workers/socket-address.ts'
import type { ListedModel, ResolvedModel } from '../../services/openai/model-catalog.ts'
import type { ApiParts } from '../parts.ts'
import { type HandedOver, type HandedRequest, jsonText, type SurfaceCall } from '../surface.ts'
import {
  boundaryOf,
  bytesOf,
  contentType,
  formOf,
  handlerBody,
  type OpenAiForm,
  PAYLOAD_BYTES,
  requireJsonText,
} from './media.ts'
import { accountedBody, decoded, membersOf } from './members.ts'
import { answerOfJob, type SubmittedCall, submitCall } from './submitting.ts'

const PREFIX = '/openai'
const MODELS = '/v1/models'
/** Bytes of a value that say what it is. */
const SHOWN_VALUE_BYTES = 64

/** Answers a request below `/openai/v1`. @throws AppError */
export async function answerModels(parts: ApiParts, call: SurfaceCall, caller: Caller): Promise<Response> {
  const { request } = call
  const { pathname } = call.env.route.url
  // Programs add a version to a base URL that has one.
  const route = pathname.slice(PREFIX.length).replace(/^\/v1(?=\/v1\/)/, '')
  if (!route.startsWith('/v1/')) throw noOperation()
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const isCalled = isRead && reportsTokens('POST', route)
  if (isCalled) throw new AppError('method_not_allowed', 'models are called with POST', POST_ONLY)
  if (isRead) return answerList(parts, caller, withoutEnd(route, '/'))
  if (request.method !== 'POST') throw new AppError('method_not_allowed', 'models are called with POST', POST)
  const boundary = boundaryOf(request)
  const maxBytes = Math.max(PAYLOAD_BYTES, parts.balancedBodyBytes)
  const passed = await parts.room.of(caller.owner).bytes(call, maxBytes, async body => {
    if (boundary !== null) return passForm(parts, call, caller, { route, form: formOf(body, boundary) })
    requireJsonText(contentType(request), body)
    return pass(parts, call, caller, { route, body })
  })
  if (!('job' in passed)) return answeredElsewhere(passed)
  return answerOfJob(parts, call, caller, passed, passed.stream ? await waitOf(parts, passed.job.endpointId) : null)
}

/** The cause for which a request of an endpoint waits that has no ready worker; null if it has one. */
async function waitOf(
  { modelCatalog, balancing, explaining, ports }: ApiParts,
  id: EndpointId,
): Promise<string | null> {
  if (await modelCatalog.isReady(id)) return null
  try {
    const snapshot = await balancing.snapshot(id)
    // The request that asks is not in the queue yet.
    return snapshot === null ? null : (await explaining.of(withOneMore(snapshot, ports.clock.now()))).cause
  } catch {
    // The job is there all the same.
    return null
  }
}

/** The response to a request that an endpoint has answered: the listener drops it. */
export async function answeredElsewhere({ ended }: HandedOver): Promise<Response> {
  return new Response(null, { status: Math.max(200, (await ended) || 499) })
}

const POST = { allow: ['GET', 'POST'] } as const
const POST_ONLY = { allow: ['POST'] } as const

function noOperation(): AppError {
  return new AppError('not_found', 'there is no such operation; the base URL ends with /openai/v1')
}

/** A request with its body. */
interface ModelRequest {
  /** The path after `/openai`. */
  readonly route: string
  readonly body: Body
}

/** Passes a request to the endpoint of its model. Resolves when its body is no longer needed. */
async function pass(
  parts: ApiParts,
  call: SurfaceCall,
  caller: Caller,
  { route, body }: ModelRequest,
): Promise<SubmittedCall | HandedOver> {
  const { method } = call.request
  const accounted = await accountedBody(parts, caller, { method, route, body })
  const { hidesUsage } = accounted
  const pieces = bytesOf(accounted.body)
  const { places, repeated } = await membersOf(parts, pieces, ['model', 'stream'])
  const { model: place, stream } = places
  // The worker decides which of them counts: a right on one name must not lead to another.
  if (repeated.has('model')) throw new AppError('invalid', 'the body has the member model more than once')
  const name = place === undefined ? undefined : memberValue(pieces, place)
  if (place === undefined || typeof name !== 'string' || !isModelName(name)) throw withoutModel(pieces, place)
  const resolved = await parts.modelCatalog.resolve(caller, name)
  const { endpoint, model } = resolved
  const bodyWith = (other: string) =>
    other === name ? pieces : replaced(pieces, place, new TextEncoder().encode(JSON.stringify(other)))
  if (endpoint.type === 'LOAD_BALANCER') {
    const isStream = stream !== undefined && memberValue(pieces, stream) === true
    return passOn(parts, call, caller, resolved, { route, name, bodyWith, isStream, hidesUsage })
  }
  const named = bodyWith(model)
  requireSize(named, PAYLOAD_BYTES)
  call.env.delivery.onSettled(await parts.access.countJobs(caller, endpoint.id, 'openai'))
  const asBody = typeof body === 'string' ? decoded(named) : named
  return submitCall(parts, call, endpoint, { route, body: asBody, caller, hidesUsage, model: name })
}

/** The refusal of a body that names no model. @param place of its member `model`; undefined without one */
function withoutModel(pieces: readonly Uint8Array[], place: MemberPlace | undefined): AppError {
  if (place !== undefined) return wrongModel(textAt(pieces, place, SHOWN_VALUE_BYTES))
  const isObject = textAt(pieces, { start: 0, end: SHOWN_VALUE_BYTES }, SHOWN_VALUE_BYTES).trimStart().startsWith('{')
  return new AppError(
    'invalid',
    isObject
      ? 'the body needs the name of a model in its member model'
      : 'the body must be a JSON object with a member model',
  )
}

/** Passes a form on, as {@link pass}. */
async function passForm(
  parts: ApiParts,
  call: SurfaceCall,
  caller: Caller,
  { route, form }: { readonly route: string; readonly form: OpenAiForm },
): Promise<SubmittedCall | HandedOver> {
  const fields = form.parts.filter(({ name }) => name === 'model' || name === 'model[]')
  const [field] = fields
  if (field === undefined || field.filename !== null || field.name !== 'model')
    throw new AppError('invalid', 'the form needs the name of a model in its field model')
  if (fields.length > 1) throw new AppError('invalid', 'the form has the field model more than once')
  const name = textOf(form, field)
  if (!isModelName(name)) throw wrongModel(JSON.stringify(name))
  const resolved = await parts.modelCatalog.resolve(caller, name)
  const { endpoint, model } = resolved
  if (endpoint.type === 'LOAD_BALANCER') {
    const bodyWith = (other: string) =>
      other === name ? [form.bytes] : replaced([form.bytes], field, new TextEncoder().encode(other))
    const isStream = form.parts.some(part => part.name === 'stream' && textOf(form, part) === 'true')
    return passOn(parts, call, caller, resolved, { route, name, bodyWith, isStream })
  }
  const { method } = call.request
  const accounted = await accountedBody(parts, caller, { method, route, body: handlerBody(form, model) })
  call.env.delivery.onSettled(await parts.access.countJobs(caller, endpoint.id, 'openai'))
  return submitCall(parts, call, endpoint, { route, caller, model: name, ...accounted })
}

function textOf({ bytes }: OpenAiForm, { start, end }: FormPart): string {
  return new TextDecoder().decode(bytes.subarray(start, end))
}

/** A request for a load-balancing endpoint. */
interface BalancedCall {
  readonly route: string
  /** The name in the request. */
  readonly name: string
  /** The body with the name of a model in place of that. */
  readonly bodyWith: (model: string) => readonly Uint8Array[]
  readonly isStream: boolean
  readonly hidesUsage?: boolean
}

/**
 * Passes a request on to a load-balancing endpoint. A worker that has not said what it serves is asked before it gets
 * the request, and a stream of a cold model begins at once.
 */
async function passOn(
  parts: ApiParts,
  call: SurfaceCall,
  caller: Caller,
  { endpoint, model, isKnown }: ResolvedModel,
  { route, name, bodyWith, isStream, hidesUsage = false }: BalancedCall,
): Promise<HandedOver> {
  const { modelCatalog } = parts
  const bodyFor = async (worker: SocketAddress) => bodyWith(await modelCatalog.modelAt(endpoint, name, worker))
  const isCold = !(await modelCatalog.isReady(endpoint.id))
  const waitsFor = isCold && isStream ? await waitOf(parts, endpoint.id) : null
  return handOver(parts, call, caller, {
    endpoint,
    route,
    body: bodyWith(model),
    hidesUsage,
    model: name,
    ...(isKnown ? {} : { bodyFor }),
    ...(waitsFor === null ? {} : { waitsFor }),
  })
}

/**
 * Hands a request over to a load-balancing endpoint. Resolves when its body is no longer needed.
 * @throws AppError `too_large`; `unavailable` at an address without such endpoints
 */
export async function handOver(
  parts: ApiParts,
  { env }: SurfaceCall,
  caller: Caller,
  {
    endpoint,
    route,
    body,
    prefix = PREFIX,
    ...rest
  }: Pick<HandedRequest, 'body' | 'bodyFor' | 'waitsFor' | 'hidesUsage' | 'model'> & {
    endpoint: Endpoint
    route: string
    prefix?: string
  },
): Promise<HandedOver> {
  requireSize(body, parts.balancedBodyBytes)
  if (env.balanced === undefined) throw new AppError('unavailable', 'this address has no load-balancing endpoints')
  const path = route + env.route.url.search
  const { pageFields: answerFields = [] } = env
  const handed = env.balanced({ endpointId: endpoint.id, caller, prefix, path, body, answerFields, ...rest })
  await handed.sent
  return handed
}

function requireSize(pieces: readonly Uint8Array[], maxBytes: number): void {
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (bytes > maxBytes) throw new AppError('too_large', `the body has ${bytes} bytes; at most ${maxBytes} are accepted`)
}

async function answerList(parts: ApiParts, caller: Caller, route: string): Promise<Response> {
  const isOne = route.startsWith(`${MODELS}/`)
  if (route !== MODELS && !isOne) throw noOperation()
  const { models, isCut } = await parts.modelCatalog.list(caller)
  if (!isOne) {
    const list = { object: 'list', data: models.map(modelView), has_more: isCut }
    return jsonText(JSON.stringify(list))
  }
  const name = decodedName(route.slice(MODELS.length + 1))
  const model = models.find(({ id }) => id === name)
  if (model !== undefined) return jsonText(JSON.stringify(modelView(model)))
  const names = models.map(({ id }) => id)
  throw unknownModel(name, names)
}

function decodedName(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A model in OpenAI's form, with members of Anthropic's, and one of our own. */
function modelView({ id, endpoint, state, startMs, served }: ListedModel): Record<string, unknown> {
  const type = endpoint.type === 'QUEUE' ? 'queue' : 'load_balancing'
  const start = startMs === null ? null : Math.round(startMs / 100) / 10
  const runyard = { endpoint_id: endpoint.id, type, state, typical_start_seconds: start, served }
  const ofOpenAi = { object: 'model', created: Math.floor(endpoint.createdAtMs / 1_000), owned_by: 'runyard' }
  const ofAnthropic = { type: 'model', display_name: id, created_at: new Date(endpoint.createdAtMs).toISOString() }
  return { id, ...ofOpenAi, ...ofAnthropic, runyard }
}
