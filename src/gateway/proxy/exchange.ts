import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type AppError, toAppError } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import { UsageEventFilter } from '../../core/openai/usage-in-streams.ts'
import type { Slot, Slots } from '../../core/slots.ts'
import { textBefore } from '../../core/text-parts.ts'
import type { Clock } from '../../ports/clock.ts'
import { durationText, tooLarge } from '../entrance/refusal.ts'
import { type RequestHead, type RequestLine, requestHead, withLength } from '../http1/request-head.ts'
import { mayBeSilent, type ResponseHead } from '../http1/response-head.ts'
import type { ConnectionUser, Loss, WorkerConnection } from '../http1/worker-connection.ts'
import type { WorkerConnections } from '../http1/worker-connections.ts'
import type { Affinity, RequestOutcome, Reservation, Reservations, WorkerRequest } from '../queue/reservation.ts'
import { withAnswerFields, withoutLength } from './answer-fields.ts'
import { AnswerTokens, isEventStream } from './answer-tokens.ts'
import { type ExchangeLimits, ExchangeTimings } from './exchange-timings.ts'
import { withinEndpoint } from './origin-wide.ts'
import type { AccessLogEntry, ProxyRequest } from './proxy-request.ts'
import { ResponseWriter, switchingText } from './response-writer.ts'
import { Tries } from './tries.ts'
import { Tunnel, type TunnelEnd } from './tunnel.ts'
import type { TurnWrites } from './turn-writes.ts'
import type { Upgrading } from './upgrade-buffer.ts'
import { type NextTurn, Upload } from './upload.ts'

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])
/** Status in the access log of a request whose client left before the response. */
const CLIENT_GONE = 499

/** Dependencies of all exchanges. */
export interface ProxyExchangeParts {
  readonly clock: Clock
  readonly reservations: Reservations
  readonly connections: WorkerConnections
  readonly nextTurn: NextTurn
  readonly writes: TurnWrites
  /** Limit of bytes of the body of a request. */
  readonly bodyBytes: number
  readonly limits: ExchangeLimits
  /** Those that have not ended. */
  readonly live: Slots<ProxyExchange>
}

/** The worker and the connection that have the request. */
interface Attempt {
  readonly reservation: Reservation
  readonly connection: WorkerConnection
  /** True if the connection replaces a kept one that was found dead. */
  readonly isRenewed: boolean
}

/**
 * State of an exchange, with the data of that state. It goes down this list; a lost attempt may go back to `waiting`,
 * or to `connecting` on a new connection.
 */
type State =
  /** The head of the request is checked. */
  | { readonly at: 'begun' }
  /** In the request queue. */
  | { readonly at: 'waiting' }
  /** The body of the request is completed for its worker. */
  | { readonly at: 'completing'; readonly reservation: Reservation }
  /** The connection to the worker is not open yet. */
  | ({ readonly at: 'connecting' } & Attempt)
  /** The request goes to the worker, which has not responded. */
  | ({ readonly at: 'sending' } & Attempt)
  /** The worker responded with 101; its socket comes next. */
  | ({ readonly at: 'switching'; readonly head: ResponseHead } & Attempt)
  /** The worker's response goes to the client. */
  | ({ readonly at: 'responding'; readonly head: ResponseHead } & Attempt)
  /** No worker has the request: the rest of its response, or one of the gateway, goes to the client. */
  | { readonly at: 'finishing' }
  /** Both sockets are joined. */
  | { readonly at: 'tunnel'; readonly tunnel: Tunnel; readonly reservation: Reservation }
  /** The client has its response, or is gone. */
  | { readonly at: 'over' }

const BEGUN: State = { at: 'begun' }
const WAITING: State = { at: 'waiting' }
const FINISHING: State = { at: 'finishing' }
const OVER: State = { at: 'over' }

