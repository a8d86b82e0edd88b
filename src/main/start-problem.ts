import { AppError, toAppError } from '../core/errors.ts'
import { systemProblem } from '../disk/access-problem.ts'

/**
 * What a command that ended says of an error. One that nobody foresaw is shown with its stack: such a command has no log where the details
 * could be.
 */
export function startProblem(error: unknown): string {
  const { code, message } = toAppError(error)
  if (code !== 'internal' || error instanceof AppError) return message
  // Of the system, with the path: what is in the way there is nobody's mistake.
  return systemProblem(error) ?? mistake(error)
}

function mistake(error: unknown): string {
  return `an internal error occurred, which is a mistake in Runyard: ${(error instanceof Error && error.stack) || String(error)}`
}
