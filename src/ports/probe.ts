import type { HealthAnswer } from '../core/balancing/health-check.ts'
import type { SocketAddress } from '../core/workers/socket-address.ts'

/** Health checks of workers that serve requests, and the requests with which they sleep and wake. */
export interface Probes {
  /**
   * One GET of a path over a connection of its own; only the status of the response counts.
   * @param timeoutMs longest wait for the status, in milliseconds
   * @returns never rejects; see {@link HealthAnswer}
   */
  probe(address: SocketAddress, path: string, timeoutMs: number): Promise<HealthAnswer>
  /** As {@link probe} with a POST without a body, which asks a worker to sleep or to wake. No redirect is followed. */
  post(address: SocketAddress, path: string, timeoutMs: number): Promise<HealthAnswer>
  /**
   * The body of the answer to a GET, as text.
   * @param bearer token to send; none when left out
   * @param timeoutMs longest wait for all of it, in milliseconds
   * @param maxBytes its largest size
   * @returns null for any status but 200, a larger body, no answer in time, or one that is not UTF-8; never rejects
   */
  read(
    address: SocketAddress,
    path: string,
    timeoutMs: number,
    maxBytes: number,
    bearer?: string,
  ): Promise<string | null>
}
