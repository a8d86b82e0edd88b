import { readHere } from '../src/core/bodies/body-readings.ts'
import type { BodyParser } from '../src/ports/body-parser.ts'

/** Parses large bodies in the same thread: virtual time has no other threads. */
export const inlineBodies: BodyParser = {
  read: async (_account, name, body, ...rest) => readHere(name, body, rest),
}
