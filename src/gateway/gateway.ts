import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Caller } from '../core/accounts/permission.ts'
import { type AppError, toAppError } from '../core/errors.ts'
import type { EndpointId } from '../core/ids.ts'
import type { GatewayPassing } from '../ports/metrics.ts'
import type { Ports } from '../ports/ports.ts'
import type { Traffic } from '../ports/targets.ts'
import type { Access } from '../services/accounts/access.ts'
import {
  type AdmissionRules,
  type Admitted,
  type Arriving,
  CLOSED,
  GatewayAdmission,
  keyMissing,
} from './entrance/admission.ts'
import type { Preflight } from './entrance/cors.ts'
import { refuseUpgrade, respondError } from './entrance/error-response.ts'
import { stopping } from './entrance/refusal.ts'
import type { Entrance, GatewayRoute } from './entrance/route.ts'
import type { Forwarding, ProxyRequest } from './proxy/proxy-request.ts'

/** What a {@link Gateway} is made of. */
export interface GatewayParts {
  readonly access: Pick<Access, 'authenticate' | 'recall' | 'requireJobs' | 'failedKeys' | 'hold'>
  readonly forwarding: Forwarding
  readonly traffic: Traffic
  readonly rules?: AdmissionRules
  /** Aborts when the server begins to stop: nobody is let in any more. */
  readonly stopping: AbortSignal
}

const NOTHING = { requests: 0, sockets: 0 }

/** The way in to load-balancing endpoints: lets requests in, hands them on, and tells how each of them went. */
export class Gateway implements Entrance {
  readonly #ports: Pick<Ports, 'clock' | 'emit'>
  readonly #parts: GatewayParts
  readonly #admission: GatewayAdmission
  readonly #passing = new Map<EndpointId, { requests: number; sockets: number }>()
  /** What each request or socket that was let in hangs on. */
  readonly #open = new Set<ServerResponse | Duplex>()

  constructor(ports: Pick<Ports, 'store' | 'clock' | 'notifier' | 'vault' | 'emit'>, parts: GatewayParts) {
    this.#ports = ports
    this.#parts = parts
    this.#admission = new GatewayAdmission(ports, parts.access, parts.rules ?? CLOSED)
  }

  /** Answers a request whatever happens. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse, route: GatewayRoute): void {
    this.#through(incoming, route, {
      carrier: outgoing,
      preflight: ({ headers }) => void outgoing.writeHead(204, headers).end(),
      refuse: error => respondError(incoming, outgoing, error),
      pass: call => this.#parts.forwarding.forward(incoming, outgoing, call),
    })
  }

  /** Answers an upgrade whatever happens. */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, route: GatewayRoute): void {
    this.#through(incoming, route, {
      carrier: socket,
      preflight: () => refuseUpgrade(socket, keyMissing()),
      refuse: error => refuseUpgrade(socket, error),
      pass: call => this.#parts.forwarding.upgrade(incoming, socket, head, { ...call, toHealth: false }),
    })
  }

  /** What passes right now. */
  passing(id: EndpointId): GatewayPassing {
    const { waiting, workers } = this.#parts.traffic.load(id)
    const busyWorkers = workers.filter(({ inFlight }) => inFlight > 0).length
    return { ...(this.#passing.get(id) ?? NOTHING), waiting, busyWorkers }
  }

  /** Ends what still passes, and lets nothing in any more. */
  close(): void {
    this.#admission.close()
    for (const carrier of this.#open) carrier.destroy()
  }

  #through(incoming: IncomingMessage, route: GatewayRoute, way: Way): void {
    const arrived: Arrived = { incoming, route, way, startMs: this.#ports.clock.monotonic() }
    try {
      // Who asks whether to go on is told so, and reads then why there is nothing to go on to.
      if (this.#parts.stopping.aborted && incoming.method !== 'OPTIONS') throw stopping()
      const admitted = this.#admission.admit(arrivingOf(incoming, route))
      if (admitted instanceof Promise) {
        admitted.then(found => this.#pass(arrived, found)).catch(thrown => this.#refuse(arrived, thrown))
      } else this.#pass(arrived, admitted)
    } catch (thrown) {
      this.#refuse(arrived, thrown)
    }
  }

  #pass(arrived: Arrived, admitted: Admitted): void {
    const { route, way, startMs } = arrived
    const { clock, emit } = this.#ports
    if ('headers' in admitted) {
      way.preflight(admitted)
      emit('request.answered', { surface: 'gateway', status: 204, tookMs: clock.monotonic() - startMs })
      return
    }
    if (this.#parts.stopping.aborted) throw stopping()
    const { carrier } = way
    const kind = 'writeHead' in carrier ? 'requests' : 'sockets'
    this.#count(carrier, route.endpointId, kind, 1)
    const letGo = this.#hold(carrier, route.endpointId, admitted.caller)
    way.pass(admitted).then(
      passed => {
        letGo()
        this.#count(carrier, route.endpointId, kind, -1)
        emit('gateway.request_finished', passed)
      },
      (thrown: unknown) => {
        letGo()
        this.#count(carrier, route.endpointId, kind, -1)
        this.#refuse(arrived, thrown)
      },
    )
  }

  /** What passes ends with the right by which it was let in. */
  #hold(carrier: ServerResponse | Duplex, id: EndpointId, caller?: Caller): () => void {
    if (caller === undefined) return () => {}
    const { access } = this.#parts
    const requires = (whose: Caller) => access.requireJobs(whose, 'write', id)
    return access.hold(caller, requires, () => void carrier.destroy())
  }

  #refuse({ incoming, route, way, startMs }: Arrived, thrown: unknown): void {
    const { clock, emit } = this.#ports
    const error = toAppError(thrown)
    way.refuse(error)
    if (error.status >= 500 && error.cause !== undefined) {
      const problem = error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : String(error.cause)
      const path = route.path.replace(/\?.*$/s, '')
      emit('request.failed', { surface: 'gateway', method: incoming.method ?? '', path, problem })
    }
    emit('request.answered', { surface: 'gateway', status: error.status, tookMs: clock.monotonic() - startMs })
  }

  #count(carrier: ServerResponse | Duplex, id: EndpointId, kind: keyof typeof NOTHING, by: 1 | -1): void {
    const passing = this.#passing.get(id) ?? { requests: 0, sockets: 0 }
    passing[kind] += by
    if (passing.requests + passing.sockets === 0) this.#passing.delete(id)
    else this.#passing.set(id, passing)
    if (by === 1) this.#open.add(carrier)
    else this.#open.delete(carrier)
  }
}

/** A request, or an upgrade, on its way in. */
interface Arrived {
  readonly incoming: IncomingMessage
  readonly route: GatewayRoute
  readonly way: Way
  readonly startMs: number
}

/** How a request, or an upgrade, is answered. */
interface Way {
  readonly carrier: ServerResponse | Duplex
  preflight(preflight: Preflight): void
  refuse(error: AppError): void
  pass(call: ProxyRequest): ReturnType<Forwarding['forward']>
}

function arrivingOf(incoming: IncomingMessage, route: GatewayRoute): Arriving {
  const { method = 'GET', socket, headers, rawHeaders } = incoming
  return { method, peer: socket.remoteAddress ?? '', host: route.host ?? headers.host ?? '', rawHeaders, route }
}
