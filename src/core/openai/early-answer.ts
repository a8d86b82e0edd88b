/** Events for an answer of a worker that is no stream, where the head of a stream was sent already. */
import { isJsonObject, readJson } from '../json/json-text.ts'
import { textBefore } from '../text-parts.ts'
import { EventWriter } from './openai-stream.ts'

/** Limit of characters of an answer in its own words. */
const MAX_MESSAGE = 1_000

/** The answer of a worker, read wholly. */
export interface WholeAnswer {
  readonly status: number
  /** Its `Content-Type`; empty without one. */
  readonly contentType: string
  /** Null for an answer that is longer than what is read. */
  readonly text: string | null
}

/** The event that ends a stream with an error, in OpenAI's form. @param status the status that it would have */
export function failureEvent(status: number, message: string): string {
  return errorEvent({ message, type: errorType(status), param: null, code: status })
}

/** The events for a whole answer: JSON of success as one event, anything else as an error. */
export function answerEvents({ status, contentType, text }: WholeAnswer): string {
  const reading = text === null || text.trim() === '' ? null : readJson(text)
  const value = reading?.ok === true ? reading.value : undefined
  const isSuccess = status >= 200 && status < 300
  if (isSuccess && value !== undefined) {
    const writer = new EventWriter()
    return writer.write({ kind: 'json', json: text! }) + writer.done()
  }
  if (isSuccess) {
    const type = textBefore(contentType, ';').slice(0, 100)
    const problem = text === null ? 'is too long' : type === '' ? 'has no type' : `has the type ${type}`
    return failureEvent(502, `the worker sent no stream: its answer ${problem}`)
  }
  const error = isJsonObject(value) ? (value.object === 'error' ? value : value.error) : undefined
  if (isJsonObject(error) && typeof error.message === 'string') {
    const { message, type = errorType(status), param = null, code = status } = error
    return errorEvent({ message, type, param, code })
  }
  const detail = isJsonObject(value) ? [error, value.detail, value.message].find(isFilled) : text?.trim()
  return failureEvent(status, isFilled(detail) ? detail.slice(0, MAX_MESSAGE) : `the worker answered with ${status}`)
}

function errorEvent(error: Readonly<Record<'message' | 'type' | 'param' | 'code', unknown>>): string {
  return new EventWriter().failed(error)
}

function errorType(status: number): string {
  if (status === 404) return 'not_found_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
