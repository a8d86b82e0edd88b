/** Requests whose body a surface has read, and that a load-balancing endpoint answers. */
import { type IncomingHttpHeaders, IncomingMessage, type ServerResponse } from 'node:http'
import { TOKEN_HEADER } from '../api/console/origin.ts'
import type { HandedOver, HandedRequest } from '../api/surface.ts'
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

/** Hands a request over to the entrance of load-balancing endpoints. */
export function handOver(
  entrance: Entrance,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { endpointId, caller, prefix, path, body }: HandedRequest,
): HandedOver {
  const replay = replayed(incoming, body)
  const sent = new Promise<void>(resolve => {
    replay.once('end', resolve)
    outgoing.once('close', resolve)
  })
  const ended = new Promise<number>(resolve =>
    outgoing.once('close', () => resolve(outgoing.headersSent ? outgoing.statusCode : 0)),
  )
  if (outgoing.destroyed) return { sent: Promise.resolve(), ended: Promise.resolve(0) }
  entrance.handle(replay, outgoing, { endpointId, caller, prefix, path, host: null })
  return { sent, ended }
}

/** A request with the head of another one, on the same connection, and with a body that is there already. */
function replayed(incoming: IncomingMessage, body: readonly Uint8Array[]): IncomingMessage {
  const replay = new IncomingMessage(incoming.socket)
  const { method, url, httpVersion, httpVersionMajor, httpVersionMinor } = incoming
  Object.assign(replay, { method, url, httpVersion, httpVersionMajor, httpVersionMinor, complete: true })
  const bytes = body.reduce((sum, piece) => sum + piece.length, 0)
  const raw: string[] = []
  for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2) {
    const name = incoming.rawHeaders[at]!
    if (!OWN_FIELDS.has(name.toLowerCase())) raw.push(name, incoming.rawHeaders[at + 1]!)
  }
  replay.rawHeaders = [...raw, 'Content-Length', String(bytes)]
  const headers: IncomingHttpHeaders = { ...incoming.headers }
  for (const name of OWN_FIELDS) delete headers[name]
  replay.headers = { ...headers, 'content-length': String(bytes) }
  const peer = peerAddress(incoming)
  if (peer !== undefined) setPeerAddress(replay, peer)
  for (const piece of body) if (piece.length > 0) replay.push(piece)
  replay.push(null)
  return replay
}
