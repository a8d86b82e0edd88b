import { z } from '@hono/zod-openapi'
import type { DocumentReading } from '../../core/bodies/document-size.ts'
import { AppError } from '../../core/errors.ts'
import { readJson } from '../../core/json/json-text.ts'
import { plainProblem } from './plain-problems.ts'
import type { BodyContract, Contract, Shape } from './route.ts'

/** Maximum number of failures in a response. The rest is counted. */
const MAX_FAILURES = 100

/** The validated parts of a request. */
export interface Validated {
  readonly params: Record<string, unknown>
  readonly query: Record<string, unknown>
  readonly headers: Record<string, unknown>
  readonly body: Record<string, unknown>
}

/**
 * Checks all parts of a request and reports all failures together, each with its path.
 * @param given the body; ignored if the contract takes no body. A large one is parsed already
 * @throws AppError `invalid`
 */
export function validate(
  contract: Contract<Shape, Shape, Shape, Shape>,
  request: Request,
  { params, query }: { readonly params: Record<string, string>; readonly query: URLSearchParams },
  given: string | DocumentReading,
): Validated {
  const failures: string[] = []
  const validated = {
    params: check(contract.params, params, 'path', failures),
    query: checkQuery(contract, Object.fromEntries(query), failures),
    headers: check(contract.headers, readHeaders(contract.headers, request), 'header', failures),
    body: contract.body === undefined ? {} : checkBody(contract.body, request, given, failures),
  }
  if (failures.length === 0) return validated
  const shown = failures.slice(0, MAX_FAILURES)
  if (failures.length > shown.length) shown.push(`and ${failures.length - shown.length} more`)
  throw new AppError('invalid', 'Request validation failed.', { failures: shown })
}

/** Checks members one by one, so that a failure of one does not hide the failures of others. */
function check(
  shape: Shape | undefined,
  given: Record<string, unknown>,
  place: string,
  failures: string[],
): Record<string, unknown> {
  const valid: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(shape ?? {})) {
    const result = schema.safeParse(Object.hasOwn(given, name) ? given[name] : undefined)
    if (!result.success) failures.push(...sentences(result.error, `${place}.${name}`, given[name] === undefined))
    else if (result.data !== undefined) valid[name] = result.data
  }
  return valid
}

/** Header names are case-insensitive. */
function readHeaders(shape: Shape | undefined, { headers }: Request): Record<string, unknown> {
  return Object.fromEntries(Object.keys(shape ?? {}).map(name => [name, headers.get(name) ?? undefined]))
}

function checkQuery(
  { query, queryRules }: Contract<Shape, Shape, Shape, Shape>,
  given: Record<string, string>,
  failures: string[],
): Record<string, unknown> {
  const valid = check(query, given, 'query', failures)
  const sent = new Set(Object.keys(given))
  for (const rule of queryRules ?? []) failures.push(...rule(valid, sent))
  return valid
}

function checkBody<B extends Shape>(
  contract: BodyContract<B>,
  request: Request,
  body: string | DocumentReading,
  failures: string[],
): Record<string, unknown> {
  const type = request.headers.get('content-type')
  if (type === null) failures.push('header.content-type: is missing; it must be application/json')
  else if (!/^application\/([a-z0-9.+-]+\+)?json\s*(;|$)/i.test(type)) {
    failures.push(`header.content-type: must be application/json, not ${type.slice(0, 100)}`)
  }
  const given = readObject(body, failures)
  if (given === null) return {}
  const unknown = Object.keys(given).filter(name => !Object.hasOwn(contract.shape, name))
  for (const name of contract.unknown === 'ignored' ? [] : unknown)
    failures.push(`$: additional properties '${name.slice(0, 100)}' not allowed`)
  const valid = check(contract.shape, given, '$', failures)
  const sent = new Set(Object.keys(given))
  for (const rule of contract.rules ?? []) failures.push(...rule(valid as Parameters<typeof rule>[0], sent))
  return valid
}

function readObject(body: string | DocumentReading, failures: string[]): Record<string, unknown> | null {
  const reading = typeof body === 'string' ? readJson(body) : body
  if (!reading.ok) {
    const isEmpty = typeof body === 'string' && body.trim() === ''
    const predicate = typeof body === 'string' ? 'is not JSON' : 'cannot be read'
    const problem = isEmpty ? 'the body is empty' : `the body ${predicate}: ${reading.problem}`
    failures.push(`$: ${problem.slice(0, 300)}`)
    return null
  }
  const { value } = reading
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  failures.push('$: the body must be a JSON object')
  return null
}

function sentences(error: z.ZodError, place: string, missing: boolean): string[] {
  return error.issues.map(issue => {
    const path = issue.path.reduce<string>(
      (text, key) => (typeof key === 'number' ? `${text}[${key}]` : `${text}.${String(key)}`),
      place,
    )
    const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined')
    if (isMissing || (missing && issue.path.length === 0)) return `${path}: is required`
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map(key => `${path}: additional properties '${key.slice(0, 100)}' not allowed`).join('; ')
    }
    return `${path}: ${plainProblem(lowerFirst(issue.message))}`
  })
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

/** A comma-separated list in a query, as the clients of this API write lists. */
export function commaList<Item extends z.ZodType>(item: Item, most = 100) {
  const split = (value: unknown) => (typeof value === 'string' ? value.split(',').map(part => part.trim()) : value)
  return z
    .preprocess(split, z.array(item).min(1).max(most).optional())
    .openapi({ param: { style: 'form', explode: false } })
}
