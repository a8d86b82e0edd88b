import { withoutFields } from '../http1/fields.ts'
import type { ResponseHead } from '../http1/response-head.ts'

/** The head of a worker with fields of the gateway, names and values in turn, in place of its own of these names. */
export function withAnswerFields(head: ResponseHead, fields: readonly string[] = []): ResponseHead {
  if (fields.length === 0) return head
  const names = new Set(fields.filter((_, at) => at % 2 === 0))
  const kept = head.headers.filter((_, at) => !names.has(head.headers[at - (at % 2)]!.toLowerCase()))
  return { ...head, headers: [...kept, ...fields] }
}

/** The head of an answer whose body gets shorter on its way. */
export function withoutLength(head: ResponseHead): ResponseHead {
  return { ...head, headers: withoutFields(head.headers, ['content-length']), framing: 'chunked' }
}
