/**
 * Clients that send their request and shut their writing side: they get their answer all the same. A client
 * that has gone looks like them until something is written to it, so the first characters of the answer, which
 * are always the same, are written early, one at a time: the system of a client that has gone refuses the
 * first, and the next one finds the connection ended. Of an answer in chunks that has begun, zeros before the
 * size of the next chunk are written.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Beginning of all responses of Node's server, also to HTTP/1.0. */
const BEGINNING = 'HTTP/1.1 '
/** Pauses before each character, in ms; together longer than the longest wait for a response (5.5 minutes). */
const PAUSES_MS = [0, 50, 250, 2_000, 10_000, 30_000, 60_000, 90_000, 150_000]

const LATEST = Symbol('latest')
type TrackedSocket = Socket & { [LATEST]?: ServerResponse }

/**
 * Answers clients that have shut their writing side, and notices those that have gone. To be called before
 * the server has connections.
 */
export function answerHalfClosed(server: Server): void {
  // An option of Node's server without documentation; otherwise the end of a client's data ends its requests.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.prependListener('request', ({ socket }, outgoing) => {
    ;(socket as TrackedSocket)[LATEST] = outgoing
  })
  server.on('connection', (socket: TrackedSocket) => {
    socket.once('end', () => {
      const latest = socket[LATEST]
      if (latest === undefined || latest.socket !== socket) return
      if (hasStarted(latest)) writeZeros(socket, latest, 0)
      else if (hasNotStarted(latest, socket)) new EarlyWriter(socket, latest).next()
    })
  })
}

/** True when the response is the next on its connection, and nothing of it was written. */
function hasNotStarted(outgoing: ServerResponse, socket: Socket): boolean {
  return outgoing.socket === socket && !hasStarted(outgoing) && socket.writable && socket.writableLength === 0
}

/** True when its head was written, by the test of Node's own code; `headersSent` is true before that. */
function hasStarted(outgoing: ServerResponse): boolean {
  return (outgoing as ServerResponse & { readonly _headerSent?: boolean })._headerSent !== false
}

/**
 * Writes a zero before the size of the next chunk unless something waits to be written, and others
 * later, while no chunk comes.
 */
function writeZeros(socket: Socket, outgoing: ServerResponse, written: number): void {
  const hasChunks = outgoing.chunkedEncoding && outgoing.req.method !== 'HEAD' && !outgoing.writableEnded
  if (!hasChunks || outgoing.socket !== socket || !socket.writable) return
  // The system refuses waiting bytes as it refuses a zero, and the next write fails.
  if (socket.writableLength === 0) socket.write('0', 'latin1')
  const bytes = socket.bytesWritten
  const pauseMs = PAUSES_MS[written + 1]
  if (pauseMs === undefined) return
  const timer = setTimeout(() => {
    if (socket.bytesWritten === bytes) writeZeros(socket, outgoing, written + 1)
  }, pauseMs).unref()
  socket.once('close', () => clearTimeout(timer))
}

/** Writes the beginning of one response, and leaves it out of the response itself. */
class EarlyWriter {
  readonly #socket
  readonly #outgoing
  readonly #write
  #sent = 0
  #timer: NodeJS.Timeout | undefined

  constructor(socket: Socket, outgoing: ServerResponse) {
    this.#socket = socket
    this.#outgoing = outgoing
    this.#write = socket.write
    socket.write = ((
      data: string | Uint8Array,
      ...rest: Parameters<Socket['write']> extends [unknown, ...infer Rest] ? Rest : never
    ) => {
      this.#stop()
      const unsent = typeof data === 'string' ? data.slice(this.#sent) : data.subarray(this.#sent)
      return socket.write(unsent, ...rest)
    }) as Socket['write']
    socket.once('close', () => clearTimeout(this.#timer))
  }

  /** Writes the next character, and schedules the following one. */
  next(): void {
    if (!hasNotStarted(this.#outgoing, this.#socket)) return
    this.#write.call(this.#socket, BEGINNING[this.#sent]!, 'latin1')
    this.#sent += 1
    const pauseMs = PAUSES_MS[this.#sent]
    if (pauseMs !== undefined) this.#timer = setTimeout(() => this.next(), pauseMs).unref()
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#socket.write = this.#write
  }
}
