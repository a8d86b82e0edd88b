import type { Ports } from '../../src/ports/ports.ts'

/** The ports of an application of which a test uses a few. The others are undefined: a use of one fails the test. */
export function portsWith(ports: Partial<Ports>): Ports {
  return ports as Ports
}
