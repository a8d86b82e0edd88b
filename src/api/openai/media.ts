import { type Body, LARGE_BODY_BYTES } from '../../core/bodies/body-readings.ts'
import { AppError } from '../../core/errors.ts'
import { type FormPart, formInput, readBoundary, readForm } from '../../core/openai/form.ts'

/** Maximum body of a request to a queue endpoint, in bytes. */
export const PAYLOAD_BYTES = 20_971_520

/** The media type of a body, in lower case; empty without a body or a type. */
export function contentType({ method, headers }: Request): string {
  if (method === 'GET' || method === 'HEAD') return ''
  return (headers.get('content-type') ?? '').split(';', 1)[0]!.trim().toLowerCase()
}

/** Media types that programs send for text by default, also for JSON. */
const DEFAULT_TYPES = new Set(['', 'text/plain', 'application/x-www-form-urlencoded'])

/** The media type of a form. */
const FORM = 'multipart/form-data'

/** @throws AppError `unsupported_media` if a type states that the body is not JSON */
function requireJsonType(type: string): void {
  if (!DEFAULT_TYPES.has(type) && type !== 'application/json' && !type.endsWith('+json')) throw otherMedia(type)
}

/** @throws AppError `unsupported_media` for a body that is not JSON, and has a type that programs give to any text */
export function requireJsonText(type: string, body: Body): void {
  if (typeof body !== 'string' || type === '' || !DEFAULT_TYPES.has(type)) return
  if (body.trim() !== '' && !/^[[{"]/.test(body.trimStart())) throw otherMedia(type)
}

/** A form that was read. */
export interface OpenAiForm {
  readonly bytes: Uint8Array
  readonly parts: readonly FormPart[]
}

/**
 * The boundary of a form; null for another body.
 * @throws AppError `unsupported_media` for neither a form nor JSON, and for a form without a boundary
 */
export function boundaryOf(request: Request): string | null {
  const boundary = readBoundary(request.headers.get('content-type') ?? '')
  const type = contentType(request)
  if (boundary === null && type === FORM) throw otherMedia(`${type} without a boundary`)
  if (boundary === null) requireJsonType(type)
  return boundary
}

/** The bytes of a body, as it was received. */
export function bytesOf(body: Body): readonly Uint8Array[] {
  return typeof body === 'string' ? [new TextEncoder().encode(body)] : body
}

/** The form in a body. @throws AppError `invalid` */
export function formOf(body: Body, boundary: string): OpenAiForm {
  const bytes = joined(bytesOf(body))
  return { bytes, parts: readForm(bytes, boundary) }
}

/**
 * The body with which a handler gets a form.
 * @param model in place of that of the form; null to keep that
 * @throws AppError `too_large` for files that a handler cannot get
 */
export function handlerBody({ bytes, parts }: OpenAiForm, model: string | null): Body {
  const text = formInput(bytes, parts, model)
  if (text.length > PAYLOAD_BYTES)
    throw new AppError('too_large', `the files of the form have more than ${PAYLOAD_BYTES} bytes as base64`)
  return text.length >= LARGE_BODY_BYTES ? [new TextEncoder().encode(text)] : text
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

function otherMedia(type: string): AppError {
  const message = `the body must be JSON (application/json) or a form (multipart/form-data), not ${type.slice(0, 100)}`
  return new AppError('unsupported_media', message)
}
