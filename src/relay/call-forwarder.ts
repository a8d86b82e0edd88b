import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { JOINED_RESULTS } from '../core/jobs/joined-results.ts'
import { MAX_RESULT_BYTES } from '../core/jobs/large-text.ts'
import { RESULT_BYTES } from '../core/jobs/result.ts'
import { RELAY_HEADERS } from '../core/workers/relay-headers.ts'
import { HOLD_MS } from '../core/workers/worker-liveness.ts'
import { type AdmissionRefusal, emptyReport, type RelayAdmission } from './admission.ts'
import type { Callers } from './callers.ts'
import { type CallKind, resultUrl, splitResults } from './calls.ts'
import { ChunkDedup } from './chunk-dedup.ts'
import { Quarantine } from './quarantine.ts'
import { machineMonotonic, relayNow } from './relay-clock.ts'
import { respond } from './respond.ts'
import type { SetAside } from './set-aside.ts'
import type { Sharer } from './shares.ts'
import { type Spool, type SpooledBody, SpoolFull } from './spool.ts'
import { UndeliveredTakes } from './undelivered-takes.ts'
import type { Upstream, UpstreamAnswer } from './upstream.ts'

/** Headers of the response to callers that are refused, or for which the server is away. */
const RETRY = { 'Retry-After': '5' }
/** Time for which a call is passed on after its worker may have ended, in milliseconds. */
const ORPHAN_MS = 600_000
/** Interval between attempts while the server seems to be up. */
const PAUSE_MS = 100
/** Bytes that are kept beyond those that the server reads, so that it detects a body that is too large. */
const EXCESS_BYTES = 65_536

/** One call of a worker, received wholly. */
interface Call {
  readonly kind: CallKind
  readonly request: IncomingMessage
  /** Path and query at the server. */
  readonly url: string
  readonly response: ServerResponse
  readonly body: SpooledBody | null
  readonly sharer: Sharer
  /** Aborts at the end of the worker's connection. */
  readonly gone: AbortSignal
}

/** Passes calls of workers on to the server that runs at that time. */
export class CallForwarder {
  readonly #spool
  readonly #upstream
  readonly #admission
  readonly #callers
  readonly #setAside
  readonly #calmMs
  readonly #takes = new UndeliveredTakes()
  readonly #copies = new ChunkDedup()
  readonly #quarantine = new Quarantine()
  /** Bytes of the largest body that the server reads, as the last one said; before the first, the largest of any. */
  largestBody: number = MAX_RESULT_BYTES.max

  constructor({
    spool,
    upstream,
    admission,
    callers,
    setAside,
    calmMs,
  }: {
    readonly spool: Spool
    readonly upstream: Upstream
    readonly admission: RelayAdmission
    readonly callers: Callers
    readonly setAside: SetAside
    /** Time for which a server must run before a suspect is passed on to it, in milliseconds. */
    readonly calmMs: number
  }) {
    this.#spool = spool
    this.#upstream = upstream
    this.#admission = admission
    this.#callers = callers
    this.#setAside = setAside
    this.#calmMs = calmMs
  }

