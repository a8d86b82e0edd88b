import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type AppError, toAppError } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import { inWords, tooLarge } from '../entrance/refusal.ts'
import { type RequestHead, requestHead } from '../http1/request-head.ts'
import { mayBeSilent, type ResponseHead } from '../http1/response-head.ts'
import type { ConnectionUser, Loss, WorkerConnection } from '../http1/worker-connection.ts'
import type { Affinity, RequestOutcome, Reservation, WorkerRequest } from '../queue/reservation.ts'
import type { ProxyExchangeParts, Upgrading } from './exchange-parts.ts'
import { ExchangeTimings } from './exchange-timings.ts'
import { withinEndpoint } from './origin-wide.ts'
import type { AccessLogEntry, ProxyRequest } from './proxy-request.ts'
import { ResponseWriter, switchingText } from './response-writer.ts'
import { Tunnel, type Tunnelled } from './tunnel.ts'
import { Upload } from './upload.ts'

const MOST_WORKERS = 2
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])
const CLIENT_GONE = 499

/** One call, from its head to the last byte of its answer. */
export class ProxyExchange implements ConnectionUser, WorkerRequest {
  readonly endpointId: EndpointId
  readonly isStranger: boolean
  affinity: Affinity | null = null
  readonly avoid: WorkerId[] = []
  readonly #parts: ProxyExchangeParts
  readonly #incoming: IncomingMessage
  readonly #outgoing: ServerResponse
  readonly #call: ProxyRequest
  readonly #upgrading: Upgrading | null
  readonly #method: string
  readonly #timings: ExchangeTimings
  readonly #answering: ResponseWriter
  #head: RequestHead | null = null
  #upload: Upload | null = null
  #tunnel: Tunnel | null = null
  #tunnelled: Tunnelled | null = null
  #switching: ResponseHead | null = null
  #answer: ResponseHead | null = null
  #controller: AbortController | null = null
  #reservation: Reservation | null = null
  #connection: WorkerConnection | null = null
  #resolve: (passed: AccessLogEntry) => void = () => {}
  /** The client has its answer, or is gone. */
  #over = false
  /** In the line. */
  #waiting = false
  /** A connection that was idle was found dead, and another one was made. */
  #renewed = false
  #complete = false
  #workerId: WorkerId | null = null
  #tries = 0

  /** @param upgrading null for a request that wants nothing but an answer */
  constructor(
    parts: ProxyExchangeParts,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    call: ProxyRequest,
    upgrading: Upgrading | null,
  ) {
    this.#parts = parts
    this.#incoming = incoming
    this.#outgoing = outgoing
    this.#call = call
    this.#upgrading = upgrading
    this.#method = incoming.method ?? 'GET'
    this.endpointId = call.endpointId
    this.isStranger = call.isOpen === true
    this.#timings = new ExchangeTimings(parts.clock)
    this.#answering = new ResponseWriter(incoming, outgoing)
  }

  /** Aborted when the client is gone. Made for those who look at it only: most requests never wait. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#over) this.#controller.abort()
    return this.#controller.signal
  }

  /** Goes through with it, whatever happens. */
  run(): Promise<AccessLogEntry> {
    return new Promise(resolve => {
      this.#resolve = resolve
      this.#parts.live.add(this)
      this.#outgoing.on('close', () => this.#onClosed())
      if (this.#outgoing.destroyed || this.#incoming.socket.destroyed) this.#onClosed()
      else this.#begin()
    })
  }

  /** Looks whether something takes too long. */
  tick(nowMs: number): void {
    const { connectMs, headersMs, streamIdleMs, socketIdleMs } = this.#parts.limits
    if (this.#tunnel !== null) {
      this.#tunnel.tick(nowMs, socketIdleMs)
      return
    }
    const connection = this.#connection
    if (connection === null) return
    const quietMs = this.#timings.quietMs(nowMs)
    if (quietMs === null) return
    if (!connection.connected) {
      if (quietMs < connectMs) return
      connection.destroy()
      const problem = `it did not accept the connection within ${inWords(connectMs)}`
      this.onLost({ kind: 'unreachable', problem, begun: false, reused: false })
    } else if (!this.#answering.begun) {
      if (quietMs >= headersMs) this.#tooLate(connection)
    } else {
      const byClient = this.#answering.isUnread() || this.#upload?.waitsForClient === true
      if (quietMs >= streamIdleMs) this.#break(byClient || mayBeSilent(this.#answer) ? 'aborted' : 'broken')
    }
  }

  #begin(): void {
    const { httpVersion } = this.#incoming
    const upgrade = this.#upgrading !== null && httpVersion !== '1.0'
    try {
      this.#head = requestHead({ method: this.#method, version: httpVersion, upgrade }, this.#call)
      if ((this.#head.bodyBytes ?? 0) > this.#parts.bodyBytes) throw tooLarge(this.#parts.bodyBytes)
    } catch (thrown) {
      this.#refuse(toAppError(thrown))
      return
    }
    this.affinity = this.#head.affinity
    if (this.#head.maxForwards === 0) this.#answerAsLast()
    else this.#reserve()
  }

  #reserve(): void {
    this.#waiting = true
    this.#parts.reservations.reserve(this).then(
      reservation => this.#onReserved(reservation),
      (thrown: unknown) => {
        if (this.#over) return
        this.#waitedInVain()
        this.#refuse(toAppError(thrown))
      },
    )
  }

  #waitedInVain(): void {
    this.#waiting = false
    this.#timings.stopWaiting()
  }

  #onReserved(reservation: Reservation): void {
    this.#waiting = false
    if (this.#over) {
      reservation.release('aborted')
      return
    }
    this.#reservation = reservation
    this.#timings.claim(reservation.waitedMs)
    this.#tries += 1
    this.#renewed = false
    this.#send(reservation, false)
  }

