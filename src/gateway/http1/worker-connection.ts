import { connect, type Socket } from 'node:net'
import type { SocketAddress } from '../../core/workers/socket-address.ts'
import { MalformedResponse, type ResponseHead } from './response-head.ts'
import { ResponseParser, type ResponseReader } from './response-parser.ts'

/** Reason why a connection ended before the response was complete. */
export interface Loss {
  /**
   * `refused`: nobody listens at the address. `unreachable`: never connected for another reason. `ended`: closed or
   * reset by the worker. `malformed`: the worker sent no valid response.
   */
  readonly kind: 'refused' | 'unreachable' | 'ended' | 'malformed'
  /** A phrase for the operator of the worker. */
  readonly problem: string
  /** True if any byte of a response had arrived. */
  readonly begun: boolean
  /** True if it had carried a request before: the worker may have closed it as idle. */
  readonly reused: boolean
}

/** Codes of the system for an address at which nobody listens, or whose network is gone with its worker. */
const REFUSALS = new Set(['ECONNREFUSED', 'ENOENT', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Owns a connection for one request. */
export interface ConnectionUser extends ResponseReader {
  onConnected(): void
  /** All bytes of this read were handed over. */
  onRead(): void
  /** The response is complete, and the connection no longer the user's. */
  onDone(trailers: readonly string[]): void
  /** Called after a 101: the socket then belongs to the user. @param rest bytes after the head */
  onSwitched(socket: Socket, rest: Buffer): void
  /** All written bytes were handed to the system. */
  onDrain(): void
  /** The connection has ended, and is no longer the user's. */
  onLost(loss: Loss): void
}

/**
 * One buffer for all reads from workers: a buffer for each read would be most of the garbage. Users copy the bytes
 * that they need after the call. Tunnels have buffers of their own.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536)

/** A connection to a worker, which carries one request after another. */
export class WorkerConnection {
  readonly socket: Socket
  readonly address: SocketAddress
  connected = false
  /** End of the time in which it may be used again, while it is idle; monotonic. */
  idleUntilMs = 0
  #reused = false
  #user: ConnectionUser | null = null
  #requestSent = false
  readonly #parser = new ResponseParser()
  readonly #onFree
  readonly #onGone

  /**
   * @param forTunnel true if it may become a tunnel
   * @param onFree called each time the connection can carry another request
   * @param onGone called once, when the connection ends while idle
   */
  constructor(
    address: SocketAddress,
    forTunnel: boolean,
    onFree: (connection: WorkerConnection, head: ResponseHead) => void,
    onGone: (connection: WorkerConnection) => void,
  ) {
    this.address = address
    this.#onFree = onFree
    this.#onGone = onGone
    // One direction of a tunnel may end before the other.
    const { host, port, socket } = address
    const endpoint = socket === undefined ? { host, port } : { path: socket }
    const options = { ...endpoint, noDelay: true, allowHalfOpen: true }
    const onread = { buffer: READ_BUFFER, callback: (size: number) => this.#onRead(size) }
    this.socket = connect(forTunnel ? options : { ...options, onread })
    this.socket.once('connect', () => {
      this.connected = true
      this.#user?.onConnected()
    })
    if (forTunnel) this.socket.on('data', this.#onData)
    this.socket.on('drain', this.#onDrain)
    this.socket.on('end', this.#onEnd)
    this.socket.on('error', this.#onError)
    this.socket.on('close', this.#onClose)
  }

  /** True if it carried a request before the current one. */
  get reused(): boolean {
    return this.#reused
  }

  /** Gives the connection to a user for one request. */
  use(user: ConnectionUser, toHead: boolean): void {
    this.#user = user
    this.#requestSent = false
    this.#parser.begin(user, toHead)
  }

  /** The last byte of the request was written: the connection is free after the response. */
  sent(): void {
    this.#requestSent = true
  }

  /** Ends the connection at once, without a call of its user. */
  destroy(): void {
    this.#user = null
    this.socket.destroy()
  }

  /** @returns false to stop reading */
  #onRead(size: number): boolean {
    this.#onData(READ_BUFFER.subarray(0, size))
    return true
  }

  readonly #onData = (bytes: Buffer): void => {
    const user = this.#user
    if (user === null) {
      // A worker must not send anything without a request.
      this.socket.destroy()
      return
    }
    let rest: Buffer
    try {
      rest = this.#parser.take(bytes)
    } catch (thrown) {
      this.#lose('malformed', thrown instanceof MalformedResponse ? thrown.message : 'it cannot be read')
      if (!(thrown instanceof MalformedResponse)) throw thrown
      return
    }
    // The user may have ended it in one of its callbacks.
    if (this.#user !== user) return
    if (this.#parser.done) this.#finish(user, rest.length === 0)
    else if (this.#parser.switched) this.#switch(user, rest)
    else user.onRead()
  }

  #finish(user: ConnectionUser, isClean: boolean): void {
    const { head, trailers } = this.#parser
    this.#user = null
    if (isClean && this.#requestSent && head?.keepAlive === true && this.socket.writable) {
      this.#reused = true
      // The user may have paused it for a slow client.
      if (this.socket.isPaused()) this.socket.resume()
      this.#onFree(this, head)
    } else this.socket.destroy()
    user.onDone(trailers)
  }

  #switch(user: ConnectionUser, rest: Buffer): void {
    this.#user = null
    this.socket.off('data', this.#onData).off('drain', this.#onDrain).off('end', this.#onEnd)
    this.socket.off('error', this.#onError).off('close', this.#onClose)
    user.onSwitched(this.socket, rest)
  }

  readonly #onDrain = (): void => {
    this.#user?.onDrain()
  }

  readonly #onEnd = (): void => {
    const user = this.#user
    if (user !== null && this.#parser.end()) {
      this.#finish(user, false)
      return
    }
    this.#lose('ended', 'it closed the connection')
  }

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    if (this.connected) this.#lose('ended', `the connection broke (${error.code ?? error.message})`)
    else {
      const kind = REFUSALS.has(error.code ?? '') ? 'refused' : 'unreachable'
      this.#lose(kind, `it cannot be reached (${error.code ?? error.message})`)
    }
  }

  readonly #onClose = (): void => {
    this.#lose(this.connected ? 'ended' : 'unreachable', 'the connection ended')
  }

  #lose(kind: Loss['kind'], problem: string): void {
    const user = this.#user
    this.#user = null
    this.socket.destroy()
    if (user === null) this.#onGone(this)
    else user.onLost({ kind, problem, begun: this.#parser.begun, reused: this.#reused })
  }
}