/** One request, from its head to the last byte of its response. */
export class ProxyExchange implements ConnectionUser, WorkerRequest {
  readonly endpointId: EndpointId
  readonly isAnonymous: boolean
  affinity: Affinity | null = null
  readonly #parts
  readonly #incoming
  readonly #outgoing
  readonly #request
  readonly #upgrading
  readonly #method: string
  readonly #timings
  readonly #response
  /** Null for an answer that passes whole. */
  #filter: UsageEventFilter | null = null
  /** Null for a request whose answer has no tokens. */
  readonly #tokens: AnswerTokens | null
  #resolve: (entry: AccessLogEntry) => void = () => {}
  #state: State = BEGUN
  #head: RequestHead | null = null
  /** The body of the request. An upload that no worker has read from goes to the next one. */
  #upload: Upload | null = null
  #controller: AbortController | null = null
  readonly #tries = new Tries()
  #workerId: WorkerId | null = null
  #isComplete = false
  #isBodyComplete: boolean
  /** True while the request has a kept connection that it does not use yet. */
  #isUnwritten = false
  #slot: Slot = -1

  /** @param upgrading null for a request that asks for no other protocol */
  constructor(
    parts: ProxyExchangeParts,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    request: ProxyRequest,
    upgrading: Upgrading | null,
  ) {
    this.#parts = parts
    this.#incoming = incoming
    this.#outgoing = outgoing
    this.#request = request
    this.#upgrading = upgrading
    this.#method = incoming.method ?? 'GET'
    this.endpointId = request.endpointId
    this.isAnonymous = request.isOpen === true
    this.#isBodyComplete = request.complete === undefined
    this.#timings = new ExchangeTimings(parts.clock)
    this.#response = new ResponseWriter(incoming, outgoing, request.requestId, request.errorForm ?? null, parts.writes)
    this.#tokens = request.onTokens === undefined ? null : new AnswerTokens(request.onTokens)
  }

  get avoid(): readonly WorkerId[] {
    return this.#tries.avoid
  }

  /** Milliseconds in the request queue so far. */
  get waitedMs(): number {
    return this.#timings.waitMs
  }

