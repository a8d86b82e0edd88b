import { AppError, toAppError } from '../core/errors.ts'
import { systemProblem } from '../disk/access-problem.ts'

/** A reason for which the server cannot start, as a sentence for the person who started it. */
export class StartError extends Error {}

/**
 * The sentence of a command about an error that ended it. An unexpected error has its stack: such a command has no log
 * for the details.
 */
export function startProblem(error: unknown): string {
  const { code, message } = toAppError(error)
  if (code !== 'internal' || error instanceof AppError) return message
  // Of the system, with the path: an obstacle there is nobody's mistake.
  return systemProblem(error) ?? mistake(error)
}

function mistake(error: unknown): string {
  return `an internal error occurred, which is a mistake in Runyard: ${(error instanceof Error && error.stack) || String(error)}`
}

/** The reason behind any error. */
export function toStartError(error: unknown): StartError {
  return error instanceof StartError ? error : new StartError(startProblem(error), { cause: error })
}
