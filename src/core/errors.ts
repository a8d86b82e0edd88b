import { type FieldProblem, problemSentence } from './field-problem.ts'

/**
 * Codes of all refusals of Runyard, with the HTTP status and the title of the REST problem. One table for all
 * surfaces; each surface has one renderer.
 */
export const ERROR_CODES = {
  invalid: { status: 400, title: 'Bad Request' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  not_found: { status: 404, title: 'Not Found' },
  method_not_allowed: { status: 405, title: 'Method Not Allowed' },
  conflict: { status: 409, title: 'Conflict' },
  too_large: { status: 413, title: 'Content Too Large' },
  unsupported_media: { status: 415, title: 'Unsupported Media Type' },
  rate_limited: { status: 429, title: 'Too Many Requests' },
  internal: { status: 500, title: 'Internal Server Error' },
  unavailable: { status: 503, title: 'Service Unavailable' },
} as const satisfies Record<string, { status: number; title: string }>

/** Retry-After of an `unavailable` refusal that gives no time of its own, in seconds. */
export const RETRY_UNAVAILABLE_S = 5

/** A key of {@link ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES

/** Data of an {@link AppError} besides its message. */
export interface ErrorExtras {
  /** One sentence per failed check, if a request failed several checks. */
  readonly failures?: readonly string[]
  /** The failed checks as data, for surfaces that render them with their own names of fields. */
  readonly problems?: readonly FieldProblem[]
  /**
   * Whole seconds after which a retry makes sense; becomes `Retry-After`. {@link RETRY_UNAVAILABLE_S} by default if
   * the code is `unavailable`.
   */
  readonly retryAfterSeconds?: number
  /** Methods that the path takes; becomes `Allow`. */
  readonly allow?: readonly string[]
  /** Cause of the error, for logs; never shown to a caller. */
  readonly cause?: unknown
}

/** The one error that crosses layers on purpose. Its message is a sentence for the sender of the request. */
export class AppError extends Error {
  readonly code: ErrorCode
  /** One sentence per failed check. */
  readonly failures: readonly string[]
  /** The failed checks of fields as data; empty if only the sentences exist. */
  readonly problems: readonly FieldProblem[]
  readonly retryAfterSeconds: number | undefined
  readonly allow: readonly string[]

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.name = 'AppError'
    this.code = code
    this.problems = extras.problems ?? []
    this.failures = extras.failures ?? []
    this.retryAfterSeconds = extras.retryAfterSeconds ?? (code === 'unavailable' ? RETRY_UNAVAILABLE_S : undefined)
    this.allow = extras.allow ?? []
  }

  /** HTTP status of the code. */
  get status(): number {
    return ERROR_CODES[this.code].status
  }
}

/**
 * An error for several failed checks of a request. Its sentences use the caller's names of the request's parts.
 * @param failures at least one sentence
 */
export function invalidRequest(failures: readonly string[]): AppError {
  return new AppError('invalid', failures.join('; '), { failures })
}

/**
 * An error for several wrong fields. Its sentences have the model's names until a surface renders it with its own.
 * @param problems at least one problem
 */
export function invalidFields(problems: readonly FieldProblem[]): AppError {
  const failures = problems.map(problem => problemSentence(problem))
  return new AppError('invalid', failures.join('; '), { failures, problems })
}

/**
 * An error as a surface shows it.
 * @param render returns the sentence of a problem, with the surface's names of fields
 */
export function renderFields(error: AppError, render: (problem: FieldProblem) => string): AppError {
  return error.problems.length === 0 ? error : invalidRequest(error.problems.map(render))
}

/** Error for something that does not exist, with its kind and name. Clients search for the words "not found". */
export function notFound(kind: string, id: string): AppError {
  return new AppError('not_found', `${kind} ${id} not found`)
}

/** Resource that the machine lacks, by the error code of the system. */
const LACKS: Readonly<Record<string, string>> = {
  ENOSPC: 'its disk is full',
  EDQUOT: 'its disk quota is used up',
  EROFS: 'its disk is read-only',
  EIO: 'its disk failed',
  EMFILE: 'it has too many open files',
  ENFILE: 'its machine has too many open files',
}

/**
 * Any thrown value as an AppError: `unavailable` if the machine lacks a resource that can come back, such as disk
 * space; any other unknown value becomes `internal`, with a message without details.
 */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown
  const lack = thrown instanceof Error && 'code' in thrown ? LACKS[String(thrown.code)] : undefined
  if (lack !== undefined)
    return new AppError('unavailable', `the server cannot do this now: ${lack}`, { cause: thrown })
  return new AppError('internal', 'an internal error occurred; the server log has the details', { cause: thrown })
}
