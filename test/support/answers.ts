import type { SocketAddress } from '../../src/core/workers/socket-address.ts'
import { systemClock } from '../../src/system/clock.ts'

/** The status with which a server answers a GET of its root; one that does not listen yet is waited for. */
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
