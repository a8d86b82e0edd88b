/** Events for an answer of a worker that is no stream, where the head of a stream was sent already. */
import { isJsonObject, readJson } from '../json/json-text.ts'
import { textBefore } from '../text-parts.ts'
import { anthropicText, type ErrorForm, errorText, type OpenAiError, openAiType } from './error-form.ts'
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

/** The event that ends a stream with an error. @param status the status that it would have */
export function failureEvent(form: ErrorForm, status: number, message: string): string {
  return errorEvent(form, status, { message, type: openAiType(status), code: status })
}

/**
 * The events for a whole answer: JSON of success as one event, anything else as an error. A message of Anthropic's
 * form is no event of it, and its clients would skip it.
 */
export function answerEvents(form: ErrorForm, { status, contentType, text }: WholeAnswer): string {
  const reading = text === null || text.trim() === '' ? null : readJson(text)
  const value = reading?.ok === true ? reading.value : undefined
  const isSuccess = status >= 200 && status < 300
  if (isSuccess && value !== undefined && form === 'openai') {
    const writer = new EventWriter()
    return writer.write({ kind: 'json', json: text! }) + writer.done()
  }
  if (isSuccess) {
    const type = textBefore(contentType, ';').slice(0, 100)
    const problem = text === null ? 'is too long' : type === '' ? 'has no type' : `has the type ${type}`
    return failureEvent(form, 502, `the worker sent no stream: its answer ${problem}`)
  }
  const known = form === 'openai' ? null : anthropicText(status, value)
  if (known !== null) return new EventWriter(form).failed(known)
  const error = isJsonObject(value) ? (value.object === 'error' ? value : value.error) : undefined
  if (isJsonObject(error) && typeof error.message === 'string') {
    const { message, type, param, code = status } = error
    return errorEvent(form, status, { message, type: isFilled(type) ? type : openAiType(status), param, code })
  }
  const detail = isJsonObject(value) ? [error, value.detail, value.message].find(isFilled) : text?.trim()
  return failureEvent(
    form,
    status,
    isFilled(detail) ? detail.slice(0, MAX_MESSAGE) : `the worker answered with ${status}`,
  )
}

function errorEvent(form: ErrorForm, status: number, error: OpenAiError): string {
  return new EventWriter(form).failed(errorText(form, status, error))
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
