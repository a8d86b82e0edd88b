/** Parts of requests and responses that are passed on from one connection to another. */
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { isHopByHop, namedByConnection } from '../gateway/http1/fields.ts'

/** Pipes the bytes of one side to the other; the end of one ends the other. */
export function join(from: Duplex, to: Duplex): void {
  from.on('error', () => to.destroy())
  from.on('close', () => to.destroy())
  from.pipe(to)
}

/** The head of a response as text. @param fields names and values in turn */
export function responseHead({ statusCode = 502, statusMessage }: IncomingMessage, fields: readonly string[]): string {
  const lines: string[] = []
  for (let at = 0; at + 1 < fields.length; at += 2) lines.push(`${fields[at]}: ${fields[at + 1]}\r\n`)
  return `HTTP/1.1 ${statusCode} ${statusMessage ?? STATUS_CODES[statusCode] ?? ''}\r\n${lines.join('')}\r\n`
}

/**
 * The fields that are not of one connection only: names and values in turn.
 * @param connection the value of `Connection`
 * @param without names in lower case of others that are left out
 */
export function keptFields(raw: readonly string[], connection = '', without: readonly string[] = []): string[] {
  const named = namedByConnection(connection)
  const keptHeaders: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const lower = raw[at]!.toLowerCase()
    const isLeftOut = isHopByHop(lower) || lower === 'expect' || without.includes(lower)
    if (!isLeftOut && named?.includes(lower) !== true) keptHeaders.push(raw[at]!, raw[at + 1]!)
  }
  return keptHeaders
}
