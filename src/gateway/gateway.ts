import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Caller, mayUseModel } from '../core/accounts/permission.ts'
import { type AppError, toAppError } from '../core/errors.ts'
import type { EndpointId } from '../core/ids.ts'
import { type KeyDecision, KeyLimitError, requireWithin } from '../core/key-limits.ts'
import { type ErrorForm, errorForm } from '../core/openai/error-form.ts'
import { reportsTokens } from '../core/openai/token-usage.ts'
import { REQUEST_ID, readRequestId } from '../core/request-head.ts'
import { Slots } from '../core/slots.ts'
import { textBefore } from '../core/text-parts.ts'
import type { GatewayLoad } from '../ports/metrics.ts'
import type { Ports } from '../ports/ports.ts'
import type { Traffic } from '../ports/targets.ts'
import type { Access } from '../services/accounts/access.ts'
import {
  type AdmissionRules,
  type Admitted,
  type ArrivingRequest,
  CLOSED,
  type EndpointFinder,
  type FindTarget,
  type GatewayAccess,
  GatewayAdmission,
  keyMissing,
  type QueueAddress,
} from './entrance/admission.ts'
import type { Preflight } from './entrance/cors.ts'
import { refuseUpgrade, respondError } from './entrance/error-response.ts'
import { isSecure, peerAddress } from './entrance/forwarded.ts'
import { serverStopping } from './entrance/refusal.ts'
import type { Entrance, GatewayRoute } from './entrance/route.ts'
import type { Forwarding, ProxyRequest } from './proxy/proxy-request.ts'
import type { AdmittedEndpoint } from './threads/messages.ts'

/** The id of a request that came through no listener of the server. */
const UNNAMED = '-'
/** Number of requests and sockets of an endpoint that pass now. */
export type Passing = Pick<GatewayLoad, 'requests' | 'sockets'>

const NONE_PASSING = { requests: 0, sockets: 0 }

/**
 * The entrance to load-balancing endpoints: admits requests, forwards them, and emits an access log entry for each.
 */
export class Gateway implements Entrance {
  readonly #ports
  readonly #parts
  readonly #admission
  readonly #passing = new Map<EndpointId, { requests: number; sockets: number }>()
  /** The response or socket of each admitted request that has not ended. */
  readonly #carriers = new Slots<ServerResponse | Duplex>()

  constructor(
    ports: Ports,
    parts: {
      readonly access: GatewayAccess & Pick<Access, 'hold'>
      /** Finds endpoints; by default in the store, and keeps them. */
      readonly endpoints?: EndpointFinder
      readonly forwarding: Forwarding
      readonly traffic: Traffic
      /** Counts requests of keys that have limits; no key has some when left out. */
      readonly keyLimits?: { decide(caller: Caller): Promise<Pick<KeyDecision, 'refusal' | 'headers'>> }
      readonly rules?: AdmissionRules
      /** The address of the jobs of a queue endpoint. */
      readonly queueAddress: QueueAddress
      /** The endpoint that headers name; none by default. */
      readonly findTarget?: FindTarget
      /** Aborts when the server begins to stop: no further request is admitted. */
      readonly stopping: AbortSignal
      /** Requests and sockets of other threads; none by default. */
      readonly elsewhere?: { passing(id: EndpointId): Passing; readonly isBusy: boolean } | null
      /** Called when {@link passing} of an endpoint changed. */
      readonly passed?: (id: EndpointId) => void
    },
  ) {
    this.#ports = ports
    this.#parts = parts
    const { access, rules = CLOSED, queueAddress, findTarget, endpoints } = parts
    this.#admission = new GatewayAdmission(ports, access, rules, queueAddress, findTarget, endpoints)
  }

