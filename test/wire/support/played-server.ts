/** A relay in the process of the test, and servers that the test plays behind it. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { atEnd } from './cleanup.ts'

/** Headers that allow a server to command the relays of these tests. */
export const RELAY_COMMAND = { authorization: 'secret' }

/** Tokens of workers that are live; sent in one message unless `first` and `last` are set. */
export interface LiveTokens {
  readonly first?: boolean
  readonly last?: boolean
  readonly live?: readonly string[]
  readonly ended?: readonly string[]
}

/** Sends tokens of workers to a relay, all of one account. */
export async function sendTokens(relayUrl: string, tokens: LiveTokens): Promise<void> {
  const { first = true, last = true, live = [], ended = [] } = tokens
  const body = JSON.stringify({
    first,
    last,
    live: live.map(token => [hash('sha256', token), 'an-account']),
    ended: ended.map(token => hash('sha256', token)),
  })
  const { status } = await fetch(`${relayUrl}/relay/tokens`, { method: 'POST', headers: RELAY_COMMAND, body })
  assert.equal(status, 200)
}

/** Answers one request, whose body was read. */
export type PlayedHandler = (request: IncomingMessage, response: ServerResponse, body: string) => void

/** A server that reports to a relay until it is killed, at the end of the test file at the latest. */
export async function playServer(relayUrl: string, handler: PlayedHandler): Promise<{ kill(): void }> {
  const played = createServer(async (incoming, response) => handler(incoming, response, await text(incoming)))
  await new Promise<void>(resolve => played.listen(0, '127.0.0.1', resolve))
  const headers = { ...RELAY_COMMAND, 'x-runyard-server': `127.0.0.1:${(played.address() as AddressInfo).port}` }
  const tether = request(`${relayUrl}/relay/tether`, { method: 'POST', headers }).end()
  tether.on('error', () => {})
  await new Promise(resolve => tether.once('response', resolve))
  const kill = () => {
    played.closeAllConnections()
    played.close()
    tether.destroy()
  }
  atEnd(kill)
  return { kill }
}
