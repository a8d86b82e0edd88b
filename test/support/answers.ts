import type { SocketAddress } from '../../src/core/workers/socket-address.ts'
import { systemClock } from '../../src/system/clock.ts'

/** The status of GET / at a server. Waits until the server listens. */
export async function statusAt({ host, port }: SocketAddress): Promise<number> {
  for (;;) {
    try {
      const response = await fetch(`http://${host}:${port}/`)
      await response.body?.cancel()
      return response.status
    } catch {
      await new Promise<void>(resolve => systemClock.after(20, resolve))
    }
  }
}
