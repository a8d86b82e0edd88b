import { AppError } from '../src/core/errors.ts'
import type { EndpointId, WorkerId } from '../src/core/ids.ts'
import type { SocketAddress } from '../src/core/workers/socket-address.ts'
import type { Affinity, RequestOutcome, Reservation, Reservations } from '../src/gateway/queue/reservation.ts'
import type { Life } from './life.ts'
import { ConnectionProblem, type WebCall, type WebResponse } from './workers/web-program.ts'

/** A server at an address. */
export interface Listening {
  readonly serve: (call: WebCall) => Promise<WebResponse>
}

/** Parts that the gateway uses. */
export interface SimGatewayParts {
  readonly reservations: Reservations
  readonly life: Life
  /** The program that listens at an address; undefined if no program listens. */
  readonly at: (address: SocketAddress) => Listening | undefined
}

const AFFINITY = /^(?:(strict|strict-resume) )?([a-z0-9]+)$/

/** True if a request is for an application behind a load-balancing endpoint. */
export function isForApplication(url: string): boolean {
  return new URL(url).pathname.startsWith('/lb/')
}

/**
 * Sends requests to workers like the gateway, but without sockets: claim, then send. One retry for a request that may
 * be sent twice and whose worker failed before its response; a refused one waits for the next worker.
 */
export class SimGateway {
  readonly #parts: SimGatewayParts

  constructor(parts: SimGatewayParts) {
    this.#parts = parts
  }

  /** Responds to a request, as long as the server runs. */
  async serve(request: Request): Promise<Response> {
    const { reservations, life } = this.#parts
    const { signal, method } = request
    const endpointId = new URL(request.url).pathname.split('/')[2] as EndpointId
    const avoid = new Set<WorkerId>()
    let [waitedMs, sent] = [0, 0]
    for (;;) {
      const affinity = readAffinity(request)
      const reservationRequest = { endpointId, affinity, avoid: [...avoid], waitedMs, signal }
      let reservation: Reservation
      try {
        reservation = await life.guard(reservations.reserve(reservationRequest))
      } catch (thrown) {
        return refusal(thrown, signal)
      }
      const { outcome, response } = await this.#send(reservation, request)
      reservation.release(outcome)
      const headers = { 'x-runpod-worker-id': reservation.workerId }
      if (response !== null) return new Response(response.text, { status: response.status, headers })
      if (outcome === 'aborted') return new Response('', { status: 499 })
      const isNew = !avoid.has(reservation.workerId)
      avoid.add(reservation.workerId)
      waitedMs += reservation.waitedMs
      if (outcome === 'refused' && (isNew || reservation.waitedMs > 0)) continue
      sent += 1
      if (method !== 'GET' || sent > 1) return Response.json({ error: 'bad gateway' }, { status: 502, headers })
    }
  }

  async #send(
    reservation: Reservation,
    request: Request,
  ): Promise<{ readonly outcome: RequestOutcome; readonly response: WebResponse | null }> {
    const { life, at } = this.#parts
    const { searchParams } = new URL(request.url)
    const connection = new AbortController()
    const close = () => connection.abort(new Error('the connection was closed'))
    const forget = life.onEnd(close)
    request.signal.addEventListener('abort', close, { once: true })
    try {
      const call = { nonce: searchParams.get('nonce') ?? '', ms: Number(searchParams.get('ms')) }
      const program = at(reservation.servedAt.traffic)
      if (program === undefined) throw new ConnectionProblem('refused')
      const response = await life.guard(program.serve({ ...call, signal: connection.signal }))
      return { outcome: 'answered', response }
    } catch (thrown) {
      return { outcome: thrown instanceof ConnectionProblem ? thrown.kind : 'aborted', response: null }
    } finally {
      forget()
      request.signal.removeEventListener('abort', close)
    }
  }
}

function readAffinity({ headers }: Request): Affinity | null {
  const [, kind = 'soft', workerId] = AFFINITY.exec(headers.get('x-runpod-worker-id') ?? '') ?? []
  return workerId === undefined ? null : { kind: kind as Affinity['kind'], workerId: workerId as WorkerId }
}

function refusal(thrown: unknown, signal: AbortSignal): Response {
  if (signal.aborted) return new Response('', { status: 499 })
  if (!(thrown instanceof AppError)) throw thrown
  const { status, message, retryAfterSeconds } = thrown
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  return Response.json({ error: message }, { status, headers })
}
