import type { IncomingMessage } from 'node:http'

/** Size in bytes from which a body waits for its turn: reading a smaller one takes less than a millisecond. */
const TURN_BYTES = 8_192

/**
 * Lets bodies through one by one, each in a turn of the event loop of its own. Many that came in at once would else be parsed in one turn,
 * and nobody would be answered meanwhile.
 */
export class BodyTurns {
  readonly #waiting: (() => void)[] = []

  /** The pieces of a body; behind the last one of a larger body is its turn. */
  pieces(incoming: IncomingMessage): AsyncIterable<Uint8Array> {
    const pieces = incoming.iterator({ destroyOnReturn: false })
    return Number(incoming.headers['content-length'] ?? TURN_BYTES) < TURN_BYTES ? pieces : this.#inTurn(pieces)
  }

  async *#inTurn(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0
    for await (const piece of pieces) {
      bytes += piece.byteLength
      yield piece
    }
    if (bytes >= TURN_BYTES) await this.#turn()
  }

  #turn(): Promise<void> {
    return new Promise(resolve => {
      this.#waiting.push(resolve)
      if (this.#waiting.length === 1) setImmediate(this.#next)
    })
  }

  /** An immediate that another one makes runs in the next turn. */
  readonly #next = (): void => {
    this.#waiting.shift()?.()
    if (this.#waiting.length > 0) setImmediate(this.#next)
  }
}