  /** Handles a call to its end. Reads nothing of its body before the caller is known as a worker. */
  async pass(kind: CallKind, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    // The end of a response that was sent is no abort: each would make an exception with its stack.
    const leave = () => {
      if (!response.writableFinished) gone.abort()
    }
    response.on('close', leave)
    // A worker that sends no more may have gone. Its results and pings count in any case, so their
    // answers wait for nothing else.
    if (kind !== 'result' && kind !== 'results' && kind !== 'ping') request.socket.once('end', leave)
    try {
      const sharer = this.#admission.findCaller(request) ?? (await this.#admission.confirmCaller(request, gone.signal))
      if (typeof sharer === 'string') turnAway(kind, request, response, sharer)
      else if (!this.#callers.enter(sharer, request.socket)) turnAway(kind, request, response, 'full')
      else await this.#passOn(kind, request, response, sharer, gone.signal)
    } finally {
      request.socket.off('end', leave)
      response.off('close', leave)
    }
  }

  async #passOn(
    kind: CallKind,
    request: IncomingMessage,
    response: ServerResponse,
    sharer: Sharer,
    gone: AbortSignal,
  ): Promise<void> {
    let body: SpooledBody | null = null
    try {
      const largest =
        kind === 'result' ? this.largestBody : kind === 'results' ? JOINED_RESULTS.bytes : RESULT_BYTES.read
      if (request.method === 'POST')
        // A body without room must not end the connection: the worker would not get the response.
        body = await this.#spool.receive(
          request.iterator({ destroyOnReturn: false }),
          ...([largest + EXCESS_BYTES, kind === 'chunk', sharer] as const),
        )
      const { url = '' } = request
      const call: Call = { kind, request, url, response, body, sharer, gone }
      if (kind === 'take') await this.#take(call)
      else if (kind === 'poll' || kind === 'ping') await this.#poll(call)
      else if (kind === 'results') await this.#postResults(call)
      else await this.#post(call)
    } catch (error) {
      if (!(error instanceof SpoolFull)) throw error
      turnAway(kind, request, response, 'full')
    } finally {
      this.#callers.leave(sharer)
      await body?.drop()
    }
  }

  async #take(call: Call): Promise<void> {
    const { request, response, gone } = call
    const token = request.headers.authorization ?? ''
    const endMs = performance.now() + HOLD_MS
    // The end of a connection that closed already is read right after it.
    await new Promise(setImmediate)
    while (await this.#upstream.present(endMs, gone)) {
      if (!(await this.#mayTake(call, token))) continue
      const take = this.#takes.begin(token, relayNow())
      let outcome: 'delivered' | 'nothing' | 'lost' = 'lost'
      try {
        const answer = await this.#ask(call, gone)
        const written = await this.#answer(call, answer)
        outcome = answer.status !== 200 ? 'nothing' : written ? 'delivered' : 'lost'
        return
      } catch (error) {
        if (error instanceof SpoolFull) throw error
      } finally {
        // At once: the next take of the worker waits until the jobs of this one are reported.
        this.#takes.end(take, outcome, relayNow())
        if (outcome === 'lost' && gone.aborted) void this.#insist(call, token)
      }
      await pause()
    }
    if (gone.aborted) void this.#insist(call, token)
    respond(response, 204, '')
  }

  /** Reports lost jobs to the server first, which would otherwise take them for jobs that the worker lost. */
  async #mayTake(call: Call, token: string): Promise<boolean> {
    await this.#report(call, token)
    if (!this.#takes.isReporting(token)) return this.#upstream.address !== null
    await pause()
    return false
  }

  /** Reports to the server that jobs never reached the worker. */
  async #report({ request, sharer }: Call, token: string): Promise<void> {
    const sinceMs = this.#takes.beginReport(token)
    if (sinceMs === null) return
    let isReported = false
    try {
      const added = [
        ...[RELAY_HEADERS.undeliveredSince, String(sinceMs)],
        ...[RELAY_HEADERS.relayNow, String(relayNow())],
        ...[RELAY_HEADERS.relayMonotonic, String(machineMonotonic())],
      ]
      const mark = {
        method: 'GET',
        path: request.url ?? '',
        headers: ['Authorization', token],
        added,
        body: null,
        sharer,
      }
      const answer = await this.#upstream.ask({ ...mark, signal: AbortSignal.timeout(HOLD_MS) })
      isReported = answer.status < 500 && answer.status !== 429
      await answer.body.drop()
    } catch {
      // The report goes to the next server.
    } finally {
      this.#takes.endReport(token, isReported)
    }
  }

  /** Reports for a worker that may send no further call. */
  async #insist(call: Call, token: string): Promise<void> {
    const endMs = performance.now() + ORPHAN_MS
    while (this.#takes.isLost(token) && (await this.#upstream.present(endMs, null))) {
      await this.#report(call, token)
      if (this.#takes.isLost(token)) await pause()
    }
  }

  async #poll(call: Call): Promise<void> {
    const { response, gone, kind } = call
    const endMs = performance.now() + HOLD_MS
    do {
      try {
        if (this.#upstream.address !== null) {
          await this.#answer(call, await this.#ask(call, gone))
          return
        }
      } catch (error) {
        if (error instanceof SpoolFull) throw error
        await pause()
      }
    } while (kind !== 'ping' && (await this.#upstream.present(endMs, gone)))
    respond(response, kind === 'ping' ? 200 : 204, kind === 'ping' ? '{}' : '')
  }

  async #post(call: Call): Promise<void> {
    const answer = await this.#deliver(call)
    if (answer === null) respondAway(call.response)
    else await this.#answer(call, answer)
  }

  /**
   * Passes on a body until it is answered; null without an answer. A result counts also when its worker is gone; a
   * worker sends a chunk again.
   */
  async #deliver(call: Call): Promise<UpstreamAnswer | null> {
    const { request, url, gone, kind, body, sharer } = call
    const signal = kind === 'chunk' ? gone : null
    const endMs = performance.now() + ORPHAN_MS
    const stream = `${request.headers.authorization}\n${url}`
    let added: string[] = []
    const trial = this.#quarantine.startTrial(sharer.token, body?.bytes ?? 0)
    while (!trial.isOver && (await this.#upstream.present(endMs, signal))) {
      const answer = trial.isSuspect ? await this.#tryAlone(call, added) : await this.#try(call, added)
      if (answer === 'died') trial.died()
      if (typeof answer !== 'string') {
        if (kind === 'chunk' && answer.status === 200) this.#copies.countStored(stream, body!.digest)
        return answer
      }
      if (kind === 'chunk') added = [RELAY_HEADERS.again, String(this.#copies.copiesIfStored(stream, body!.digest))]
    }
    return trial.isOver ? this.#setBodyAside(call) : null
  }

  /**
   * Passes on several results in one call. Once a server has died of them, or of others of this worker, each goes
   * alone, so that one of them is set aside without the others.
   */
  async #postResults(call: Call): Promise<void> {
    const endMs = performance.now() + ORPHAN_MS
    const { isSuspect } = this.#quarantine.startTrial(call.sharer.token, call.body?.bytes ?? 0)
    for (let isDeadly = isSuspect; !isDeadly; ) {
      const answer = (await this.#upstream.present(endMs, null)) ? await this.#try(call, []) : null
      if (answer === null) return respondAway(call.response)
      if (typeof answer !== 'string') return void (await this.#answer(call, answer))
      isDeadly = answer === 'died'
    }
    const results = await resultsOf(call)
    if (results === null) {
      respond(call.response, 400, '{"error":"the results cannot be read"}')
      return
    }
    const statuses = await Promise.all(
      results.map(async result => {
        const answer = await this.#deliver(result)
        await answer?.body.drop()
        return answer?.status ?? 503
      }),
    )
    respond(call.response, 200, JSON.stringify(statuses))
  }

  async #try(call: Call, added: readonly string[]): Promise<UpstreamAnswer | 'failed' | 'died'> {
    await this.#quarantine.enter(false)
    try {
      return this.#upstream.address === null ? 'failed' : await this.#passBody(call, added)
    } finally {
      this.#quarantine.leave()
    }
  }

  /**
   * Passes on a suspect alone, to a server that has been up for a while and responds: a server that ends at its
   * start, or is killed again and again, says nothing about bodies.
   */
  async #tryAlone(call: Call, added: readonly string[]): Promise<UpstreamAnswer | 'failed' | 'died'> {
    const waitMs = this.#calmMs - this.#upstream.upMs
    if (waitMs > 0) {
      await pause(Math.min(waitMs, PAUSE_MS))
      return 'failed'
    }
    await this.#quarantine.enter(true)
    try {
      if (this.#upstream.upMs < this.#calmMs || !(await this.#answers(call))) return 'failed'
      return await this.#passBody(call, added)
    } finally {
      this.#quarantine.leave()
    }
  }

  async #answers({ request, sharer }: Call): Promise<boolean> {
    try {
      const answer = await this.#upstream.ask(emptyReport(request, sharer))
      await answer.body.drop()
      return true
    } catch {
      await pause()
      return false
    }
  }

  /** Passes on a body to the end, also when its worker leaves: the server may still die of it. */
  async #passBody(call: Call, added: readonly string[]): Promise<UpstreamAnswer | 'failed' | 'died'> {
    const { losses } = this.#upstream
    try {
      const answer = await this.#ask(call, null, added)
      this.#quarantine.survived(call.sharer.token)
      return answer
    } catch (error) {
      if (error instanceof SpoolFull) throw error
      // A server that died of this body is noticed in this pause, before another body is passed on.
      await pause()
      if (this.#upstream.losses === losses) return 'failed'
      this.#quarantine.died(call.sharer.token)
      return 'died'
    }
  }

  /**
   * Keeps a body in a file and reports it to the server, which ends the call, so that the worker does not send it
   * again. Null if no server answers.
   */
  async #setBodyAside(call: Call): Promise<UpstreamAnswer | null> {
    const { body, sharer, url } = call
    this.#quarantine.convicted(sharer.token)
    const file = await this.#setAside.keep(body!, sharer, url)
    const note: Call = { ...call, body: null }
    const added = [
      ...[RELAY_HEADERS.dropped, String(body!.bytes), 'Content-Length', '0'],
      ...(file === null ? [] : [RELAY_HEADERS.setAside, file]),
    ]
    const endMs = performance.now() + ORPHAN_MS
    while (await this.#upstream.present(endMs, null)) {
      const answer = await this.#try(note, added)
      if (typeof answer !== 'string') return answer
    }
    return null
  }

  #ask(
    { request, url, body, sharer }: Call,
    signal: AbortSignal | null,
    added: readonly string[] = [],
  ): Promise<UpstreamAnswer> {
    const { method = 'GET', rawHeaders } = request
    return this.#upstream.ask({ method, path: url, headers: rawHeaders, added, body, signal, sharer })
  }

  /** Writes the answer; true if the whole response was given to the network. */
  async #answer({ kind, response, gone }: Call, answer: UpstreamAnswer): Promise<boolean> {
    try {
      if ((kind === 'take' && gone.aborted) || response.destroyed) return false
      const { status, body } = answer
      const length = status === 204 ? [] : ['Content-Length', String(body.bytes)]
      response.writeHead(status, [...answer.headers, ...length])
      const settled = new Promise<boolean>(resolve => {
        response.once('finish', () => resolve(true))
        response.once('close', () => resolve(response.writableFinished))
      })
      const content = body.read()
      if (Buffer.isBuffer(content)) response.end(content)
      else content.on('error', () => response.destroy()).pipe(response)
      return await settled
    } finally {
      await answer.body.drop()
    }
  }
}

