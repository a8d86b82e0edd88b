/** The forms in which clients read errors: that of OpenAI's API, and that of Anthropic's for its own operations. */
import { isJsonObject } from '../json/json-text.ts'
import { operationOf } from './operation.ts'

/** The form of errors that a client reads. */
export type ErrorForm = 'openai' | 'anthropic'

/** The form of errors at a path: clients of Anthropic's API call `messages` and what is below it. */
export function errorForm(path: string): ErrorForm {
  const operation = operationOf(path)
  return operation === 'messages' || operation.startsWith('messages/') ? 'anthropic' : 'openai'
}

/** The `error` object of OpenAI's API; `param` and `code` are null where they are left out. */
export interface OpenAiError {
  readonly message: string
  readonly type: string
  readonly code?: unknown
  readonly param?: unknown
}

/** The JSON text of an error of a response or of an event, whose status it has or would have. */
export function errorText(form: ErrorForm, status: number, { message, type, param = null, code = null }: OpenAiError) {
  if (form === 'openai') return JSON.stringify({ error: { message, type, param, code } })
  return JSON.stringify({ type: 'error', error: { type: anthropicType(status, type), message } })
}

/** The types of OpenAI's form for an error of this server that has none of its own. */
export function openAiType(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 404) return 'not_found_error'
  if (status === 408 || status === 504) return 'timeout_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

/** An error of a worker or of this server in the other form; null for one that cannot be read as an error. */
export function anthropicText(status: number, value: unknown): string | null {
  if (!isJsonObject(value)) return null
  if (value.type === 'error' && isJsonObject(value.error)) return JSON.stringify(value)
  const error = isJsonObject(value.error) ? value.error : value
  const { message, type } = error
  if (typeof message !== 'string' || message === '') return null
  return errorText('anthropic', status, { message, type: typeof type === 'string' ? type : '' })
}

/** The types of errors of Anthropic's API. */
const TYPES: ReadonlySet<string> = new Set([
  ...['invalid_request_error', 'authentication_error', 'billing_error', 'permission_error', 'not_found_error'],
  ...['request_too_large', 'rate_limit_error', 'timeout_error', 'api_error', 'overloaded_error'],
])

const TYPES_BY_STATUS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

function anthropicType(status: number, type: string): string {
  const known = TYPES_BY_STATUS[status]
  if (known !== undefined) return known
  if (TYPES.has(type)) return type
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
