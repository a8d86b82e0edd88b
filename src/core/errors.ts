/**
 * Every way in which Runyard refuses a request, with its HTTP status and the title of its REST problem. One table for
 * all surfaces; each surface has one renderer.
 */
export const ERROR_CODES = {
  invalid: { status: 400, title: 'Bad Request' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  not_found: { status: 404, title: 'Not Found' },
  method_not_allowed: { status: 405, title: 'Method Not Allowed' },
  conflict: { status: 409, title: 'Conflict' },
  too_large: { status: 413, title: 'Content Too Large' },
  rate_limited: { status: 429, title: 'Too Many Requests' },
  internal: { status: 500, title: 'Internal Server Error' },
  unavailable: { status: 503, title: 'Service Unavailable' },
} as const satisfies Record<string, { status: number; title: string }>

/** A key of {@link ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES

/**
 * What is wrong with a field of the input, in the model's own names. Each surface renders its own: see {@link withFieldNames}.
 */
export interface FieldProblem {
  readonly field: string
  /** What of the field is wrong, such as one item of a list. */
  readonly item?: string
  /** What is wrong with it, without the field's name. `{other}` stands for the name of `other`. */
  readonly problem: string
  /** The second field of a problem between two. */
  readonly other?: string
}

/** A failed check: of a field that surfaces call by different names, or a whole sentence. */
export type Failure = string | FieldProblem

/** What an {@link AppError} may say beyond its message. */
export interface ErrorExtras {
  /** One sentence per failed check, when a request failed several at once. */
  readonly failures?: readonly Failure[]
  /** Whole seconds after which trying again makes sense; becomes `Retry-After`. */
  readonly retryAfterSeconds?: number
  /** The methods that the path does take; becomes `Allow`. */
  readonly allow?: readonly string[]
  /** What caused it; for logs, never shown to a caller. */
  readonly cause?: unknown
}

/** The one error that crosses layers on purpose. Its message is a sentence for the person who made the request. */
export class AppError extends Error {
  readonly code: ErrorCode
  /** One sentence per failed check, with the model's names of fields. */
  readonly failures: readonly string[]
  /** The same as data. */
  readonly problems: readonly Failure[]
  readonly retryAfterSeconds: number | undefined
  readonly allow: readonly string[]

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.name = 'AppError'
    this.code = code
    this.problems = extras.failures ?? []
    this.failures = this.problems.map(problem => sentenceOf(problem))
    this.retryAfterSeconds = extras.retryAfterSeconds
    this.allow = extras.allow ?? []
  }

  /** The HTTP status that the code stands for. */
  get status(): number {
    return ERROR_CODES[this.code].status
  }
}

/**
 * An error for several failed checks at once.
 * @param failures at least one
 */
export function invalid(failures: readonly Failure[]): AppError {
  return new AppError('invalid', failures.map(failure => sentenceOf(failure)).join('; '), { failures })
}

/** Failures without those that say the same. */
export function distinct(failures: readonly Failure[]): Failure[] {
  return [...new Map(failures.map(failure => [sentenceOf(failure), failure])).values()]
}

/** A failed check as a sentence. @param names what a surface calls fields; those that are left out keep the model's name */
export function sentenceOf(failure: Failure, names: Readonly<Record<string, string>> = {}): string {
  if (typeof failure === 'string') return failure
  const { field, item, problem, other } = failure
  const [name, otherName] = [field, other ?? ''].map(field => names[field] ?? field)
  const text = other === undefined ? problem : problem.replace('{other}', () => otherName!)
  return item === undefined ? `${name} ${text}` : `${name}: ${item} ${text}`
}

/** An error as a surface tells it: with its own names of fields. */
export function withFieldNames(error: AppError, names: Readonly<Record<string, string>>): AppError {
  if (error.problems.every(problem => typeof problem === 'string')) return error
  return invalid(error.problems.map(problem => sentenceOf(problem, names)))
}

/** An error that says which thing of which kind does not exist; the words "not found" are what clients look for. */
export function notFound(kind: string, id: string): AppError {
  return new AppError('not_found', `${kind} ${id} not found`)
}

/** Any thrown value as an AppError: an unknown one becomes `internal` with a message that gives nothing away. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown
  return new AppError('internal', 'an internal error occurred; the server log has the details', { cause: thrown })
}
