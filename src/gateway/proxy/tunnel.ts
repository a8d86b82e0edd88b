import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Result of a tunnel. */
export interface TunnelEnd {
  readonly bytesIn: number
  readonly bytesOut: number
  /** True if both sides ended their directions in order. */
  readonly orderly: boolean
  /** True if the worker broke it off. */
  readonly byWorker: boolean
}

/** Limit of bytes that wait for a side that does not read. */
const MAX_UNREAD_BYTES = 65_536

/** Two joined connections: bytes go in both directions as they arrive, and each direction ends by itself. */
export class Tunnel {
  readonly #client
  readonly #worker
  readonly #onEnd
  #bytesIn = 0
  #bytesOut = 0
  #open = 2
  #broken: 'client' | 'worker' | 'nobody' | null = null
  #moved = true
  #quietSinceMs = 0

  /**
   * @param early bytes that the client sent before the worker agreed
   * @param rest bytes that the worker sent right after its head
   * @param onEnd called once, when both sides are closed
   */
  constructor(
    client: Duplex,
    worker: Socket,
    early: readonly Buffer[],
    rest: Buffer,
    onEnd: (tunnelled: TunnelEnd) => void,
  ) {
    this.#client = client
    this.#worker = worker
    this.#onEnd = onEnd
    client.on('data', (bytes: Buffer) => this.#toWorker(bytes))
    worker.on('data', (bytes: Buffer) => this.#toClient(bytes))
    client.on('drain', () => worker.resume())
    worker.on('drain', () => client.resume())
    client.on('end', () => worker.end())
    worker.on('end', () => client.end())
    client.on('error', () => {})
    worker.on('error', () => {})
    client.on('close', () => this.#closed('client', client, worker))
    worker.on('close', () => this.#closed('worker', worker, client))
    if (rest.length > 0) this.#toClient(rest)
    for (const bytes of early) this.#toWorker(bytes)
    client.resume()
    worker.resume()
  }

  /** Ends it when nothing moved for too long; neither side is blamed. */
  tick(nowMs: number, idleMs: number): void {
    if (this.#moved) {
      this.#moved = false
      this.#quietSinceMs = nowMs
    } else if (nowMs - this.#quietSinceMs >= idleMs) {
      this.#broken ??= 'nobody'
      this.destroy()
    }
  }

  /** Ends both sides at once. */
  destroy(): void {
    this.#client.destroy()
    this.#worker.destroy()
  }

  #toWorker(bytes: Buffer): void {
    this.#moved = true
    this.#bytesIn += bytes.length
    if (this.#worker.writable && !this.#worker.write(bytes) && this.#worker.writableLength >= MAX_UNREAD_BYTES) {
      this.#client.pause()
    }
  }

  #toClient(bytes: Buffer): void {
    this.#moved = true
    this.#bytesOut += bytes.length
    if (this.#client.writable && !this.#client.write(bytes) && this.#client.writableLength >= MAX_UNREAD_BYTES) {
      this.#worker.pause()
    }
  }

  #closed(name: 'client' | 'worker', side: Duplex, other: Duplex): void {
    this.#open -= 1
    if (!side.readableEnded || side.errored !== null) {
      this.#broken ??= name
      // The other side has to see a reset, not an orderly end.
      if (!other.destroyed) reset(other)
    }
    if (this.#open > 0) return
    const byWorker = this.#broken === 'worker'
    this.#onEnd({ bytesIn: this.#bytesIn, bytesOut: this.#bytesOut, orderly: this.#broken === null, byWorker })
  }
}

function reset(side: Duplex): void {
  if ('resetAndDestroy' in side) (side as Socket).resetAndDestroy()
  else side.destroy()
}