  /** Responds to a request in every case. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse, route: GatewayRoute): void {
    this.#admit(incoming, route, new RequestResponder(this.#parts.forwarding, incoming, outgoing, route))
  }

  /** Responds to an upgrade in every case. */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, route: GatewayRoute): void {
    this.#admit(incoming, route, new UpgradeResponder(this.#parts.forwarding, incoming, socket, head))
  }

  /** Requests, sockets and busy workers of an endpoint at this moment. */
  passing(id: EndpointId): GatewayLoad {
    const { waiting, workers } = this.#parts.traffic.load(id)
    const busyWorkers = workers.filter(({ inFlight }) => inFlight > 0).length
    const here = this.#passing.get(id) ?? NONE_PASSING
    const there = this.#parts.elsewhere?.passing(id) ?? NONE_PASSING
    const passing = { requests: here.requests + there.requests, sockets: here.sockets + there.sockets }
    return { ...passing, waiting, busyWorkers }
  }

  /** True if any request or socket passes now. */
  get isBusy(): boolean {
    return this.#passing.size > 0 || this.#parts.elsewhere?.isBusy === true
  }

  /** An endpoint for the admission of another thread; null if it does not exist. @throws AppError `unavailable` */
  async admitted(id: EndpointId): Promise<AdmittedEndpoint | null> {
    const found = await this.#admission.find(id)
    if (found === null) return null
    const { endpoint, ...serving } = found
    const { name, owner, type, runsOnce } = endpoint
    return { ...serving, endpoint: { id, name, owner, type, runsOnce }, queueAddress: this.#parts.queueAddress(id) }
  }

  /** Ends all requests and sockets, and stops following changes of endpoints. */
  close(): void {
    this.#admission.close()
    for (const carrier of this.#carriers) carrier.destroy()
  }

  #admit(incoming: IncomingMessage, route: GatewayRoute, responder: Responder): void {
    // The listener has set it.
    const requestId = readRequestId(incoming.headers[REQUEST_ID]) ?? UNNAMED
    const arrival: Arrival = { incoming, route, responder, requestId, startMs: this.#ports.clock.monotonic() }
    try {
      // A preflight succeeds, so that a browser can read the error of the request that follows.
      if (this.#parts.stopping.aborted && incoming.method !== 'OPTIONS') throw serverStopping()
      const admitted = this.#admission.admit(arrivingRequest(incoming, route, requestId))
      if (admitted instanceof Promise) {
        admitted.then(outcome => this.#limit(arrival, outcome)).catch(thrown => this.#refuse(arrival, thrown))
      } else this.#limit(arrival, admitted)
    } catch (thrown) {
      this.#refuse(arrival, thrown)
    }
  }

  /** Forwards a request, once the limits of its key are checked if it has some. */
  #limit(arrival: Arrival, admitted: Admitted): void {
    const { keyLimits } = this.#parts
    const caller = 'headers' in admitted ? undefined : admitted.caller
    const isLimited = caller?.limits !== undefined && keyLimits !== undefined
    if (!isLimited || 'headers' in admitted || !reportsTokens(arrival.incoming.method ?? 'GET', admitted.path)) {
      this.#forward(arrival, admitted)
      return
    }
    keyLimits
      .decide(caller)
      .then(decision => {
        const answerFields = [...(admitted.answerFields ?? []), ...requireWithin(decision)]
        this.#forward(arrival, { ...admitted, answerFields })
      })
      .catch(thrown => this.#refuse(arrival, thrown))
  }

  #forward(arrival: Arrival, admitted: Admitted): void {
    const { incoming, responder, requestId, startMs } = arrival
    const { clock, emit, tracing } = this.#ports
    if ('headers' in admitted) {
      responder.preflight(admitted, requestId)
      emit('request.answered', { surface: 'gateway', status: 204, tookMs: clock.monotonic() - startMs })
      return
    }
    if (this.#parts.stopping.aborted) throw serverStopping()
    const { carrier, kind } = responder
    const { endpointId } = admitted
    this.#count(endpointId, kind, 1)
    const slot = this.#carriers.add(carrier)
    const endHold = this.#hold(carrier, admitted)
    const ended = () => {
      endHold()
      this.#count(endpointId, kind, -1)
      this.#carriers.remove(slot, carrier)
    }
    const trace = tracing?.request(singleHeader(incoming, 'traceparent'))
    const request = this.#counting(incoming, admitted)
    responder.forward(trace === undefined ? request : { ...request, trace }).then(
      entry => {
        ended()
        emit('gateway.request_finished', trace === undefined ? entry : { ...entry, trace })
      },
      (thrown: unknown) => {
        ended()
        this.#refuse(arrival, thrown)
      },
    )
  }

  /** The request, with a report of its tokens if its answer may have some. */
  #counting({ method = 'GET' }: IncomingMessage, request: ProxyRequest): ProxyRequest {
    const { owner, endpointId, caller } = request
    if (owner === undefined || !reportsTokens(method, request.path)) return request
    const { emit } = this.#ports
    const keyId = caller?.keyId ?? null
    return { ...request, onTokens: usage => emit('tokens.used', { owner, endpointId, keyId, usage }) }
  }

  /** Ends the request when the right that admitted it ends. */
  #hold(carrier: ServerResponse | Duplex, { endpointId, caller, model }: ProxyRequest): () => void {
    if (caller === undefined) return () => {}
    const { access } = this.#parts
    const requireRight = (holder: Caller) => {
      if (model === undefined || !mayUseModel(holder, model)) access.requireJobs(holder, 'write', endpointId)
    }
    return access.hold(caller, requireRight, () => void carrier.destroy())
  }

  #refuse({ incoming, route, responder, requestId, startMs }: Arrival, thrown: unknown): void {
    const { clock, emit } = this.#ports
    const error = toAppError(thrown)
    responder.refuse(error, requestId)
    if (error.status >= 500 && error.cause !== undefined) {
      const problem = error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : String(error.cause)
      const path = textBefore(route.path, '?')
      const fields = { surface: 'gateway', method: incoming.method ?? '', path, status: error.status }
      emit('request.failed', { ...fields, problem, requestId })
    }
    emit('request.answered', { surface: 'gateway', status: error.status, tookMs: clock.monotonic() - startMs })
  }

  #count(id: EndpointId, kind: keyof typeof NONE_PASSING, by: 1 | -1): void {
    let passing = this.#passing.get(id)
    if (passing === undefined) {
      passing = { requests: 0, sockets: 0 }
      this.#passing.set(id, passing)
    }
    passing[kind] += by
    if (passing.requests + passing.sockets === 0) this.#passing.delete(id)
    this.#parts.passed?.(id)
  }
}

