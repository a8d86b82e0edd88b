import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { ResponseHead } from '../gateway/http1/response-head.ts'
import { type ConnectionUser, type Loss, WorkerConnection } from '../gateway/http1/worker-connection.ts'

/** Limit of connections that are kept between requests. */
const MAX_IDLE = 256
/** Bytes of a response that wait for its reader before no more are read from the connection. */
const MAX_WAITING_BYTES = 1_048_576
/** A body of up to this size is written together with its head. */
const JOINED_BYTES = 65_536

/** A request as it is sent. */
export interface SentRequest {
  /** The line and the fields, with the empty line at their end. */
  readonly head: string
  /** Null without one. */
  readonly body: Buffer | Readable | null
  /** Its abort ends the request; null for one that goes on. */
  readonly signal: AbortSignal | null
}

/** A response as it arrives. */
export interface ReceivedResponse {
  readonly status: number
  /** Names and values in turn, without those about the connection. */
  readonly headers: readonly string[]
  /** Throws if the connection ends before the body does. A reader that stops early ends the connection. */
  readonly body: AsyncIterable<Buffer> | Iterable<Buffer>
}

/**
 * A client of one server, with the connections of the gateway, which cost a third of those of Node: each carries one
 * request at a time, and the next one after it.
 */
export class ServerClient {
  /** Address of the server. */
  readonly address
  readonly #idle: WorkerConnection[] = []
  readonly #open = new Set<WorkerConnection>()

  constructor(address: { readonly host: string; readonly port: number }) {
    this.address = address
  }

  /** Sends a request. @throws when no response came, although the server may have acted */
  send(request: SentRequest): Promise<ReceivedResponse> {
    const connection = this.#takeConnection()
    const exchange = new Exchange(connection, request)
    connection.use(exchange, false)
    exchange.begin()
    return exchange.response
  }

  /** Ends all connections. Requests without a whole response fail. */
  close(): void {
    for (const { socket } of this.#open) socket.destroy()
  }

  #takeConnection(): WorkerConnection {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) if (idle.socket.writable) return idle
    const connection = new WorkerConnection(
      this.address,
      false,
      freed => (this.#idle.length < MAX_IDLE ? this.#idle.push(freed) : freed.destroy()),
      gone => {
        const at = this.#idle.indexOf(gone)
        if (at >= 0) this.#idle.splice(at, 1)
      },
    )
    this.#open.add(connection)
    connection.socket.once('close', () => this.#open.delete(connection))
    return connection
  }
}

/** One request and its response. */
class Exchange implements ConnectionUser {
  readonly #connection
  readonly #request
  readonly #outcome = Promise.withResolvers<ReceivedResponse>()
  #head: ResponseHead | null = null
  #pieces: Buffer[] = []
  #waitingBytes = 0
  #isShown = false
  #isWhole = false
  #failure: Error | null = null
  #wakeReader = () => {}
  #wakeWriter = () => {}

  constructor(connection: WorkerConnection, request: SentRequest) {
    this.#connection = connection
    this.#request = request
  }

  get response(): Promise<ReceivedResponse> {
    return this.#outcome.promise
  }

  begin(): void {
    const { head, body, signal } = this.#request
    const { socket } = this.#connection
    if (signal?.aborted === true) {
      this.#abort()
      return
    }
    signal?.addEventListener('abort', this.#abort)
    if (body !== null && !Buffer.isBuffer(body)) {
      void this.#write(head, body)
      return
    }
    if (body === null) socket.write(head, 'latin1')
    else if (body.byteLength <= JOINED_BYTES) socket.write(Buffer.concat([Buffer.from(head, 'latin1'), body]))
    else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
    }
    this.#connection.sent()
  }

  onConnected(): void {}

  onHead(head: ResponseHead): void {
    if (head.status >= 200) this.#head = head
  }

  onBody(piece: Buffer): void {
    // The connection reads into the same bytes again.
    this.#pieces.push(Buffer.from(piece))
    this.#waitingBytes += piece.byteLength
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#connection.socket.pause()
  }

  onRead(): void {
    this.#show()
  }

  onDone(): void {
    this.#isWhole = true
    this.#show()
    this.#end()
  }

  /** No request asks for another protocol. */
  onSwitched(socket: Socket): void {
    socket.destroy()
    this.#fail(new Error('the server changed the protocol'))
  }

  onDrain(): void {
    this.#wakeWriter()
  }

  onLost({ problem }: Loss): void {
    this.#fail(new Error(`the server did not answer: ${problem}`))
  }

  readonly #abort = (): void => {
    this.#connection.destroy()
    this.#fail(new Error('the request was ended'))
  }

  /** Hands the response to its reader once its head is there. */
  #show(): void {
    this.#wakeReader()
    if (this.#head === null || this.#isShown) return
    this.#isShown = true
    const { status, headers, requestId } = this.#head
    const body = this.#isWhole ? this.#pieces : this.#body()
    const shown = requestId === null ? headers : [...headers, 'x-request-id', requestId]
    this.#outcome.resolve({ status, headers: shown, body })
  }

  async *#body(): AsyncGenerator<Buffer, void> {
    try {
      for (;;) {
        const pieces = this.#pieces
        this.#pieces = []
        this.#waitingBytes = 0
        if (!this.#isWhole && this.#connection.socket.isPaused()) this.#connection.socket.resume()
        yield* pieces
        if (this.#failure !== null) throw this.#failure
        if (this.#pieces.length > 0) continue
        if (this.#isWhole) return
        await new Promise<void>(resolve => {
          this.#wakeReader = resolve
        })
      }
    } finally {
      if (!this.#isWhole) this.#abort()
    }
  }

  async #write(head: string, body: Readable): Promise<void> {
    const { socket } = this.#connection
    try {
      socket.write(head, 'latin1')
      // Its end would close the file, which the next attempt reads again.
      for await (const piece of body.iterator({ destroyOnReturn: false })) {
        // A server that refuses a body answers before its end.
        if (this.#isWhole || this.#failure !== null) return
        if (socket.write(piece)) continue
        await new Promise<void>(resolve => {
          this.#wakeWriter = resolve
        })
      }
      this.#connection.sent()
    } catch (error) {
      this.#connection.destroy()
      this.#fail(error as Error)
    }
  }

  #fail(error: Error): void {
    if (this.#isWhole || this.#failure !== null) return
    this.#failure = error
    this.#outcome.reject(error)
    this.#wakeReader()
    this.#end()
  }

  #end(): void {
    this.#request.signal?.removeEventListener('abort', this.#abort)
    this.#wakeWriter()
  }
}
