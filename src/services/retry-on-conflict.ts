import { AppError } from '../core/errors.ts'

const TRIES = 5

/**
 * Makes a change on top of what others have changed meanwhile.
 * @param what the thing that is changed, for the sentence
 * @param attempt reads it, makes the change up and stores it; null when it was not any more what was read
 * @throws AppError `conflict` when others keep changing it
 */
export async function retryOnConflict<Value>(what: string, attempt: () => Promise<Value | null>): Promise<Value> {
  for (let n = 0; n < TRIES; n += 1) {
    const done = await attempt()
    if (done !== null) return done
  }
  throw new AppError('conflict', `${what} is being changed by others; try again`)
}