/** A received request or upgrade. */
interface Arrival {
  readonly incoming: IncomingMessage
  readonly route: GatewayRoute
  readonly responder: Responder
  readonly requestId: string
  readonly startMs: number
}

/** The form of responses: to a request, or to an upgrade. */
interface Responder {
  readonly kind: keyof Passing
  readonly carrier: ServerResponse | Duplex
  preflight(preflight: Preflight, requestId: string): void
  refuse(error: AppError, requestId: string): void
  forward(request: ProxyRequest): ReturnType<Forwarding['forward']>
}

/** The form of an error: a limit of a key refuses only clients of these forms, at whatever address. */
function formOf(error: AppError, route: GatewayRoute): ErrorForm | null {
  return error instanceof KeyLimitError ? errorForm(route.path) : (route.errorForm ?? null)
}

class RequestResponder implements Responder {
  readonly kind = 'requests'
  readonly carrier: ServerResponse
  readonly #forwarding
  readonly #incoming
  readonly #route

  constructor(forwarding: Forwarding, incoming: IncomingMessage, outgoing: ServerResponse, route: GatewayRoute) {
    this.#forwarding = forwarding
    this.#incoming = incoming
    this.#route = route
    this.carrier = outgoing
  }

  preflight({ headers }: Preflight, requestId: string): void {
    this.carrier.writeHead(204, { ...headers, [REQUEST_ID]: requestId }).end()
  }

  refuse(error: AppError, requestId: string): void {
    respondError(this.#incoming, this.carrier, error, requestId, formOf(error, this.#route))
  }

  forward(request: ProxyRequest): ReturnType<Forwarding['forward']> {
    return this.#forwarding.forward(this.#incoming, this.carrier, request)
  }
}

class UpgradeResponder implements Responder {
  readonly kind = 'sockets'
  readonly carrier: Duplex
  readonly #forwarding
  readonly #incoming
  readonly #head

  constructor(forwarding: Forwarding, incoming: IncomingMessage, socket: Duplex, head: Buffer) {
    this.#forwarding = forwarding
    this.#incoming = incoming
    this.#head = head
    this.carrier = socket
  }

  preflight(_: Preflight, requestId: string): void {
    refuseUpgrade(this.carrier, keyMissing(), requestId)
  }

  refuse(error: AppError, requestId: string): void {
    refuseUpgrade(this.carrier, error, requestId)
  }

  forward(request: ProxyRequest): ReturnType<Forwarding['forward']> {
    return this.#forwarding.upgrade(this.#incoming, this.carrier, this.#head, { ...request, toHealth: false })
  }
}

/** The only value of a header; undefined if it was not sent. */
function singleHeader({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : undefined
}

function arrivingRequest(incoming: IncomingMessage, route: GatewayRoute, requestId: string): ArrivingRequest {
  const { method = 'GET', socket, headers, rawHeaders } = incoming
  const host = route.host ?? headers.host ?? ''
  return { method, peer: peerAddress(incoming) ?? '', isSecure: isSecure(socket), host, rawHeaders, route, requestId }
}
