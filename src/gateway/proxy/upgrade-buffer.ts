import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** The connection of a client that asks for another protocol. */
export interface Upgrading {
  readonly socket: Socket
  readonly early: UpgradeBuffer
}

/** Limit of bytes that wait until the worker agrees to another protocol. */
const MAX_EARLY_BYTES = 65_536

/**
 * Bytes that a client sends after an upgrade request, before the worker agreed. They are held back: a worker that
 * does not agree would take them for another request.
 */
export class UpgradeBuffer {
  readonly #socket
  #pieces: Buffer[] = []
  #bytes = 0

  /** @param head the bytes that arrived with the request */
  constructor(socket: Duplex, head: Buffer) {
    this.#socket = socket
    if (head.length > 0) this.#keep(head)
    socket.on('data', this.#keep)
    socket.on('end', this.#gone)
    socket.on('error', nothing)
  }

  /** Stops reading and returns the bytes. */
  take(): Buffer[] {
    this.#socket.off('data', this.#keep).off('end', this.#gone).off('error', nothing)
    const pieces = this.#pieces
    this.#pieces = []
    return pieces
  }

  /** Discards all bytes, so that the client reads its response: the worker did not agree. */
  discard(): void {
    this.#pieces = []
    this.#bytes = Number.NEGATIVE_INFINITY
    this.#socket.resume()
  }

  readonly #keep = (bytes: Buffer): void => {
    this.#bytes += bytes.length
    if (this.#bytes === Number.NEGATIVE_INFINITY) return
    this.#pieces.push(bytes)
    if (this.#bytes > MAX_EARLY_BYTES) this.#socket.pause()
  }

  /** The client is gone. */
  readonly #gone = (): void => {
    this.#socket.destroy()
  }
}

function nothing(): void {}
