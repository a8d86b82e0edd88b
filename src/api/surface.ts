import type { Caller } from '../core/accounts/permission.ts'
import { AppError, toAppError } from '../core/errors.ts'
import type { EndpointId } from '../core/ids.ts'
import { gatherSlices, SLICE_CHARACTERS } from '../core/json/text-slices.ts'
import { readAuthorizationKey } from '../core/request-head.ts'
import type { SocketAddress } from '../core/workers/socket-address.ts'
import type { Emit } from '../events.ts'
import type { Access } from '../services/accounts/access.ts'
import type { ReadAddress } from '../services/accounts/failed-keys.ts'
import type { OpenSession } from '../services/accounts/sessions.ts'

/** Reports the end of a response: complete or not. */
export interface Delivery {
  /** Calls back once: true when the whole response was passed to the network, false if the connection ended before. */
  onSettled(callback: (delivered: boolean) => void): void
}

/** The address of a request, parsed once. */
export interface SurfaceRoute {
  readonly url: URL
  /** Segments of the path; the first is empty. */
  readonly segments: readonly string[]
  /** The surface of the path; null if it belongs to none. */
  readonly surface: SurfaceName | null
}

/** Facts of a request that only its listener has. */
export interface RequestEnv {
  readonly delivery: Delivery
  /** The id of the request: its client's, or one of the listener. */
  readonly requestId: string
  /** Address of the client, if known. Without it, failed keys are not counted. */
  readonly address?: ReadAddress
  /**
   * Records the account of the request. False: the account has too many requests at once. Without it no limit
   * applies.
   */
  readonly admits?: (account: string) => boolean
  /**
   * Aborts when the client sends no more or is gone, which look the same at first: for a call that waits for data
   * that must not be lost. Without it only the signal of the request is used.
   */
  readonly ending?: () => AbortSignal
  /**
   * The body as the connection has it; null if the request has no body. Without it the stream of the request is read,
   * which costs more.
   */
  readonly body?: () => IncomingBody | null
  /** Records that the body of this call passes to the store as it arrives, within limits of its reader. */
  readonly untimed?: () => void
  /** Path and query as the client sent them. Without it they are those of the request, which are normalized. */
  readonly target?: () => string
  /**
   * Records that the bodies of this call pass from and to files: they are not held in memory, and the surface bounds
   * their time. Without it no limit applies.
   */
  readonly streams?: () => void
  /**
   * Hands the request over to a load-balancing endpoint. The response of the surface is dropped then. Without it the
   * listener has no such endpoints.
   */
  readonly balanced?: (handed: HandedRequest) => HandedOver
}

/** A request that a load-balancing endpoint answers in place of a surface. */
export interface HandedRequest {
  readonly endpointId: EndpointId
  /** The caller, whose right on the endpoint is checked again. */
  readonly caller: Caller
  /** The part of the address before the path of the worker. */
  readonly prefix: string
  /** Path and query for the worker. */
  readonly path: string
  /** The body for the worker, in place of the one that was read. */
  readonly body: readonly Uint8Array[]
  /** The body once the worker is known, in place of `body`, which is for every worker when left out. Never rejects. */
  readonly bodyFor?: (worker: SocketAddress) => Promise<readonly Uint8Array[]>
  /**
   * The cause for which a stream waits: the client gets its head at once if no worker is free. When left out, the
   * head is that of the worker.
   */
  readonly waitsFor?: string
  /** Fields of the response in place of those of the worker, names and values in turn; none when left out. */
  readonly answerFields?: readonly string[]
  /** True if the stream was asked for an event of usage that its client did not ask for; false when left out. */
  readonly hidesUsage?: boolean
  /** The model in the request, by which its caller may have a right to it; by that on the endpoint when left out. */
  readonly model?: string
}

/** The way of a handed request. Neither promise rejects. */
export interface HandedOver {
  /** Resolves once nothing of the body is held any more. */
  readonly sent: Promise<void>
  /** Resolves at the end of the response with its status; 0 if the client left before it. */
  readonly ended: Promise<number>
}

/** Bindings of a surface besides the request. */
export interface SurfaceEnv extends RequestEnv {
  readonly route: SurfaceRoute
  /**
   * The session that the request was made with, in place of a key. Only the surface of the console sets it, once it
   * has checked where the request comes from.
   */
  readonly session?: OpenSession
  /** Fields that let the page of the request read the response, names and values in turn; none when left out. */
  readonly pageFields?: readonly string[]
}

