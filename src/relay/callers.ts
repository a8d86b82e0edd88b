import type { Socket } from 'node:net'
import { RelayShares, type Sharer } from './shares.ts'

/** Connections of known workers, and open calls. */
const MAX_CONNECTIONS = 16_000
const MAX_CALLS = 16_000
/** Limit of connections without a known token; the oldest are closed first. */
const MAX_NEW = 2_000

/** The connections and open calls, by worker. */
export class Callers {
  readonly #connections = new RelayShares(MAX_CONNECTIONS)
  readonly #calls = new RelayShares(MAX_CALLS)
  readonly #new = new Set<Socket>()
  readonly #admitted = new WeakSet<Socket>()

  /** Records a new connection. */
  noteConnection(socket: Socket): void {
    this.#new.add(socket)
    socket.once('close', () => this.#new.delete(socket))
    const [oldest] = this.#new
    if (this.#new.size > MAX_NEW) oldest!.destroy()
  }

  /** Marks a connection as that of the commanding server, which is not closed to make room. */
  markServer(socket: Socket): void {
    this.#new.delete(socket)
  }

  /** Begins a call of a worker on this connection, which must {@link leave} then; false if there is no room. */
  enter(sharer: Sharer, socket: Socket): boolean {
    if (!this.#calls.take(sharer, 1)) return false
    if (this.#admitted.has(socket)) return true
    if (!this.#connections.take(sharer, 1)) {
      this.#calls.give(sharer, 1)
      return false
    }
    this.#admitted.add(socket)
    this.#new.delete(socket)
    socket.once('close', () => this.#connections.give(sharer, 1))
    return true
  }

  /** Ends a call. */
  leave(sharer: Sharer): void {
    this.#calls.give(sharer, 1)
  }
}
