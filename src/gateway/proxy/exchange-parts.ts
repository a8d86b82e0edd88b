import type { Socket } from 'node:net'
import type { Clock } from '../../ports/clock.ts'
import type { WorkerConnections } from '../http1/worker-connections.ts'
import type { Reservations } from '../queue/reservation.ts'
import type { UpgradeBuffer } from './upgrade-buffer.ts'
import type { NextTurn } from './upload.ts'

/** How long things may take. Milliseconds. */
export interface ExchangeLimits {
  /** Until the connection to a worker is made. */
  readonly connectMs: number
  /** From the last byte of the request until the head of the answer. */
  readonly headersMs: number
  /** A body of which nothing moves. */
  readonly streamIdleMs: number
  /** A socket on which nothing moves. */
  readonly socketIdleMs: number
}

/** Looks now and then whether something takes too long. */
export interface Ticking {
  tick(nowMs: number): void
}

/** What all exchanges share. */
export interface ProxyExchangeParts {
  readonly clock: Clock
  readonly reservations: Reservations
  readonly connections: WorkerConnections
  readonly nextTurn: NextTurn
  /** The body of a request may be this large. */
  readonly bodyBytes: number
  readonly limits: ExchangeLimits
  /** Those that have not ended. */
  readonly live: Set<Ticking>
}

/** The connection of a client that asks for another protocol. */
export interface Upgrading {
  readonly socket: Socket
  readonly early: UpgradeBuffer
}
