import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { allowedTrailers } from '../http1/fields.ts'
import type { WorkerConnection } from '../http1/worker-connection.ts'

/** Calls back once everything that can be read now was read. */
export type NextTurn = (callback: () => void) => void

/** Limit of bytes of a body that wait for the worker. */
const MAX_UNREAD_BYTES = 65_536

/** The body of a request on its way to a worker. */
export class Upload {
  readonly #incoming
  readonly #chunked
  readonly #onMove
  readonly #nextTurn
  #connection: WorkerConnection | null = null
  #listening = false
  #ended = false
  #stopped = false
  /** The worker does not read. */
  #blocked = false
  #resting = false
  /** Number of bytes of the body that have arrived. */
  bytes = 0

  /**
   * @param chunked true to send it in chunks
   * @param onMove called with the bytes so far, each time that some are sent; it may stop the upload
   */
  constructor(incoming: IncomingMessage, chunked: boolean, nextTurn: NextTurn, onMove: (bytes: number) => void) {
    this.#nextTurn = nextTurn
    this.#incoming = incoming
    this.#chunked = chunked
    this.#onMove = onMove
  }

  /** True if the client was asked for the body. */
  get asked(): boolean {
    return this.#listening
  }

  /** True if some of it was read, so that it cannot be sent again. */
  get begun(): boolean {
    return this.bytes > 0 || this.#ended
  }

  /** True if the client is the slower side. */
  get waitsForClient(): boolean {
    return !this.#ended && !this.#blocked
  }

  /** Sends the head of the request, then its body as it arrives. */
  to(connection: WorkerConnection, head: string): void {
    this.#connection = connection
    this.#blocked = false
    const { socket } = connection
    // One write for the head and the part of the body that has already arrived.
    socket.cork()
    socket.write(head, 'latin1')
    if (this.#listening) this.#incoming.resume()
    else {
      this.#listening = true
      this.#incoming.on('data', (bytes: Buffer) => this.#pass(bytes))
      this.#incoming.on('end', () => this.#end())
    }
    process.nextTick(uncork, socket)
  }

  /** Called when the worker has read the written bytes. */
  drained(): void {
    this.#blocked = false
    if (!this.#resting && !this.#stopped && this.#connection !== null) this.#incoming.resume()
  }

  /** Pauses: the request has no worker at the moment. */
  hold(): void {
    this.#connection = null
    if (!this.#stopped && this.#listening) this.#incoming.pause()
  }

  /** Discards the rest of the body, so that the client reads its response. */
  stop(): void {
    this.#connection = null
    if (this.#stopped) return
    this.#stopped = true
    if (!this.#ended) this.#incoming.resume()
  }

  #pass(bytes: Buffer): void {
    const socket = this.#connection?.socket
    this.bytes += bytes.length
    if (socket === undefined || this.#stopped) return
    this.#onMove(this.bytes)
    if (this.#stopped || !socket.writable) return
    let free: boolean
    if (this.#chunked) {
      socket.cork()
      socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1')
      socket.write(bytes)
      free = socket.write('\r\n', 'latin1')
      socket.uncork()
    } else free = socket.write(bytes)
    this.#blocked = !free && socket.writableLength >= MAX_UNREAD_BYTES
    this.#rest()
  }

  /**
   * Pauses until everything that can be read now was read. A worker that refuses the body responds and closes, and a
   * write to a closed connection discards the response that was not read yet.
   */
  #rest(): void {
    this.#incoming.pause()
    if (this.#resting) return
    this.#resting = true
    this.#nextTurn(() => {
      this.#resting = false
      if (!this.#blocked && (this.#connection !== null || this.#stopped)) this.#incoming.resume()
    })
  }

  #end(): void {
    this.#ended = true
    const connection = this.#connection
    if (connection === null || this.#stopped) return
    this.#onMove(this.bytes)
    if (this.#chunked && connection.socket.writable) {
      connection.socket.write(`0\r\n${trailerLines(this.#incoming.rawTrailers)}\r\n`, 'latin1')
    }
    connection.sent()
  }
}

function uncork(socket: Socket): void {
  socket.uncork()
}

function trailerLines(raw: readonly string[]): string {
  const passed = allowedTrailers(raw)
  let lines = ''
  for (let at = 0; at + 1 < passed.length; at += 2) lines += `${passed[at]}: ${passed[at + 1]}\r\n`
  return lines
}
