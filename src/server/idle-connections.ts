import type { Socket } from 'node:net'

/** A connection that counts for the limits. */
export interface OpenConnection {
  readonly socket: Socket
  /** Number of its requests without a complete response; an upgrade counts as one that never ends. */
  exchanges: number
  /** Beginning of its idle time, between two requests; null while it is not idle. */
  idleSinceMs: number | null
  /** Its neighbors in {@link IdleConnections}. */
  before: OpenConnection | null
  after: OpenConnection | null
}

/** A connection without a request. */
export function openConnection(socket: Socket): OpenConnection {
  return { socket, exchanges: 0, idleSinceMs: null, before: null, after: null }
}

/**
 * Connections between two requests, the longest idle first. Each request changes the list twice, so it is made of the
 * connections themselves: a `Map` would make a new table each time that it is full of deleted entries.
 */
export class IdleConnections {
  #first: OpenConnection | null = null
  #last: OpenConnection | null = null

  /** The longest idle one; null if there is none. */
  get first(): OpenConnection | null {
    return this.#first
  }

  /** Adds a connection that is not idle yet. */
  add(connection: OpenConnection, nowMs: number): void {
    connection.idleSinceMs = nowMs
    connection.before = this.#last
    if (this.#last === null) this.#first = connection
    else this.#last.after = connection
    this.#last = connection
  }

  /** Removes a connection, if it is idle. */
  remove(connection: OpenConnection): void {
    if (connection.idleSinceMs === null) return
    const { before, after } = connection
    if (before === null) this.#first = after
    else before.after = after
    if (after === null) this.#last = before
    else after.before = before
    connection.idleSinceMs = null
    connection.before = null
    connection.after = null
  }

  /** All of them, as they are at this moment. */
  all(): OpenConnection[] {
    const connections: OpenConnection[] = []
    for (let next = this.#first; next !== null; next = next.after) connections.push(next)
    return connections
  }
}
