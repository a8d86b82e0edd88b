/** The deciding thread's side of the calls that threads which read HTTP send as messages. */
import { IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Stream, Writable } from 'node:stream'
import type { Clock } from '../ports/clock.ts'
import { type AnswerMessage, type CallMessage, type Packet, PacketBatch } from './call-messages.ts'

/** Takes a request that has no connection of its own in this thread. @param address of its client, if known */
export type TakeCall = (incoming: IncomingMessage, outgoing: ServerResponse, address: string | undefined) => void

/** The calls of one thread. */
export class CallReceiver {
  readonly #batch
  readonly #take
  readonly #open = new Map<number, CallResponse>()

  /** @param send gets what the thread has to receive */
  constructor(clock: Pick<Clock, 'after'>, send: (packet: Packet) => void, take: TakeCall) {
    this.#batch = new PacketBatch<AnswerMessage>(clock, send)
    this.#take = take
  }

  /** Handles messages of the thread. */
  receive({ heads, bodies }: Packet): void {
    for (const message of JSON.parse(heads) as CallMessage[]) {
      if (message.kind === 'call') this.#begin(message, message.body === null ? null : bodies[message.body]!)
      else this.#open.get(message.id)?.report(message.kind)
    }
  }

  #begin(call: CallMessage & { readonly kind: 'call' }, body: string | null): void {
    const { id, method, url, headers, rawHeaders, address } = call
    const socket = new CallSocket(() => response.cut())
    const response = new CallResponse(id, socket, this.#batch)
    this.#open.set(id, response)
    response.once('close', () => this.#open.delete(id))
    const incoming = new IncomingMessage(socket as unknown as Socket)
    Object.assign(incoming, { method, url, headers, rawHeaders, httpVersion: '1.1', complete: true })
    // Its socket has nothing to end.
    incoming._destroy = (error, callback) => callback(error)
    if (body !== null) incoming.push(Buffer.from(body, 'latin1'))
    incoming.push(null)
    this.#take(incoming, response as unknown as ServerResponse, address ?? undefined)
  }
}

/** In place of the connection of a call, which another thread has. */
class CallSocket extends Stream {
  readonly bytesRead = 0
  readonly bytesWritten = 0
  readonly writableLength = 0
  readableEnded = false
  destroyed = false
  readonly #cut

  /** @param cut ends the connection of the client */
  constructor(cut: () => void) {
    super()
    this.#cut = cut
  }

  destroy(): void {
    if (this.destroyed) return
    this.#cut()
    this.close()
  }

  /** The client sends no more. */
  end(): void {
    this.readableEnded = true
    this.emit('end')
  }

  /** The connection is gone. */
  close(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.emit('close')
  }
}

/** In place of the response of a call: what is written to it goes to the thread, piece by piece. */
class CallResponse extends Writable {
  statusCode = 200
  headersSent = false
  readonly #id
  readonly #socket
  readonly #batch
  /** True once a head with the whole body was sent. */
  #isWhole = false
  #headers: Record<string, string | string[]> = {}
  /** Called once the thread has written the last piece. */
  #written: (() => void) | null = null
  /** Called once the thread has passed the whole response to the network. */
  #delivered: (() => void) | null = null

  constructor(id: number, socket: CallSocket, batch: PacketBatch<AnswerMessage>) {
    super()
    this.#id = id
    this.#socket = socket
    this.#batch = batch
    // Its owner receives the end of the client.
    this.on('error', () => {})
  }

  setHeader(name: string, value: string): this {
    this.#headers[name] = value
    return this
  }

  /** @param rest a reason, which the thread does not need, and fields: an object, or names and values in turn */
  writeHead(status: number, ...rest: (string | OutgoingHttpHeaders | readonly string[])[]): this {
    this.statusCode = status
    const fields = rest.at(-1)
    if (Array.isArray(fields)) {
      for (let at = 0; at + 1 < fields.length; at += 2) this.#add(fields[at], fields[at + 1])
    } else if (typeof fields === 'object')
      for (const [name, value] of Object.entries(fields)) if (value !== undefined) this.#add(name, value)
    return this
  }

  flushHeaders(): void {
    if (!this.headersSent) this.#sendHead(null)
  }

  override end(...[body]: unknown[]): this {
    if (this.headersSent || this.destroyed || body instanceof Function) return super.end(body as never)
    const isText = typeof body === 'string'
    if (isText || body === undefined || body === null) {
      this.#sendHead(this.#batch.body(isText ? body : ''))
      return super.end()
    }
    return super.end(body as Uint8Array)
  }

  override _write(piece: Buffer, _encoding: string, written: (error?: Error | null) => void): void {
    this.flushHeaders()
    this.#written = written
    this.#batch.add({ kind: 'piece', id: this.#id, body: this.#batch.body(piece.toString('latin1')) })
  }

  override _final(delivered: () => void): void {
    this.#delivered = delivered
    if (this.#isWhole) return
    this.flushHeaders()
    this.#batch.add({ kind: 'end', id: this.#id })
  }

  /** A thread reports about the client. */
  report(kind: Exclude<CallMessage['kind'], 'call'>): void {
    if (kind === 'left') this.#socket.end()
    else if (kind === 'more') {
      const written = this.#written
      this.#written = null
      written?.()
    } else {
      if (kind === 'delivered') this.#delivered?.()
      else this.destroy()
      this.#socket.close()
    }
  }

  /** Ends the connection of the client. */
  cut(): void {
    this.#batch.add({ kind: 'cut', id: this.#id })
    this.destroy()
  }

  /** Fields of the same name are joined in a list. */
  #add(name: string, value: string | number | readonly string[]): void {
    const existing = this.#headers[name]
    const values = typeof value === 'object' ? [...value] : String(value)
    this.#headers[name] = existing === undefined ? values : [existing, values].flat()
  }

  #sendHead(body: number | null): void {
    this.headersSent = true
    this.#isWhole = body !== null
    this.#batch.add({ kind: 'head', id: this.#id, status: this.statusCode, headers: this.#headers, body })
  }
}
