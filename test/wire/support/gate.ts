/** A proxy between a client and a server, in which a test answers, delays or redirects requests. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from './cleanup.ts'
import type { Server } from './server.ts'

/** An answer of the gate itself. */
export interface GateAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * Action of a gate on a request: it answers the request, forwards it under another path, or (undefined) forwards it
 * unchanged.
 */
export type GateRule = (line: string) => GateAnswer | { readonly path: string } | Promise<void> | undefined

/** A gate that is open. */
export interface Gate {
  readonly url: string
  /** Method and path of all requests so far, in order. */
  readonly lines: string[]
  /** Action from now on; a promise holds a request until it resolves. */
  rule: GateRule
}

/** Opens a gate to a server. It is closed with the test file. */
export async function openGate(server: Pick<Server, 'port'>): Promise<Gate> {
  const gate: Gate & { url: string } = { url: '', lines: [], rule: () => undefined }
  const proxy = createServer((incoming, outgoing) => {
    const line = `${incoming.method} ${incoming.url}`
    gate.lines.push(line)
    void pass(gate.rule(line), incoming, outgoing, server.port)
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  gate.url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  return gate
}

async function pass(
  decision: ReturnType<GateRule>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  port: number,
): Promise<void> {
  const answer = await decision
  if (answer !== undefined && 'status' in answer) {
    incoming.resume()
    outgoing.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers }).end(answer.body)
    return
  }
  const path = answer?.path ?? incoming.url
  const onward = request({ port, host: '127.0.0.1', path, method: incoming.method, headers: incoming.headers })
  onward.on('response', response => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(outgoing)
  })
  onward.on('error', () => outgoing.destroy())
  outgoing.on('close', () => onward.destroy())
  incoming.pipe(onward)
}
