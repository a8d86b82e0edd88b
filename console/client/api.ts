/** Calls of the public API, typed by its OpenAPI document (`scripts/console-types.ts` makes the types). */

import { noteServerDate } from '../server-clock.ts'
import type { Operations } from './api-types.d.ts'
import { noteSessionEnd, sessionHeaders } from './session.ts'

/** An operation: its method and its path as the OpenAPI document has them. */
export type Operation = keyof Operations

/** The body of the success response of an operation. */
export type Answer<Of extends Operation> = Operations[Of]['answer']
/** The body that an operation takes. */
export type Body<Of extends Operation> = Operations[Of]['body']

/** Parameters of a call of an operation. Members that the operation does not have are left out. */
export type Parameters<Of extends Operation> = Part<'path', Operations[Of]['path']> &
  Part<'query', Operations[Of]['query']> &
  BodyPart<Operations[Of]['body']> & { readonly signal?: AbortSignal; readonly headers?: Record<string, string> }

type Part<Name extends string, Type> = [Type] extends [never]
  ? unknown
  : Partial<Type> extends Type
    ? { readonly [Key in Name]?: Type }
    : { readonly [Key in Name]: Type }

type BodyPart<Type> = [Type] extends [never] ? unknown : Part<'body', Type | JsonText>

/** A response that reports a failure. */
export class ApiError extends Error {
  readonly status: number
  /** One sentence for each problem; it begins with the path of the member, such as `$.name: is required`. */
  readonly problems: readonly string[]

  constructor(status: number, message: string, problems: readonly string[] = []) {
    super(message)
    this.status = status
    this.problems = problems
  }

  /** True if the same call may work soon: the server does not answer, is starting, or is overloaded. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500
  }
}

/** Calls an operation. @throws ApiError; status 0 when the server does not answer */
export async function api<Of extends Operation>(operation: Of, parameters: Parameters<Of>): Promise<Answer<Of>> {
  const response = await send(operation, parameters)
  if (response.status === 204) return undefined as Answer<Of>
  return (await response.json()) as Answer<Of>
}

/** Calls an operation and returns its response with its body unread. @throws ApiError */
export async function send<Of extends Operation>(operation: Of, parameters: Parameters<Of>): Promise<Response> {
  const [method = '', template = ''] = operation.split(' ')
  const { path = {}, query = {}, body, signal, headers = {} } = parameters as LooseParameters
  const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])))
  return request(method, filled + queryString(query), { body, headers, ...(signal === undefined ? {} : { signal }) })
}

interface LooseParameters {
  readonly path?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly signal?: AbortSignal
  readonly headers?: Record<string, string>
}

/** A body that is JSON text already: its large integers stay as a person typed them. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Requests a path of this server with the session. @throws ApiError */
export async function request(
  method: string,
  path: string,
  { body, headers = {}, signal }: Pick<LooseParameters, 'body' | 'headers' | 'signal'> = {},
): Promise<Response> {
  const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  const session = sessionHeaders()
  const response = await fetch(path, {
    method,
    headers: { ...session, ...json, ...headers },
    ...(body === undefined ? {} : { body: body instanceof JsonText ? body.text : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if ((error as Error).name === 'AbortError') throw error
    throw new ApiError(0, 'The server does not answer.')
  })
  noteServerDate(response)
  if (response.ok) return response
  const error = await errorFromResponse(response)
  if (response.status === 401) noteSessionEnd(session, error.message)
  throw error
}

/** The query of these parameters, with its `?`; empty without any. For a command that does the same. */
export function queryString(query: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  )
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
}

async function errorFromResponse(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  try {
    const { detail, error, message, errors } = JSON.parse(text) as Problem
    const errorText = typeof error === 'string' ? error : error?.message
    return new ApiError(response.status, detail ?? errorText ?? message ?? response.statusText, errors ?? [])
  } catch {
    return new ApiError(response.status, text.slice(0, 300) || `the server answered ${response.status}`)
  }
}

interface Problem {
  readonly detail?: string
  readonly error?: string | { readonly message?: string }
  readonly message?: string
  readonly errors?: readonly string[]
}

/** The message of anything that was thrown. */
export function errorSentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
