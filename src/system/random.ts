import { randomBytes, randomUUID } from 'node:crypto'
import type { Random } from '../ports/random.ts'

/** The operating system's randomness, good for keys and tokens. */
export const systemRandom: Random = {
  bytes: count => randomBytes(count),
  uuid: () => randomUUID(),
}
