import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { passedTrailers } from '../http1/fields.ts'
import type { WorkerConnection } from '../http1/worker-connection.ts'

/** Calls back once everything that can be read now was read. */
export type NextTurn = (callback: () => void) => void

/** So much of a body may wait for its worker. */
const MOST_UNSENT_BYTES = 65_536

/** The body of a request on its way to a worker. */
export class Upload {
  readonly #incoming: IncomingMessage
  readonly #chunked: boolean
  readonly #onMove: (bytes: number) => void
  readonly #nextTurn: NextTurn
  #connection: WorkerConnection | null = null
  #listening = false
  #ended = false
  #stopped = false
  /** The worker is behind. */
  #blocked = false
  #resting = false
  /** What of the body has come. */
  bytes = 0

  /**
   * @param chunked whether it goes on in chunks
   * @param onMove is told each time that some of it is handed on, and how much has come in all; it may stop it
   */
  constructor(incoming: IncomingMessage, chunked: boolean, nextTurn: NextTurn, onMove: (bytes: number) => void) {
    this.#nextTurn = nextTurn
    this.#incoming = incoming
    this.#chunked = chunked
    this.#onMove = onMove
  }

  /** Whether the client was asked for it. */
  get asked(): boolean {
    return this.#listening
  }

  /** Whether some of it was taken, so that it cannot be sent again. */
  get begun(): boolean {
    return this.bytes > 0 || this.#ended
  }

  /** Whether it is the client that is behind. */
  get waitsForClient(): boolean {
    return !this.#ended && !this.#blocked
  }

  /** Sends the head of the request and then its body, as it comes in. */
  to(connection: WorkerConnection, head: string): void {
    this.#connection = connection
    this.#blocked = false
    const { socket } = connection
    // With the head in one piece where the body is there already.
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

  /** The worker has taken what there was. */
  drained(): void {
    this.#blocked = false
    if (!this.#stopped && this.#connection !== null) this.#incoming.resume()
  }

  /** There is no worker for the moment. */
  hold(): void {
    this.#connection = null
    if (!this.#stopped && this.#listening) this.#incoming.pause()
  }

  /** Nobody wants the rest, which is taken and thrown away so that the client gets its answer. */
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
    this.#blocked = !free && socket.writableLength >= MOST_UNSENT_BYTES
    this.#rest()
  }

  /**
   * No more until what else there is to be read was read. A worker that does not want the body answers and hangs up, and a
   * write to a connection that was hung up takes with it what was not read yet.
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
  const passed = passedTrailers(raw)
  let lines = ''
  for (let at = 0; at + 1 < passed.length; at += 2) lines += `${passed[at]}: ${passed[at + 1]}\r\n`
  return lines
}
