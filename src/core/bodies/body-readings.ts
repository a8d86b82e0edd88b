/** Readings of bodies that can take long, by name, so that they can run in the loop or in a thread. */

import { AppError } from '../errors.ts'
import { readBatchName, readMoreRequests, readNewBatch } from '../jobs/batch-reading.ts'
import { readChunk, unreadableChunk } from '../jobs/chunk.ts'
import type { Job } from '../jobs/job.ts'
import { readResult, unreadableResult } from '../jobs/result.ts'
import { readSubmission } from '../jobs/submission.ts'
import { failureAnswer, openAiAnswer, readErrorObject, readOpenAiCall } from '../openai/openai.ts'
import { isJson, itemsFromChunks, itemsFromOutput } from '../openai/openai-stream.ts'
import { readDocument } from './document-size.ts'

/**
 * Size in bytes from which a body is decoded and parsed outside the loop: the worst JSON of
 * this size takes some 10 ms.
 */
export const LARGE_BODY_BYTES = 131_072

/** A body: its text, or the pieces of its bytes if it is large. */
export type Body = string | Pieces
/** The bytes of a large body, as they were received. */
export type Pieces = readonly Uint8Array[]

/**
 * Each reading takes a text first, usually that of a body; its result, or the AppError that it throws, can be cloned.
 */
export const READINGS = {
  submission: readSubmission,
  newBatch: readNewBatch,
  moreRequests: readMoreRequests,
  batchName: readBatchName,
  openAiCall: (text: string, route: string) => readOpenAiCall(route, text),
  document: readDocument,
  openAiAnswer: (output: string, job: Job) => openAiAnswer(job, output),
  openAiFailure: (error: string, job: Job) => failureAnswer({ ...job, error }),
  openAiError: readErrorObject,
  streamItems: (_: string, chunks: readonly string[]) => itemsFromChunks(chunks),
  outputItems: itemsFromOutput,
  isJson,
  result: readResult,
  chunk: readChunk,
}

/** {@link READINGS} by name. */
export type Readings = typeof READINGS
/** One of the names of {@link READINGS}. */
export type ReadingName = keyof Readings
/** The arguments of a reading besides the text. */
export type ReadingRest<Name extends ReadingName> =
  Parameters<Readings[Name]> extends [string, ...infer Rest] ? Rest : never

/** The text of a body, decoded synchronously, without a byte order mark; null if its bytes are not UTF-8. */
export function decodeBody(body: Body): string | null {
  if (typeof body === 'string') return body
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    return body.map(piece => decoder.decode(piece, { stream: true })).join('') + decoder.decode()
  } catch {
    return null
  }
}

/** Refusal of a body that is not UTF-8: replacing its invalid bytes would change it. */
export function notUtf8(): AppError {
  return new AppError('invalid', 'the request body is not UTF-8')
}

/** Results of the readings that refuse nothing, for bytes that are not UTF-8: workers do not send a result again. */
const OTHER_BYTES: Partial<Record<ReadingName, () => unknown>> = { result: unreadableResult, chunk: unreadableChunk }

/**
 * Decodes and reads a body in the calling thread.
 * @throws AppError as the reading does, and `invalid` for a body that is not UTF-8
 */
export function readHere<Name extends ReadingName>(
  name: Name,
  body: Body,
  rest: ReadingRest<Name>,
): ReturnType<Readings[Name]> {
  const read = READINGS[name] as (text: string, ...rest: unknown[]) => ReturnType<Readings[Name]>
  const text = decodeBody(body)
  if (text !== null) return read(text, ...rest)
  const unreadable = OTHER_BYTES[name]
  if (unreadable === undefined) throw notUtf8()
  return unreadable() as ReturnType<Readings[Name]>
}