/** The body of a request as it arrives. */
export interface IncomingBody {
  /**
   * The pieces. A reader that stops early leaves the rest unread. Throws if the connection ends before the body does.
   */
  pieces(): AsyncIterable<Uint8Array>
  /**
   * Reads the rest and drops it: an unread body would close the connection, which the next request (such as a job
   * result) may use.
   */
  drop(): void
}

/** All surfaces that a listener offers, as one function. It never throws: every failure is a response. */
export type Fetch = (request: Request, env: RequestEnv) => Promise<Response>

/** A set of routes as a function. Surfaces never throw: every failure is a response. */
export type Surface = (request: Request, env: SurfaceEnv) => Promise<Response>

/** The surfaces that a listener can offer. */
export const SURFACE_NAMES = [
  'rest',
  'restV1',
  'graphql',
  'jobs',
  'openai',
  'worker',
  's3',
  'uploads',
  'ops',
  'console',
] as const
/** One of {@link SURFACE_NAMES}. */
export type SurfaceName = (typeof SURFACE_NAMES)[number]

/** A call of a surface. */
export interface SurfaceCall {
  readonly request: Request
  readonly env: SurfaceEnv
}

/** Reports a response with a status of 500 or more, whose cause callers do not see. */
export function reportFailure(emit: Emit, surface: SurfaceName, { request, env }: SurfaceCall, thrown: unknown): void {
  const error = toAppError(thrown)
  if (error.status < 500) return
  const cause = error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : error.message
  const failed = { surface, method: request.method, path: env.route.url.pathname, status: error.status }
  emit('request.failed', { ...failed, problem: cause, requestId: env.requestId })
}

/** The key of an Authorization header, with or without the word Bearer; null without a key. */
export function authorizationKey(request: Request): string | null {
  return readAuthorizationKey(request.headers.get('authorization'))
}

/**
 * The caller of a request: of its session, else of its key.
 * @param readKey reads the key; from the Authorization header unless given
 * @throws AppError as {@link Access.authenticate}
 */
export async function authenticatedCaller(
  access: Pick<Access, 'authenticate'>,
  request: Request,
  { session, address }: SurfaceEnv,
  readKey: (request: Request) => string | null = authorizationKey,
): Promise<Caller> {
  return session?.caller ?? access.authenticate(readKey(request), address)
}

/** Headers of an error response: `Retry-After` and `Allow`. */
export function refusalHeaders({ retryAfterSeconds, allow }: AppError): Record<string, string> {
  return {
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...(allow.length > 0 ? { allow: allow.join(', ') } : {}),
  }
}

/** Records the account of a request once it is known. @throws AppError `rate_limited` if it has too many at once */
export function admitTo(env: SurfaceEnv, account: string): void {
  if (env.admits === undefined || env.admits(account)) return
  throw new AppError('rate_limited', 'the account has too many requests at once', { retryAfterSeconds: 5 })
}

/**
 * Registers a request as open until its response is sent.
 * @param requires throws if the caller lacks a right that the request needs
 * @returns aborts if the key, that right or the session ends before; its reason is an AppError
 */
export function heldFor(
  access: Pick<Access, 'hold'>,
  env: SurfaceEnv,
  caller: Caller,
  requires: (caller: Caller) => void,
): AbortSignal {
  const ended = new AbortController()
  const end = (why: AppError) => ended.abort(why)
  env.delivery.onSettled(access.hold(caller, requires, end))
  if (env.session !== undefined) env.delivery.onSettled(env.session.hold(end))
  return ended.signal
}

/** A response from JSON text, whole or in parts. Long parts are never joined. */
export function jsonText(
  text: string | readonly string[],
  status = 200,
  headers: Record<string, string> = {},
): Response {
  return textResponse(text, { status, headers: { 'content-type': 'application/json', ...headers } })
}

/** A response from text, whole or in parts. Long text is encoded in slices, as fast as the client reads. */
export function textResponse(
  text: string | readonly string[],
  init: { readonly status: number; readonly headers: Record<string, string> },
): Response {
  const parts = typeof text === 'string' ? [text] : text
  if (parts.every(part => part.length <= SLICE_CHARACTERS)) return new Response(parts.join(''), init)
  const bytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0)
  const slices = gatherSlices(parts)
  const encoder = new TextEncoder()
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const { value, done } = slices.next()
    if (done === true) controller.close()
    else controller.enqueue(encoder.encode(value))
  }
  const headers = { ...init.headers, 'content-length': String(bytes) }
  return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { ...init, headers })
}
