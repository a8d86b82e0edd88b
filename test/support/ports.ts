import type { Ports } from '../../src/ports/ports.ts'

/** The ports of an application of which a test uses a few. The others are undefined: a use of one fails the test. */
export function portsWith(given: Partial<Ports>): Ports {
  return given as Ports
}
