import type { HealthAnswer } from '../core/balancing/health-check.ts'
import type { SocketAddress } from '../core/workers/socket-address.ts'

/** Health checks of workers that serve requests. */
export interface Probes {
  /**
   * One GET of a path over a connection of its own; only the status of the response counts.
   * @param timeoutMs how long it may take until the status is there
   * @returns never rejects; see {@link HealthAnswer}
   */
  probe(address: SocketAddress, path: string, timeoutMs: number): Promise<HealthAnswer>
}