/**
 * Refuses a call so that a worker retries it. The rest of a worker's body is discarded; the body of an
 * unknown caller is not read.
 */
function turnAway(
  kind: CallKind,
  request: IncomingMessage,
  response: ServerResponse,
  refusal: AdmissionRefusal | 'full',
): void {
  const close: Record<string, string> = request.method === 'POST' && refusal !== 'full' ? { Connection: 'close' } : {}
  if (refusal === 'full') request.resume()
  if (refusal === 'unauthorized') {
    respond(response, 401, '{"error":"this is not the token of a worker"}', close)
    return
  }
  const error = refusal === 'away' ? 'the server is away, and this token is unknown' : 'the relay has no room'
  const isPoll = kind === 'take' || kind === 'poll'
  respond(response, isPoll ? 429 : 503, JSON.stringify({ error }), { ...close, ...RETRY })
}

function respondAway(response: ServerResponse): void {
  respond(response, 503, '{"error":"the server is away"}', RETRY)
}

/** A call for each of several results; null if they cannot be read. */
async function resultsOf(call: Call): Promise<Call[] | null> {
  const content = call.body!.read()
  const results = splitResults(Buffer.isBuffer(content) ? content : await buffer(content))
  if (results === null) return null
  return results.map(({ jobId, text }): Call => {
    const result = Buffer.from(text)
    // The body of all of them has the room.
    const body = { bytes: result.byteLength, digest: '', read: () => result, drop: async () => {} }
    return { ...call, kind: 'result', url: resultUrl(call.url, jobId), body }
  })
}

function pause(ms = PAUSE_MS): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
