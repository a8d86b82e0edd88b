import { connect, type Socket } from 'node:net'
import type { SocketAddress } from '../../core/workers/socket-address.ts'
import { MalformedResponse, type ResponseHead } from './response-head.ts'
import { ResponseParser, type ResponseReader } from './response-parser.ts'

/** Why a connection ended before the answer was there. */
export interface Loss {
  /** `unreachable`: it was never made. `ended`: the worker closed or reset it. `malformed`: what it sent is no answer. */
  readonly kind: 'unreachable' | 'ended' | 'malformed'
  /** A phrase for the person who looks after the worker. */
  readonly problem: string
  /** Whether anything of an answer had come. */
  readonly begun: boolean
  /** Whether it had carried another request before, so that the worker may just have given it up. */
  readonly reused: boolean
}

/** Who has a connection for the time of one request. */
export interface ConnectionUser extends ResponseReader {
  onConnected(): void
  /** Everything that has come was handed over. */
  onRead(): void
  /** The answer is there wholly, and the connection no longer the user's. */
  onDone(trailers: readonly string[]): void
  /** After a 101: the connection is the user's for good, with what has come after the head. */
  onSwitched(socket: Socket, rest: Buffer): void
  /** What was written has gone out. */
  onDrain(): void
  /** The connection has ended, and is no longer the user's. */
  onLost(loss: Loss): void
}

/**
 * What comes from workers is read into here, one read after another: a buffer for each would be most of the garbage. Whoever
 * keeps bytes beyond the call has to copy them. Tunnels have buffers of their own.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536)

/** A connection to a worker, which carries one request after another. */
export class WorkerConnection {
  readonly socket: Socket
  readonly address: SocketAddress
  connected = false
  /** Since when nobody uses it, and until when it may be used again. */
  idleUntilMs = 0
  #reused = false
  #user: ConnectionUser | null = null
  #requestSent = false
  readonly #parser = new ResponseParser()
  readonly #onFree: (connection: WorkerConnection, head: ResponseHead) => void
  readonly #onGone: (connection: WorkerConnection) => void

  /**
   * @param forTunnel whether it may become one
   * @param onFree is told each time that the connection can carry another request
   * @param onGone is told once, when an idle connection has ended
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
    // Half-open, since a tunnel may have one direction only.
    const { host, port, socket } = address
    const where = socket === undefined ? { host, port } : { path: socket }
    const options = { ...where, noDelay: true, allowHalfOpen: true }
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

  /** Whether it has carried a request before the one that it has now. */
  get reused(): boolean {
    return this.#reused
  }

  /** Gives the connection to a user for one request. */
  use(user: ConnectionUser, toHead: boolean): void {
    this.#user = user
    this.#requestSent = false
    this.#parser.begin(user, toHead)
  }

  /** The last byte of the request was written, so that the connection is free after the answer. */
  sent(): void {
    this.#requestSent = true
  }

  /** Ends it at once, without telling its user. */
  destroy(): void {
    this.#user = null
    this.socket.destroy()
  }

  /** @returns false to rest */
  #onRead(size: number): boolean {
    this.#onData(READ_BUFFER.subarray(0, size))
    return true
  }

  readonly #onData = (bytes: Buffer): void => {
    const user = this.#user
    if (user === null) {
      // Nobody asked.
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
    // The user may have let go of it meanwhile.
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
      // The user may have stopped reading for its client.
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
    else this.#lose('unreachable', `it cannot be reached (${error.code ?? error.message})`)
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
