import type { IncomingMessage } from 'node:http'

/** Size in bytes from which a body waits for its turn: reading a smaller one takes less than a millisecond. */
const TURN_BYTES = 8_192

/**
 * Lets bodies through one by one, each in a turn of the event loop of its own, and accounts after each other.
 * Otherwise many that arrive at once would be parsed in one turn, and no caller would get an answer in that time.
 */
export class BodyTurns {
  /** In the order of the next turns of accounts. An account without a waiting body has no entry. */
  readonly #waiting = new Map<string, (() => void)[]>()

  /**
   * The pieces of a body; behind the last one of a larger body is its turn.
   * @param owner returns the account of the sender; empty while unknown. Called when the turn begins to wait
   */
  pieces(incoming: IncomingMessage, owner: () => string): AsyncIterable<Uint8Array> {
    const pieces = incoming.iterator({ destroyOnReturn: false })
    return Number(incoming.headers['content-length'] ?? TURN_BYTES) < TURN_BYTES ? pieces : this.#inTurn(pieces, owner)
  }

  async *#inTurn(pieces: AsyncIterable<Uint8Array>, owner: () => string): AsyncGenerator<Uint8Array> {
    let bytes = 0
    for await (const piece of pieces) {
      bytes += piece.byteLength
      yield piece
    }
    if (bytes >= TURN_BYTES) await this.#turn(owner())
  }

  #turn(owner: string): Promise<void> {
    return new Promise(resolve => {
      if (this.#waiting.size === 0) setImmediate(this.#next)
      const bodies = this.#waiting.get(owner)
      if (bodies === undefined) this.#waiting.set(owner, [resolve])
      else bodies.push(resolve)
    })
  }

  /** An immediate that another one makes runs in the next turn. */
  readonly #next = (): void => {
    const [entry] = this.#waiting
    if (entry === undefined) return
    const [owner, bodies] = entry
    this.#waiting.delete(owner)
    bodies.shift()?.()
    if (bodies.length > 0) this.#waiting.set(owner, bodies)
    if (this.#waiting.size > 0) setImmediate(this.#next)
  }
}
