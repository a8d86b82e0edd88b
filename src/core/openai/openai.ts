/** The HTTP responses of the OpenAI route: refusals, and outcomes of jobs in the form of OpenAI's API. */
import { AppError, type ErrorCode } from '../errors.ts'
import type { Job } from '../jobs/job.ts'
import type { Submission } from '../jobs/submission.ts'
import { isJsonObject, readJson } from '../json/json-text.ts'
import { readPythonLiteral } from '../json/python-literal.ts'
import { KeyLimitError } from '../key-limits.ts'
import { anthropicText, type ErrorForm, errorText, type OpenAiError } from './error-form.ts'

/** A response as data. */
export interface OpenAiAnswer {
  readonly status: number
  readonly contentType: string
  readonly text: string
}

/** A request to the route. */
export interface OpenAiCall {
  readonly submission: Submission
  /** True if the client wants server-sent events. */
  readonly stream: boolean
}

const JSON_TYPE = 'application/json'
const TYPES: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  rate_limited: 'rate_limit_error',
  internal: 'server_error',
  unavailable: 'server_error',
}

/**
 * The job of a request: workers read `openai_route`, the path after `/openai`, and `openai_input`,
 * the body character for character.
 * @throws AppError `invalid` when the body is not JSON
 */
export function readOpenAiCall(route: string, body: string): OpenAiCall {
  const json = body.trim() === '' ? '{}' : body
  const reading = readJson(json)
  if (!reading.ok) throw new AppError('invalid', `the body is not JSON: ${reading.problem}`)
  const input = `{"openai_route":${JSON.stringify(route)},"openai_input":${reading.text}}`
  const nothing = { policy: null, webhook: null, s3Config: null, executionTimeoutMs: undefined, ttlMs: undefined }
  return {
    submission: { input, ...nothing, lowPriority: false },
    stream: isJsonObject(reading.value) && reading.value.stream === true,
  }
}

/** A refusal of the server in OpenAI's form. */
export function openAiRefusal(error: AppError): OpenAiAnswer {
  if (error instanceof KeyLimitError) {
    return errorAnswer(error.status, { message: error.message, type: error.kind, code: 'rate_limit_exceeded' })
  }
  const code = error.code === 'unauthorized' ? 'invalid_api_key' : error.code
  return errorAnswer(error.status, { message: error.message, type: TYPES[error.code] ?? 'invalid_request_error', code })
}

/** The response for a final job, whose output is `output`: never a job envelope. */
export function openAiAnswer(job: Job, output: string | null): OpenAiAnswer {
  return job.status === 'COMPLETED' ? outputAnswer(output) : failureAnswer(job)
}

/** The response for a job that ended without a usable output. */
export function failureAnswer(job: Job): OpenAiAnswer {
  if (job.status === 'CANCELLED') {
    return errorAnswer(499, { message: 'the job was cancelled', type: 'cancelled_error', code: 'cancelled' })
  }
  if (job.status === 'TIMED_OUT') {
    const message = job.error ?? 'the job ran longer than its execution timeout'
    return errorAnswer(504, { message, type: 'timeout_error', code: 'timeout' })
  }
  return workerErrorAnswer(job.error ?? 'the job failed')
}

/** An answer in the form that its client reads: only errors differ. */
export function inForm(answer: OpenAiAnswer, form: ErrorForm): OpenAiAnswer {
  const { status, contentType, text } = answer
  if (form === 'openai' || status < 400 || contentType !== JSON_TYPE) return answer
  return { status, contentType, text: anthropicText(status, readValue(text)) ?? text }
}

/** The JSON text of the event for an answer that is an error, in a stream whose status was sent. */
export function failureEventText(answer: OpenAiAnswer, form: ErrorForm): string {
  if (form === 'anthropic') return inForm(answer, form).text
  const value = readValue(answer.text)
  return JSON.stringify({ error: isJsonObject(value) ? (value.error ?? value) : value })
}

function readValue(text: string): unknown {
  const reading = readJson(text)
  return reading.ok ? reading.value : null
}

/** The response for the error text of a FAILED job; workers write JSON, Python literals and plain sentences. */
export function workerErrorAnswer(text: string): OpenAiAnswer {
  const value = readTextValue(text)
  const fields = isJsonObject(value) ? (isJsonObject(value.error) ? value.error : value) : {}
  const message = [fields.error_message, fields.message, value].find(isFilled) ?? text
  const upstream = /vLLM returned HTTP (\d{3}): ([\s\S]*)/.exec(message)
  if (upstream !== null && isErrorStatus(Number(upstream[1]))) {
    return upstreamAnswer(Number(upstream[1]), upstream[2]!)
  }
  if (isFilled(fields.error_message) || !isFilled(fields.message)) return errorAnswer(500, workerError(message))
  return fieldsAnswer(fields)
}

/** The response for an output with `"object": "error"`; null for any other value. */
export function errorObjectAnswer(value: unknown): OpenAiAnswer | null {
  return isJsonObject(value) && value.object === 'error' ? fieldsAnswer(value) : null
}

/** As {@link errorObjectAnswer}, for a value that is still JSON. */
export function readErrorObject(json: string): OpenAiAnswer | null {
  const reading = readJson(json)
  return reading.ok ? errorObjectAnswer(reading.value) : null
}

function upstreamAnswer(status: number, body: string): OpenAiAnswer {
  const inner = readJson(body)
  if (inner.ok && isJsonObject(inner.value)) return { status, contentType: JSON_TYPE, text: inner.text.trim() }
  return errorAnswer(status, workerError(body.trim() === '' ? `vLLM returned HTTP ${status}` : body))
}

function fieldsAnswer(fields: Record<string, unknown>): OpenAiAnswer {
  const { message, type, param = null, code = null } = fields
  const status = isErrorStatus(code) ? code : 500
  const text = isFilled(message) ? message : 'the worker reported an error'
  return errorAnswer(status, { message: text, type: isFilled(type) ? type : 'worker_error', param, code })
}

function outputAnswer(output: string | null): OpenAiAnswer {
  const text = output?.trim() ?? 'null'
  const { value } = readJson(text) as { value: unknown }
  if (Array.isArray(value) && value.length > 0 && value.every(item => typeof item === 'string')) {
    return textAnswer(value.join(''))
  }
  if (value === null || (Array.isArray(value) && value.length === 0)) {
    return errorAnswer(500, workerError('the job was completed without an output'))
  }
  if (typeof value === 'string') return textAnswer(value)
  const only = Array.isArray(value) && value.length === 1
  const failure = errorObjectAnswer(only ? value[0] : value)
  return failure ?? { status: 200, contentType: JSON_TYPE, text: only ? text.slice(1, -1).trim() : text }
}

function textAnswer(text: string): OpenAiAnswer {
  const reading = readJson(text)
  if (!reading.ok) return { status: 200, contentType: 'text/plain; charset=utf-8', text }
  return errorObjectAnswer(reading.value) ?? { status: 200, contentType: JSON_TYPE, text }
}

function errorAnswer(status: number, error: OpenAiError): OpenAiAnswer {
  return { status, contentType: JSON_TYPE, text: errorText('openai', status, error) }
}

function workerError(message: string): OpenAiError {
  return { message, type: 'worker_error' }
}

function readTextValue(text: string): unknown {
  const reading = readJson(text)
  return reading.ok ? reading.value : (readPythonLiteral(text)?.value ?? null)
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isErrorStatus(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 400 && value <= 599
}