  /** Aborted when the client is gone. Made on demand, since most requests never wait. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#state.at === 'over') this.#controller.abort()
    return this.#controller.signal
  }

  /** Runs the exchange to its end. Never rejects. */
  run(): Promise<AccessLogEntry> {
    return new Promise(resolve => {
      this.#resolve = resolve
      this.#slot = this.#parts.live.add(this)
      this.#outgoing.on('close', () => this.#onClosed())
      if (this.#outgoing.destroyed || this.#incoming.socket.destroyed) this.#onClosed()
      else this.#begin()
    })
  }

  /** Ends steps that take longer than their limits. */
  tick(nowMs: number): void {
    const state = this.#state
    this.#response.tick(nowMs)
    const { connectMs, headersMs, streamIdleMs, socketIdleMs } = this.#parts.limits
    if (state.at === 'tunnel') state.tunnel.tick(nowMs, socketIdleMs)
    if (!('connection' in state)) return
    const quietMs = this.#timings.quietMs(nowMs)
    if (quietMs === null) return
    if (state.at === 'connecting') {
      if (quietMs < connectMs) return
      state.connection.destroy()
      const problem = `it did not accept the connection within ${durationText(connectMs)}`
      this.onLost({ kind: 'unreachable', problem, begun: false, reused: false })
    } else if (state.at === 'responding') {
      const isByClient = this.#response.checkUnread() || this.#upload?.waitsForClient === true
      if (quietMs >= streamIdleMs) this.#break(isByClient || mayBeSilent(state.head) ? 'aborted' : 'broken')
    } else if (quietMs >= headersMs) this.#respondTooLate()
  }

  #begin(): void {
    try {
      this.#head = requestHead(this.#line(), this.#request)
      if ((this.#head.bodyBytes ?? 0) > this.#parts.bodyBytes) throw tooLarge(this.#parts.bodyBytes)
    } catch (thrown) {
      this.#refuse(toAppError(thrown))
      return
    }
    this.affinity = this.#head.affinity
    if (this.#head.maxForwards === 0) this.#respondAsLast()
    else this.#reserve()
  }

  #line(): RequestLine {
    const { httpVersion: version } = this.#incoming
    return { method: this.#method, version, upgrade: this.#upgrading !== null && version !== '1.0' }
  }

  #reserve(): void {
    this.#state = WAITING
    this.#parts.reservations.reserve(this).then(
      reservation => this.#onReserved(reservation),
      (thrown: unknown) => {
        if (this.#state.at === 'over') return
        this.#timings.stopWaiting()
        this.#refuse(toAppError(thrown))
      },
    )
    // A request that is decided at once has a head of its own.
    if (this.#request.waitsFor !== undefined) this.#parts.nextTurn(() => this.#respondEarly())
  }

  #respondEarly(): void {
    const { waitsFor, answerFields = [] } = this.#request
    if (this.#state.at !== 'waiting' || waitsFor === undefined) return
    this.#response.early(this.#parts.clock.monotonic(), waitsFor, answerFields)
  }

  #onReserved(reservation: Reservation): void {
    if (this.#state.at === 'over') {
      reservation.release('aborted')
      return
    }
    this.#timings.claim(reservation.waitedMs)
    this.#tries.count += 1
    if (this.#isBodyComplete) this.#connect(reservation, false)
    else this.#complete(reservation)
  }

  #complete(reservation: Reservation): void {
    this.#isBodyComplete = true
    this.#state = { at: 'completing', reservation }
    void this.#request.complete?.(reservation.servedAt.traffic).then(bytes => {
      if (this.#state.at !== 'completing') return
      if (bytes <= this.#parts.bodyBytes) {
        this.#head = requestHead(this.#line(), withLength(this.#request, bytes))
        this.#connect(reservation, false)
        return
      }
      reservation.release('aborted')
      this.#refuse(tooLarge(this.#parts.bodyBytes))
    })
  }

  #connect(reservation: Reservation, isRenewed: boolean): void {
    const { workerId, servedAt } = reservation
    const address = this.#request.toHealth ? servedAt.health : servedAt.traffic
    const kind = this.#upgrading !== null ? 'tunnel' : isRenewed ? 'fresh' : 'any'
    const connection = this.#parts.connections.take(workerId, address, kind)
    const attempt = { reservation, connection, isRenewed }
    this.#timings.connect()
    if (connection.connected && this.#head?.body === 'none') {
      this.#state = { at: 'sending', reservation, connection, isRenewed }
      this.#isUnwritten = true
      this.#parts.writes.add(this)
      return
    }
    connection.use(this, this.#method === 'HEAD')
    if (connection.connected) this.#send(attempt)
    else this.#state = { at: 'connecting', reservation, connection, isRenewed }
  }

  onConnected(): void {
    this.#timings.connected()
    if (this.#state.at === 'connecting') this.#send(this.#state)
  }

  #send({ reservation, connection, isRenewed }: Attempt): void {
    const head = this.#head
    if (head === null) return
    this.#state = { at: 'sending', reservation, connection, isRenewed }
    if (head.body === 'none') {
      this.#write(connection, head)
      return
    }
    this.#upload ??= new Upload(this.#incoming, head.body === 'chunked', this.#parts.nextTurn, bytes => {
      this.#timings.move()
      if (bytes > this.#parts.bodyBytes) this.#tooLarge()
    })
    if (head.expectsContinue && !this.#upload.asked) this.#response.askForBody()
    this.#upload.to(connection, head.text)
  }

  /** Sends a request without a body on the kept connection that it has, or on a new one if the worker closed that. */
  writeNow(): void {
    const state = this.#state
    if (!this.#isUnwritten) return
    this.#isUnwritten = false
    if (state.at !== 'sending' || this.#head === null) return
    const { connection, reservation } = state
    if (connection.socket.writable) {
      connection.use(this, this.#method === 'HEAD')
      this.#write(connection, this.#head)
      return
    }
    connection.destroy()
    this.#connect(reservation, true)
  }

  #write(connection: WorkerConnection, { text }: RequestHead): void {
    connection.socket.write(text, 'latin1')
    connection.sent()
  }

  onHead(head: ResponseHead): void {
    const state = this.#state
    if (state.at !== 'sending') return
    const { reservation, connection, isRenewed } = state
    if (head.status === 101) this.#state = { at: 'switching', head, reservation, connection, isRenewed }
    else if (head.status < 200) this.#response.inform(withinEndpoint(head, this.#request))
    else {
      this.#state = { at: 'responding', head, reservation, connection, isRenewed }
      this.#onResponse(reservation)
      this.#tokens?.begin(head)
      const shown = withAnswerFields(withinEndpoint(head, this.#request), this.#request.answerFields)
      if (this.#request.hidesUsage === true && isEventStream(head)) this.#filter = new UsageEventFilter()
      this.#response.head(this.#filter === null ? shown : withoutLength(shown), reservation.workerId)
    }
  }

  #onResponse({ workerId }: Reservation): void {
    this.#workerId = workerId
    this.#timings.respond()
  }

  onBody(piece: Buffer, last: boolean): void {
    if (this.#state.at !== 'responding') return
    this.#timings.move()
    this.#tokens?.take(piece)
    const { socket } = this.#state.connection
    if (this.#filter === null) this.#response.body(piece, last, socket)
    else for (const part of this.#filter.push(piece)) this.#response.body(part, false, socket)
  }

  onRead(): void {
    if (this.#state.at === 'responding') this.#response.flush()
  }

  onDone(trailers: readonly string[]): void {
    if (this.#state.at !== 'responding') return
    this.#isComplete = true
    this.#upload?.stop()
    const rest = this.#filter?.end()
    if (rest !== undefined && rest.length > 0) this.#response.body(rest, false, this.#state.connection.socket)
    this.#release(this.#state, 'answered')
    this.#response.end(trailers)
  }

  onDrain(): void {
    this.#upload?.drained()
  }

  onSwitched(worker: Socket, rest: Buffer): void {
    const state = this.#state
    const upgrading = this.#head?.upgrades === true ? this.#upgrading : null
    if (upgrading === null || state.at !== 'switching' || state.head.upgrade === null) {
      worker.on('error', () => {}).destroy()
      const problem = 'it switched to another protocol without being asked to'
      this.onLost({ kind: 'malformed', problem, begun: true, reused: false })
      return
    }
    const { head, reservation } = state
    const { socket, early } = upgrading
    this.#onResponse(reservation)
    this.#response.status = 101
    this.#outgoing.detachSocket(socket)
    const pieces = early.take()
    socket.write(switchingText(withinEndpoint(head, this.#request), reservation.workerId, this.#request), 'latin1')
    const tunnel = new Tunnel(socket, worker, pieces, rest, tunnelled => this.#onTunnelEnd(reservation, tunnelled))
    this.#state = { at: 'tunnel', tunnel, reservation }
  }

  #onTunnelEnd(reservation: Reservation, tunnelled: TunnelEnd): void {
    this.#isComplete = tunnelled.orderly
    reservation.release(tunnelled.orderly ? 'answered' : tunnelled.byWorker ? 'broken' : 'aborted')
    this.#settle(tunnelled)
  }

  onLost(loss: Loss): void {
    const state = this.#state
    if (state.at === 'responding') {
      this.#break(this.#response.isLeftUnread ? 'aborted' : 'broken')
      return
    }
    if (state.at !== 'connecting' && state.at !== 'sending' && state.at !== 'switching') return
    const { reservation, isRenewed } = state
    this.#upload?.hold()
    const isUntouched = this.#upload === null || !this.#upload.begun
    const isUnconnected = loss.kind === 'refused' || loss.kind === 'unreachable'
    const isRepeatable = isUnconnected || (loss.kind === 'ended' && IDEMPOTENT.has(this.#method))
    const mayRetry = isUntouched && !loss.begun && isRepeatable
    if (mayRetry && loss.reused && !isRenewed) {
      this.#connect(reservation, true)
      return
    }
    this.#release(state, isUnconnected ? loss.kind : 'broken')
    if (mayRetry && this.#tries.hasNext(reservation, loss.kind)) {
      this.#timings.retry()
      this.#reserve()
    } else this.#fail(502, `worker ${reservation.workerId} gave no answer: ${loss.problem}`, 'worker_error')
  }

  #respondTooLate(): void {
    const after = durationText(this.#parts.limits.headersMs)
    const isByClient = this.#upload?.waitsForClient === true
    const workerId = this.#leaveWorker(isByClient ? 'aborted' : 'broken')
    if (isByClient) this.#fail(408, `nothing more came of the body of the request for ${after}`, 'timeout')
    else this.#fail(504, `worker ${workerId} gave no answer within ${after}`, 'timeout')
  }

  /** The worker has a part of the body only, and must not take it for the whole. */
  #tooLarge(): void {
    if (this.#state.at === 'responding') {
      this.#break('aborted')
      return
    }
    this.#leaveWorker('aborted')
    this.#refuse(tooLarge(this.#parts.bodyBytes))
  }

  #refuse({ status, message, code, retryAfterSeconds }: AppError): void {
    const more = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)]
    this.#fail(status, message, code, more)
  }

  /** Responds with an error of the gateway. */
  #fail(status: number, message: string, code: string, more: readonly string[] = []): void {
    if (this.#state.at === 'over') return
    this.#state = FINISHING
    this.#upload?.stop()
    this.#upgrading?.early.discard()
    // A client that expects a 100 may send its body without it, so the connection cannot carry another request.
    const isAmbiguous = this.#head?.expectsContinue === true && this.#upload === null
    this.#response.refuse(status, message, code, isAmbiguous ? [...more, 'Connection', 'close'] : more)
  }

  /** `Max-Forwards` allows no other hop (RFC 9110, 7.6.2). */
  #respondAsLast(): void {
    this.#state = FINISHING
    if (this.#method === 'OPTIONS') this.#response.own(200, '', [])
    else
      this.#fail(405, 'TRACE is not answered here', 'method_not_allowed', [
        'Allow',
        'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
      ])
  }

  /** Cuts a response that has begun and has no rest, so that the client recognizes it as incomplete. */
  #break(outcome: RequestOutcome): void {
    this.#leaveWorker(outcome)
    this.#upload?.stop()
    this.#response.cut()
  }

  /** Ends the connection to the worker, if any, and releases the worker. @returns the worker */
  #leaveWorker(outcome: RequestOutcome): WorkerId | null {
    const state = this.#state
    if (!('connection' in state)) return null
    state.connection.destroy()
    this.#release(state, outcome)
    return state.reservation.workerId
  }

  /** Releases the worker; its connection has ended, or carries another request. */
  #release({ reservation }: Attempt, outcome: RequestOutcome): void {
    this.#state = FINISHING
    reservation.release(outcome)
  }

  /** The response is out, or the client is gone. */
  #onClosed(): void {
    const { at } = this.#state
    if (at === 'over' || at === 'tunnel') return
    if (this.#state.at === 'completing') this.#state.reservation.release('aborted')
    this.#leaveWorker('aborted')
    this.#state = OVER
    // An abort costs more than the rest of a short request, and only a queued request has a listener.
    if (at === 'waiting') {
      this.#timings.stopWaiting()
      this.#controller?.abort()
    }
    this.#upload?.stop()
    if (this.#response.status === 0) this.#response.status = CLIENT_GONE
    this.#isComplete &&= this.#response.finished
    this.#settle({ bytesIn: this.#upload?.bytes ?? 0, bytesOut: this.#response.bytes })
  }

  #settle({ bytesIn, bytesOut }: Pick<TunnelEnd, 'bytesIn' | 'bytesOut'>): void {
    this.#state = OVER
    this.#parts.live.remove(this.#slot, this)
    this.#tokens?.end()
    const { path } = this.#request
    this.#resolve({
      kind: this.#upgrading === null ? 'request' : 'socket',
      endpointId: this.endpointId,
      requestId: this.#request.requestId,
      method: this.#method,
      path: textBefore(path, '?'),
      status: this.#response.status,
      complete: this.#isComplete,
      workerId: this.#workerId,
      tries: this.#tries.count,
      ...this.#timings.summary(),
      bytesIn,
      bytesOut,
    })
  }
}
