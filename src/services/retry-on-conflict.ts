import { AppError } from '../core/errors.ts'

const TRIES = 5

/**
 * Makes a change on top of the changes that others make at the same time.
 * @param subject the thing that is changed, for the sentence
 * @param attempt reads it, makes the change and stores it; null when others changed it in between
 * @throws AppError `conflict` when others keep changing it
 */
export async function retryOnConflict<Value>(subject: string, attempt: () => Promise<Value | null>): Promise<Value> {
  for (let n = 0; n < TRIES; n += 1) {
    const done = await attempt()
    if (done !== null) return done
  }
  throw new AppError('conflict', `${subject} is being changed by others; try again`)
}
