import { elementTexts, isJsonObject, memberTexts, readJson } from '../json/json-text.ts'
import { BATCH } from './batch.ts'
import { isGiven, isHttpUrl, readParsedSubmission, type Submission } from './submission.ts'

/** A checked request for a new batch. */
export interface NewBatch {
  readonly name: string | null
  readonly webhook: string | null
  readonly requests: readonly Submission[]
}

/** A value, or all problems of its text, one sentence each. */
export type BatchReading<Value> = { readonly value: Value } | { readonly failures: readonly string[] }

/** Limit of listed failures of requests; the others are counted. */
const NAMED_FAILURES = 20

/**
 * Reads the body of a new batch: an array of requests, or an object with `requests`, `name` and `webhook`, each of
 * them optional. Reports all failures at once.
 * @param name from the query, for bodies that are arrays; undefined if omitted
 */
export function readNewBatch(body: string, name: string | undefined): BatchReading<NewBatch> {
  const reading = readJson(body.trim() === '' ? '[]' : body)
  if (!reading.ok) return { failures: [`the body is not JSON: ${reading.problem}`] }
  const { value, text } = reading
  if (Array.isArray(value)) return newBatch({ name }, readRequests(value, text, ''))
  if (!isJsonObject(value)) return { failures: ['the body must be an array of requests, or an object with "requests"'] }
  const requests = isGiven(value.requests)
    ? memberRequests(value.requests, text)
    : { value: [] as readonly Submission[] }
  return newBatch({ ...value, name: value.name ?? name }, requests)
}

/** Reads the body that adds requests: `{"requests": [...]}`. Reports all failures at once. */
export function readMoreRequests(body: string): BatchReading<readonly Submission[]> {
  const reading = readJson(body)
  if (!reading.ok) return { failures: [`the body is not JSON: ${reading.problem}`] }
  const { value, text } = reading
  if (!isJsonObject(value) || value.requests === undefined) {
    return { failures: ['the body must be a JSON object with "requests", an array'] }
  }
  return memberRequests(value.requests, text)
}

/** Reads the body that names a batch: `{"name": "..."}`; null removes the name. */
export function readBatchName(body: string): BatchReading<string | null> {
  const reading = readJson(body)
  if (!reading.ok) return { failures: [`the body is not JSON: ${reading.problem}`] }
  if (!isJsonObject(reading.value) || reading.value.name === undefined) {
    return { failures: ['the body must be a JSON object with "name"'] }
  }
  const { name } = reading.value
  const failures = nameFailures(name)
  return failures.length > 0 ? { failures } : { value: isGiven(name) ? (name as string) : null }
}

function newBatch(
  { name, webhook }: { readonly name?: unknown; readonly webhook?: unknown },
  requests: BatchReading<readonly Submission[]>,
): BatchReading<NewBatch> {
  const failures = nameFailures(name)
  if (isGiven(webhook) && !isHttpUrl(webhook)) failures.push('"webhook" must be an http or https URL')
  if ('failures' in requests) return { failures: [...failures, ...requests.failures] }
  if (failures.length > 0) return { failures }
  const receiver = isGiven(webhook) && webhook !== '' ? (webhook as string) : null
  return { value: { name: isGiven(name) ? (name as string) : null, webhook: receiver, requests: requests.value } }
}

function memberRequests(value: unknown, text: string): BatchReading<readonly Submission[]> {
  if (!Array.isArray(value)) return { failures: ['"requests" must be an array'] }
  return readRequests(value, memberTexts(text).get('requests')!, 'requests')
}

function readRequests(values: readonly unknown[], text: string, name: string): BatchReading<readonly Submission[]> {
  if (values.length > BATCH.requests) {
    return { failures: [`there are ${values.length} requests; a batch may have ${BATCH.requests}`] }
  }
  const texts = elementTexts(text)
  const requests: Submission[] = []
  const failures: string[] = []
  for (const [index, value] of values.entries()) {
    const reading = isJsonObject(value)
      ? readParsedSubmission(value, texts[index]!)
      : { failures: ['it must be a JSON object with an "input" object'] }
    if ('submission' in reading) requests.push(reading.submission)
    else failures.push(...reading.failures.map(failure => `${name}[${index}]: ${failure}`))
  }
  if (failures.length === 0) return { value: requests }
  const more = failures.length - NAMED_FAILURES
  return { failures: [...failures.slice(0, NAMED_FAILURES), ...(more > 0 ? [`and ${more} more like these`] : [])] }
}

function nameFailures(name: unknown): string[] {
  if (!isGiven(name)) return []
  if (typeof name === 'string' && name.length >= 1 && name.length <= BATCH.nameLength) return []
  return [`"name" must be a string of 1 to ${BATCH.nameLength} characters`]
}
