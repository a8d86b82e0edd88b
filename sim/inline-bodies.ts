import { readHere } from '../src/core/bodies/body-readings.ts'
import type { BodyParser } from '../src/ports/body-parser.ts'

/** Large bodies are read where they are: there are no threads under virtual time. */
export const inlineBodies: BodyParser = {
  read: async (name, body, ...rest) => readHere(name, body, rest),
}
