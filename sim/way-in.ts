import { AppError } from '../src/core/errors.ts'
import type { EndpointId, WorkerId } from '../src/core/ids.ts'
import type { SocketAddress } from '../src/core/workers/socket-address.ts'
import type { Affinity, RequestOutcome, Reservation, Reservations } from '../src/gateway/queue/reservation.ts'
import type { Life } from './life.ts'
import { ConnectionProblem, type WebAnswer, type WebCall } from './workers/web-program.ts'

/** What serves requests at an address. */
export interface Listening {
  readonly serve: (call: WebCall) => Promise<WebAnswer>
}

/** What requests are sent through. */
export interface WayInParts {
  readonly reservations: Reservations
  readonly life: Life
  /** The program that listens at an address; undefined for none. */
  readonly at: (address: SocketAddress) => Listening | undefined
}

const AFFINITY = /^(?:(strict|strict-resume) )?([a-z0-9]+)$/

/** Whether a request is for an application behind a load-balancing endpoint. */
export function isForApplication(url: string): boolean {
  return new URL(url).pathname.startsWith('/lb/')
}

/**
 * Hands requests on to workers as the gateway does, but without sockets: claim, then send; one more try for a request that may be
 * sent twice and whose worker failed before it answered.
 */
export class WayIn {
  readonly #parts: WayInParts

  constructor(parts: WayInParts) {
    this.#parts = parts
  }

  /** Answers whatever happens, as long as the server runs. */
  async serve(request: Request): Promise<Response> {
    const { reservations, life } = this.#parts
    const { signal, method } = request
    const endpointId = new URL(request.url).pathname.split('/')[2] as EndpointId
    const avoid: WorkerId[] = []
    for (;;) {
      const wanted = { endpointId, affinity: affinityOf(request), avoid: [...avoid], signal }
      let reservation: Reservation
      try {
        reservation = await life.guard(reservations.reserve(wanted))
      } catch (thrown) {
        return refusal(thrown, signal)
      }
      const { outcome, answer } = await this.#send(reservation, request)
      reservation.release(outcome)
      const headers = { 'x-runpod-worker-id': reservation.workerId }
      if (answer !== null) return new Response(answer.text, { status: answer.status, headers })
      if (outcome === 'aborted') return new Response('', { status: 499 })
      avoid.push(reservation.workerId)
      if (method !== 'GET' || avoid.length > 1) return Response.json({ error: 'bad gateway' }, { status: 502, headers })
    }
  }

  async #send(
    reservation: Reservation,
    request: Request,
  ): Promise<{ readonly outcome: RequestOutcome; readonly answer: WebAnswer | null }> {
    const { life, at } = this.#parts
    const { searchParams } = new URL(request.url)
    const connection = new AbortController()
    const close = () => connection.abort(new Error('the connection was closed'))
    const forget = life.onEnd(close)
    request.signal.addEventListener('abort', close, { once: true })
    try {
      const call = { nonce: searchParams.get('nonce') ?? '', ms: Number(searchParams.get('ms')) }
      const program = at(reservation.servedAt.traffic)
      if (program === undefined) throw new ConnectionProblem('unreachable')
      const answer = await life.guard(program.serve({ ...call, signal: connection.signal }))
      return { outcome: 'answered', answer }
    } catch (thrown) {
      return { outcome: thrown instanceof ConnectionProblem ? thrown.kind : 'aborted', answer: null }
    } finally {
      forget()
      request.signal.removeEventListener('abort', close)
    }
  }
}

function affinityOf({ headers }: Request): Affinity | null {
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
