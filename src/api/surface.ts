import { keyOfAuthorization } from '../core/accounts/authorization.ts'
import type { Caller } from '../core/accounts/permission.ts'
import { AppError, toAppError } from '../core/errors.ts'
import { SLICE_CHARACTERS, slicesOf } from '../core/json/text-slices.ts'
import type { Emit } from '../events.ts'
import type { Access } from '../services/accounts/access.ts'
import type { AddressOf } from '../services/accounts/failed-keys.ts'

/** Told by the server when an answer has gone out completely, or has not. */
export interface Delivery {
  /** Calls back once: true when the whole answer was handed to the network, false when the connection ended before. */
  onSettled(callback: (delivered: boolean) => void): void
}

/** What a surface gets beside the request. */
export interface SurfaceEnv {
  readonly delivery: Delivery
  /** Where the request comes from, as far as it is known. Failed keys are not counted where it is left out. */
  readonly address?: AddressOf
  /** Told whose request it is; false when that account has too many of them. Nobody has where it is left out. */
  readonly admits?: (account: string) => boolean
}

/** A set of routes as a function. Surfaces never throw; what goes wrong is an answer. */
export type Surface = (request: Request, env: SurfaceEnv) => Promise<Response>

/** The surfaces that a listener can offer. */
export const SURFACE_NAMES = ['rest', 'restV1', 'graphql', 'jobs', 'openai', 'worker', 'ops'] as const
/** One of {@link SURFACE_NAMES}. */
export type SurfaceName = (typeof SURFACE_NAMES)[number]

/** Reports an answer with a status of 500 and more, whose cause callers do not get to see. */
export function reportFailure(emit: Emit, surface: SurfaceName, request: Request, thrown: unknown): void {
  const error = toAppError(thrown)
  if (error.status < 500) return
  const cause = error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : error.message
  emit('request.failed', { surface, method: request.method, path: new URL(request.url).pathname, problem: cause })
}

/** The key of an Authorization header, with or without the word Bearer; null when there is none. */
export function authorizationKey(request: Request): string | null {
  return keyOfAuthorization(request.headers.get('authorization'))
}

/** The headers of a refusal: when to try again, and which methods the path takes. */
export function refusalHeaders({ retryAfterSeconds, allow }: AppError): Record<string, string> {
  return {
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...(allow.length > 0 ? { allow: allow.join(', ') } : {}),
  }
}

/** Says whose request it is, as soon as that is known. @throws AppError `rate_limited` when that account has too many at once */
export function admitTo(env: SurfaceEnv, account: string): void {
  if (env.admits === undefined || env.admits(account)) return
  throw new AppError('rate_limited', 'the account has too many requests at once', { retryAfterSeconds: 5 })
}

/**
 * Holds a request open for its caller until the answer is out.
 * @param requires throws when a caller lacks the right that the request needs
 * @returns aborts when the key, or that right, ends before; its reason is the refusal as an AppError
 */
export function heldFor(
  access: Pick<Access, 'hold'>,
  env: SurfaceEnv,
  caller: Caller,
  requires: (caller: Caller) => void,
): AbortSignal {
  const ended = new AbortController()
  env.delivery.onSettled(access.hold(caller, requires, why => ended.abort(why)))
  return ended.signal
}

/** A JSON answer from text that is JSON already, whole or in parts: long parts are never put together. */
export function jsonText(
  text: string | readonly string[],
  status = 200,
  headers: Record<string, string> = {},
): Response {
  return textResponse(text, { status, headers: { 'content-type': 'application/json', ...headers } })
}

/** An answer of text, or of parts of one. A long one is encoded a slice at a time, as its reader takes it. */
export function textResponse(
  text: string | readonly string[],
  init: { readonly status: number; readonly headers: Record<string, string> },
): Response {
  const parts = typeof text === 'string' ? [text] : text
  if (parts.every(part => part.length <= SLICE_CHARACTERS)) return new Response(parts.join(''), init)
  const bytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0)
  const slices = slicesOf(parts)
  const encoder = new TextEncoder()
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const { value, done } = slices.next()
    if (done === true) controller.close()
    else controller.enqueue(encoder.encode(value))
  }
  const headers = { ...init.headers, 'content-length': String(bytes) }
  return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { ...init, headers })
}
