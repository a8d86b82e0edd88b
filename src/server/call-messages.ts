/**
 * Job operations that a thread which reads HTTP sends to the deciding one as messages. A second exchange of HTTP, as
 * other requests that are passed on have, costs both threads more than the operation.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isEndpointId } from '../core/ids.ts'
import { peerAddress } from '../gateway/entrance/forwarded.ts'
import { MessageBatch } from '../gateway/threads/message-batch.ts'
import type { Clock } from '../ports/clock.ts'
import { FREE_BODY_BYTES, hasBody } from './connections.ts'

/** The operations. Others have large bodies or long answers, and a connection's own flow control. */
const OPERATIONS: ReadonlySet<string> = new Set([
  'run',
  'runsync',
  'status',
  'cancel',
  'retry',
  'health',
  'purge-queue',
])

/** A message of a thread about one of its calls. Numbers are those of the thread. */
export type CallMessage =
  | {
      readonly kind: 'call'
      readonly id: number
      readonly method: string
      readonly url: string
      readonly headers: IncomingHttpHeaders
      readonly rawHeaders: readonly string[]
      /** Address of the client; null if unknown. */
      readonly address: string | null
      /** Place of its body in {@link Packet.bodies}; null without one. */
      readonly body: number | null
    }
  /** `more`: the last piece of the response is written. `left`: the client sends no more, or is gone. */
  | { readonly kind: 'more' | 'left' | 'delivered' | 'gone'; readonly id: number }

/** A message of the deciding thread about a call. */
export type AnswerMessage =
  | {
      readonly kind: 'head'
      readonly id: number
      readonly status: number
      readonly headers: Readonly<Record<string, string | string[]>>
      /** Place of the whole body; null where pieces follow. */
      readonly body: number | null
    }
  | { readonly kind: 'piece'; readonly id: number; readonly body: number }
  | { readonly kind: 'end' | 'cut'; readonly id: number }

/**
 * The messages of a turn. Heads are JSON, which takes less time than a copy of objects; bodies are text with a
 * character for each byte, or for each character of a response that is text.
 */
export interface Packet {
  readonly heads: string
  readonly bodies: readonly string[]
}

/** Collects the messages of a turn with their bodies. */
export class PacketBatch<Message> {
  readonly #batch
  #bodies: string[] = []

  constructor(clock: Pick<Clock, 'after'>, send: (packet: Packet) => void) {
    this.#batch = new MessageBatch<Message>(clock, messages => {
      const bodies = this.#bodies
      this.#bodies = []
      send({ heads: JSON.stringify(messages), bodies })
    })
  }

  /** Adds a body. @returns its place */
  body(text: string): number {
    return this.#bodies.push(text) - 1
  }

  /** Sends a message at the end of the turn. */
  add(message: Message): void {
    this.#batch.add(message)
  }
}

/** True for a request that {@link CallSender} takes. Its length was found to be a number. */
export function isCall({ method, url = '', headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'POST') return false
  if (headers['transfer-encoding'] !== undefined || headers.upgrade !== undefined) return false
  if (Number(headers['content-length'] ?? 0) > FREE_BODY_BYTES) return false
  const [, version, endpointId = '', operation = ''] = url.split('?', 1)[0]!.split('/', 4)
  return version === 'v2' && isEndpointId(endpointId) && OPERATIONS.has(operation)
}

/** The calls of a thread that reads HTTP. */
export class CallSender {
  readonly #batch
  readonly #open = new Map<number, ServerResponse>()
  #last = 0

  /** @param send gets what the deciding thread has to receive */
  constructor(clock: Pick<Clock, 'after'>, send: (packet: Packet) => void) {
    this.#batch = new PacketBatch<CallMessage>(clock, send)
  }

  /** Sends a request for which {@link isCall} is true, once its body has arrived, and responds to it. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (!hasBody(incoming)) {
      this.#send(incoming, outgoing, null)
      return
    }
    let text = ''
    incoming.on('data', (piece: Buffer) => {
      text += piece.toString('latin1')
    })
    // The connection ends with it, and nothing has begun.
    incoming.on('error', () => {})
    incoming.once('end', () => {
      if (!outgoing.destroyed) this.#send(incoming, outgoing, text)
    })
  }

  /** Writes responses. */
  receive({ heads, bodies }: Packet): void {
    for (const message of JSON.parse(heads) as AnswerMessage[]) {
      const outgoing = this.#open.get(message.id)
      if (outgoing !== undefined) this.#write(outgoing, message, bodies)
    }
  }

  #send(incoming: IncomingMessage, outgoing: ServerResponse, body: string | null): void {
    const { method = 'GET', url = '/', headers, rawHeaders, socket } = incoming
    this.#last += 1
    const id = this.#last
    this.#open.set(id, outgoing)
    const left = () => this.#batch.add({ kind: 'left', id })
    // Any number of calls may wait on one connection.
    socket.setMaxListeners(0)
    socket.once('end', left)
    outgoing.once('close', () => {
      socket.off('end', left)
      this.#open.delete(id)
      this.#batch.add({ kind: outgoing.writableFinished ? 'delivered' : 'gone', id })
    })
    const place = body === null ? null : this.#batch.body(body)
    const address = peerAddress(incoming) ?? null
    this.#batch.add({ kind: 'call', id, method, url, headers, rawHeaders, address, body: place })
    if (socket.readableEnded) left()
  }

  #write(outgoing: ServerResponse, message: AnswerMessage, bodies: readonly string[]): void {
    switch (message.kind) {
      case 'head':
        outgoing.writeHead(message.status, message.headers)
        if (message.body === null) outgoing.flushHeaders()
        else outgoing.end(bodies[message.body]!)
        break
      case 'piece':
        outgoing.write(bodies[message.body]!, 'latin1', error => {
          if (error == null) this.#batch.add({ kind: 'more', id: message.id })
        })
        break
      case 'end':
        outgoing.end()
        break
      case 'cut':
        outgoing.destroy()
        break
    }
  }
}