  #send({ workerId, servedAt }: Reservation, fresh: boolean): void {
    const address = this.#call.toHealth ? servedAt.health : servedAt.traffic
    const connection = this.#parts.connections.take(
      workerId,
      address,
      this.#upgrading !== null ? 'tunnel' : fresh ? 'fresh' : 'any',
    )
    this.#connection = connection
    this.#timings.connect()
    connection.use(this, this.#method === 'HEAD')
    if (connection.connected) this.#transmit(connection)
  }

  onConnected(): void {
    this.#timings.connected()
    if (this.#connection !== null) this.#transmit(this.#connection)
  }

  #transmit(connection: WorkerConnection): void {
    const head = this.#head
    if (head === null) return
    if (head.body === 'none') {
      connection.socket.write(head.text, 'latin1')
      connection.sent()
      return
    }
    this.#upload ??= new Upload(this.#incoming, head.body === 'chunked', this.#parts.nextTurn, bytes => {
      this.#timings.move()
      if (bytes > this.#parts.bodyBytes) this.#tooLarge()
    })
    if (head.expectsContinue && !this.#upload.asked) this.#answering.askForBody()
    this.#upload.to(connection, head.text)
  }

  onHead(head: ResponseHead): void {
    if (this.#over) return
    if (head.status === 101) this.#switching = head
    else if (head.status < 200) this.#answering.inform(withinEndpoint(head, this.#call.prefix))
    else {
      this.#answer = head
      this.#answering.head(withinEndpoint(head, this.#call.prefix), this.#answeredBy())
    }
  }

  onBody(piece: Buffer, last: boolean): void {
    if (this.#over || this.#connection === null) return
    this.#timings.move()
    this.#answering.body(piece, last, this.#connection.socket)
  }

  onRead(): void {
    if (!this.#over) this.#answering.flush()
  }

  onDone(trailers: readonly string[]): void {
    this.#connection = null
    this.#complete = true
    this.#upload?.stop()
    this.#release('answered')
    if (!this.#over) this.#answering.end(trailers)
  }

  onDrain(): void {
    this.#upload?.drained()
  }

  onSwitched(worker: Socket, rest: Buffer): void {
    this.#connection = null
    const head = this.#switching
    const upgrading = this.#head?.upgrades === true ? this.#upgrading : null
    if (upgrading === null || head === null || head.upgrade === null) {
      worker.on('error', () => {}).destroy()
      const problem = 'it switched to another protocol without being asked to'
      this.onLost({ kind: 'malformed', problem, begun: true, reused: false })
      return
    }
    const { socket, early } = upgrading
    const workerId = this.#answeredBy()
    this.#answering.status = 101
    this.#outgoing.detachSocket(socket)
    const pieces = early.take()
    socket.write(switchingText(withinEndpoint(head, this.#call.prefix), workerId, this.#call.subprotocol), 'latin1')
    this.#tunnel = new Tunnel(socket, worker, pieces, rest, tunnelled => this.#onTunnelEnd(tunnelled))
  }

  #answeredBy(): WorkerId {
    const workerId = this.#reservation?.workerId ?? ('' as WorkerId)
    this.#workerId = workerId
    this.#timings.respond()
    return workerId
  }

  #onTunnelEnd(tunnelled: Tunnelled): void {
    this.#tunnelled = tunnelled
    this.#complete = tunnelled.orderly
    this.#release(tunnelled.orderly ? 'answered' : tunnelled.byWorker ? 'broken' : 'aborted')
    this.#settle()
  }

  onLost(loss: Loss): void {
    this.#connection = null
    if (this.#over) return
    if (this.#answering.begun) {
      this.#break(this.#answering.hasLain ? 'aborted' : 'broken')
      return
    }
    this.#upload?.hold()
    const untouched = this.#upload === null || !this.#upload.begun
    const mayRepeat = loss.kind === 'unreachable' || (loss.kind === 'ended' && IDEMPOTENT.has(this.#method))
    const again = untouched && !loss.begun && mayRepeat
    const reservation = this.#reservation
    if (again && loss.reused && !this.#renewed && reservation !== null) {
      this.#renewed = true
      this.#send(reservation, true)
      return
    }
    const workerId = reservation?.workerId
    this.#release(loss.kind === 'unreachable' ? 'unreachable' : 'broken')
    if (again && workerId !== undefined && this.#tries < MOST_WORKERS) {
      this.avoid.push(workerId)
      this.#timings.retry()
      this.#reserve()
    } else this.#fail(502, `worker ${workerId} gave no answer: ${loss.problem}`)
  }

  #tooLate(connection: WorkerConnection): void {
    const after = inWords(this.#parts.limits.headersMs)
    const byClient = this.#upload?.waitsForClient === true
    connection.destroy()
    this.#connection = null
    const workerId = this.#reservation?.workerId
    this.#release(byClient ? 'aborted' : 'broken')
    if (byClient) this.#fail(408, `nothing more came of the body of the request for ${after}`)
    else this.#fail(504, `worker ${workerId} gave no answer within ${after}`)
  }

  /** What its worker has of the body is not the whole, and must not look like it. */
  #tooLarge(): void {
    if (this.#answering.begun) {
      this.#break('aborted')
      return
    }
    this.#connection?.destroy()
    this.#connection = null
    this.#release('aborted')
    this.#refuse(tooLarge(this.#parts.bodyBytes))
  }

  #refuse({ status, message, retryAfterSeconds }: AppError): void {
    this.#fail(status, message, retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)])
  }

  /** An answer of our own. */
  #fail(status: number, message: string, more: readonly string[] = []): void {
    if (this.#over) return
    this.#upload?.stop()
    this.#upgrading?.early.discard()
    // Nobody knows whether a client that waits for a 100 sends its body all the same.
    const ambiguous = this.#head?.expectsContinue === true && this.#upload === null
    this.#answering.refuse(status, message, ambiguous ? [...more, 'Connection', 'close'] : more)
  }

  /** `Max-Forwards` allows no other hop (RFC 9110, 7.6.2). */
  #answerAsLast(): void {
    if (this.#method === 'OPTIONS') this.#answering.own(200, '', [])
    else this.#fail(405, 'TRACE is not answered here', ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'])
  }

  /** There is no more of an answer that has begun, which must not look like a whole one. */
  #break(outcome: RequestOutcome): void {
    this.#connection?.destroy()
    this.#connection = null
    this.#upload?.stop()
    this.#release(outcome)
    this.#answering.cut()
  }

  #release(outcome: RequestOutcome): void {
    this.#reservation?.release(outcome)
    this.#reservation = null
  }

  /** The answer is out, or the client is gone. */
  #onClosed(): void {
    if (this.#over || this.#tunnel !== null) return
    this.#over = true
    // Costs more than all else of a short request, and nobody else listens.
    if (this.#waiting) {
      this.#waitedInVain()
      this.#controller?.abort()
    }
    this.#upload?.stop()
    this.#connection?.destroy()
    this.#connection = null
    this.#release('aborted')
    if (this.#answering.status === 0) this.#answering.status = CLIENT_GONE
    this.#complete &&= this.#answering.finished
    this.#settle()
  }

  #settle(): void {
    this.#over = true
    this.#parts.live.delete(this)
    const { path } = this.#call
    const query = path.indexOf('?')
    this.#resolve({
      kind: this.#upgrading === null ? 'request' : 'socket',
      endpointId: this.endpointId,
      method: this.#method,
      path: query < 0 ? path : path.slice(0, query),
      status: this.#answering.status,
      complete: this.#complete,
      workerId: this.#workerId,
      tries: this.#tries,
      ...this.#timings.summary(),
      bytesIn: this.#tunnelled?.bytesIn ?? this.#upload?.bytes ?? 0,
      bytesOut: this.#tunnelled?.bytesOut ?? this.#answering.bytes,
    })
  }
}
