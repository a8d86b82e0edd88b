/** Retries of calls to a hub. */
import { ModelError } from '../../core/models/model-problem.ts'
import { type Clock, pause } from '../../ports/clock.ts'

/** Limit of attempts in a row without a new byte. */
const MAX_FRUITLESS = 5
/** Limit of all attempts, those with a part included. */
const MAX_ATTEMPTS = 50
/** Downloads of a file whose content was wrong: the first may have begun with a part that a power cut left. */
const MAX_WRONG = 2

/** Options of {@link withRetries}. */
export interface Retries {
  readonly clock: Clock
  /** The wait before the second attempt; each further one is twice as long. */
  readonly backoffMs: number
  readonly signal: AbortSignal
}

/**
 * Tries again if that can help, after longer and longer waits.
 * @param attempt one attempt
 * @param got bytes received so far; an attempt that received more starts the waits again
 * @throws ModelError of the last attempt
 */
export async function withRetries<T>(
  { clock, backoffMs, signal }: Retries,
  attempt: () => Promise<T>,
  got: () => number = () => 0,
): Promise<T> {
  let fruitless = 0
  let wrong = 0
  for (let attempts = 1; ; attempts += 1) {
    const previousBytes = got()
    try {
      return await attempt()
    } catch (thrown) {
      if (signal.aborted) throw new ModelError({ kind: 'stopped' }, thrown)
      if (!(thrown instanceof ModelError) || attempts === MAX_ATTEMPTS) throw thrown
      wrong += thrown.problem.kind === 'content_wrong' ? 1 : 0
      fruitless = got() > previousBytes ? 1 : fruitless + 1
      if (!canHelp(thrown) || wrong === MAX_WRONG || fruitless === MAX_FRUITLESS) throw thrown
      await pause(clock, backoffMs * 2 ** (fruitless - 1), signal)
    }
  }
}

function canHelp({ problem }: ModelError): boolean {
  switch (problem.kind) {
    case 'hub_unreachable':
    case 'download_stalled':
    case 'answer_unreadable':
    case 'content_wrong':
      return true
    case 'hub_failed':
      return problem.status === 429 || problem.status >= 500
    default:
      return false
  }
}
