/** Requests whose body a surface has read, and that a load-balancing endpoint answers. */
import { type IncomingHttpHeaders, IncomingMessage, type ServerResponse } from 'node:http'
import { TOKEN_HEADER } from '../api/console/origin.ts'
import type { HandedOver, HandedRequest } from '../api/surface.ts'
import { errorForm } from '../core/openai/error-form.ts'
import { peerAddress, setPeerAddress } from '../gateway/entrance/forwarded.ts'
import type { Entrance } from '../gateway/entrance/route.ts'

/** Fields that the body in place of the first one has anew, and fields that are for this server alone. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'expect',
  'trailer',
  'x-api-key',
  TOKEN_HEADER,
])

const ENCODING = 'accept-encoding'

/** Hands a request over to the entrance of load-balancing endpoints. */
export function handOver(
  entrance: Entrance,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  {
    endpointId,
    caller,
    prefix,
    path,
    body,
    bodyFor,
    waitsFor,
    answerFields = [],
    hidesUsage = false,
    model,
  }: HandedRequest,
): HandedOver {
  const replay = replayed(incoming, body, waitsFor !== undefined || caller.accounting === true)
  if (bodyFor === undefined) fill(replay, body)
  const sent = new Promise<void>(resolve => {
    replay.once('end', resolve)
    outgoing.once('close', resolve)
  })
  const ended = new Promise<number>(resolve =>
    outgoing.once('close', () => resolve(outgoing.headersSent ? outgoing.statusCode : 0)),
  )
  if (outgoing.destroyed) return { sent: Promise.resolve(), ended: Promise.resolve(0) }
  entrance.handle(replay, outgoing, {
    endpointId,
    caller,
    prefix,
    path,
    host: null,
    hidesUsage,
    answerFields,
    errorForm: errorForm(path),
    ...(model === undefined ? {} : { model }),
    ...(waitsFor === undefined ? {} : { waitsFor }),
    ...(bodyFor === undefined ? {} : { complete: async worker => fill(replay, await bodyFor(worker)) }),
  })
  return { sent, ended }
}

/**
 * A request with the head of another one, on the same connection, and with the length of a body that it has not yet.
 * @param isPlain true if the response may have no encoding
 */
function replayed(incoming: IncomingMessage, body: readonly Uint8Array[], isPlain: boolean): IncomingMessage {
  const replay = new IncomingMessage(incoming.socket)
  const { method, url, httpVersion, httpVersionMajor, httpVersionMinor } = incoming
  Object.assign(replay, { method, url, httpVersion, httpVersionMajor, httpVersionMinor, complete: true })
  const bytes = length(body)
  const raw: string[] = []
  for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2) {
    const name = incoming.rawHeaders[at]!
    const isDropped = OWN_FIELDS.has(name.toLowerCase()) || (isPlain && name.toLowerCase() === ENCODING)
    if (!isDropped) raw.push(name, incoming.rawHeaders[at + 1]!)
  }
  replay.rawHeaders = [...raw, 'Content-Length', String(bytes)]
  const headers: IncomingHttpHeaders = { ...incoming.headers }
  for (const name of OWN_FIELDS) delete headers[name]
  replay.headers = { ...headers, 'content-length': String(bytes) }
  const peer = peerAddress(incoming)
  if (peer !== undefined) setPeerAddress(replay, peer)
  return replay
}

/** Gives a request its body. @returns its length in bytes */
function fill(replay: IncomingMessage, body: readonly Uint8Array[]): number {
  for (const piece of body) if (piece.length > 0) replay.push(piece)
  replay.push(null)
  return length(body)
}

function length(body: readonly Uint8Array[]): number {
  return body.reduce((sum, piece) => sum + piece.length, 0)
}
