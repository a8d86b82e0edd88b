import { isJsonObject, memberTexts, readJson } from '../json/json-text.ts'
import type { ReceivedText } from './large-text.ts'
import { JOB_TIMES } from './retention.ts'

/** A checked request of run or runsync. Texts are JSON as received. */
export interface Submission {
  readonly input: string
  /** The input where it is too large for {@link input}, which is empty then. */
  readonly largeInput?: ReceivedText
  readonly policy: string | null
  readonly webhook: string | null
  readonly s3Config: string | null
  /** Undefined if the client omitted it. */
  readonly executionTimeoutMs: number | undefined
  readonly ttlMs: number | undefined
  readonly lowPriority: boolean
}

/** A submission, or all problems of it, one sentence each. */
export type SubmissionReading = { readonly submission: Submission } | { readonly failures: readonly string[] }

/** Reads the body of run or runsync. Unknown members are ignored; all failures are reported at once. */
export function readSubmission(body: string): SubmissionReading {
  const reading = readJson(body)
  if (!reading.ok) return { failures: [`the body is not JSON: ${reading.problem}`] }
  if (!isJsonObject(reading.value)) return { failures: ['the body must be a JSON object with an "input" object'] }
  return readParsedSubmission(reading.value, reading.text)
}

/** {@link readSubmission} of an object that is already parsed. @param text the object as it was received */
export function readParsedSubmission(value: Readonly<Record<string, unknown>>, text: string): SubmissionReading {
  const { input, webhook, policy, s3Config } = value
  const failures: string[] = []
  if (input === undefined) failures.push('"input" is missing; it must be a JSON object')
  else if (!isJsonObject(input)) failures.push(`"input" must be a JSON object, not ${typeName(input)}`)
  if (isGiven(webhook) && !isHttpUrl(webhook)) failures.push('"webhook" must be an http or https URL')
  if (isGiven(s3Config) && !isJsonObject(s3Config)) failures.push('"s3Config" must be an object')
  if (isGiven(policy) && !isJsonObject(policy)) failures.push('"policy" must be an object')
  const fields = isJsonObject(policy) ? policy : {}
  failures.push(...policyFailures(fields))
  if (failures.length > 0) return { failures }
  const texts = memberTexts(text)
  return {
    submission: {
      input: texts.get('input')!,
      policy: isGiven(policy) ? texts.get('policy')! : null,
      webhook: isGiven(webhook) && webhook !== '' ? (webhook as string) : null,
      s3Config: isGiven(s3Config) ? texts.get('s3Config')! : null,
      executionTimeoutMs: numberOrUndefined(fields.executionTimeout),
      ttlMs: numberOrUndefined(fields.ttl),
      lowPriority: fields.lowPriority === true,
    },
  }
}

/**
 * Reads a number of milliseconds from a query string.
 * @returns undefined for a missing parameter; the problem, as a sentence, if it is not an integer within the
 * bounds
 */
export function readMilliseconds(
  name: string,
  text: string | undefined,
  bounds: { min: number; max: number },
): number | undefined | string {
  if (text === undefined) return undefined
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= bounds.min && value <= bounds.max) return value
  return `"${name}" must be an integer from ${bounds.min} to ${bounds.max} milliseconds`
}

function policyFailures(policy: Record<string, unknown>): string[] {
  const failures: string[] = []
  const { executionTimeout, ttl, lowPriority } = policy
  if (isGiven(executionTimeout))
    failures.push(...boundFailures('executionTimeout', executionTimeout, JOB_TIMES.executionTimeoutMs))
  if (isGiven(ttl)) failures.push(...boundFailures('ttl', ttl, JOB_TIMES.ttlMs))
  if (isGiven(lowPriority) && typeof lowPriority !== 'boolean')
    failures.push('"policy.lowPriority" must be true or false')
  return failures
}

function boundFailures(name: string, value: unknown, bounds: { min: number; max: number }): string[] {
  const fits = Number.isInteger(value) && (value as number) >= bounds.min && (value as number) <= bounds.max
  return fits ? [] : [`"policy.${name}" must be an integer from ${bounds.min} to ${bounds.max} milliseconds`]
}

/** True for a member of a body with a value: null counts as omitted. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

function numberOrUndefined(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`
}

/** True if a value can be the address of a receiver; an empty one counts as omitted. */
export function isHttpUrl(value: unknown): boolean {
  if (value === '') return true
  if (typeof value !== 'string' || value.length > 4096) return false
  return /^https?:\/\/[^/]/i.test(value) && URL.canParse(value)
}
