import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** The connection of a client that asks for another protocol. */
export interface Upgrading {
  readonly socket: Socket
  readonly early: UpgradeBuffer
}

/** So much may wait until the worker agrees to another protocol. */
const MOST_EARLY_BYTES = 65_536

/**
 * What a client that asks for another protocol sends before its worker agreed. It is kept back: a worker that does not agree
 * would take it for another request.
 */
export class UpgradeBuffer {
  readonly #socket: Duplex
  #pieces: Buffer[] = []
  #bytes = 0

  /** @param head what came with the request */
  constructor(socket: Duplex, head: Buffer) {
    this.#socket = socket
    if (head.length > 0) this.#keep(head)
    socket.on('data', this.#keep)
    socket.on('end', this.#gone)
    socket.on('error', nothing)
  }

  /** Stops to read, and gives what has come. */
  take(): Buffer[] {
    this.#socket.off('data', this.#keep).off('end', this.#gone).off('error', nothing)
    const pieces = this.#pieces
    this.#pieces = []
    return pieces
  }

  /** The worker did not agree. What comes is thrown away, so that the client gets its answer. */
  discard(): void {
    this.#pieces = []
    this.#bytes = Number.NEGATIVE_INFINITY
    this.#socket.resume()
  }

  readonly #keep = (bytes: Buffer): void => {
    this.#bytes += bytes.length
    if (this.#bytes === Number.NEGATIVE_INFINITY) return
    this.#pieces.push(bytes)
    if (this.#bytes > MOST_EARLY_BYTES) this.#socket.pause()
  }

  /** Nobody is there to get the answer. */
  readonly #gone = (): void => {
    this.#socket.destroy()
  }
}

function nothing(): void {}
