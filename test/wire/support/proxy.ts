/** A proxy between a worker and its server that can answer in the server's place. */
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from './cleanup.ts'
import { inContainers } from './workers.ts'

/** Treatment of a call: it is passed on, passed on with its answer replaced, or answered without the server. */
export type Treatment = 'pass' | { readonly status: number; readonly pass: boolean }

/** A proxy that listens. */
export interface Proxy {
  /** Its address on this machine; the fixture workers use another address from within a container. */
  readonly url: string
  /** The calls so far, as `POST job-done`. */
  readonly calls: readonly string[]
}

/** Starts a proxy in front of a server; `treat` decides about each call, by its name such as `job-done`. */
export async function startProxy(target: string, treat: (call: string) => Treatment): Promise<Proxy> {
  const calls: string[] = []
  const server = createServer((incoming, outgoing) => {
    const call = (incoming.url ?? '').split('/')[3] ?? ''
    calls.push(`${incoming.method} ${call}`)
    void handle(target, treat(call), incoming, outgoing)
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>(resolve => server.listen(0, inContainers ? '0.0.0.0' : '127.0.0.1', resolve))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls }
}

async function handle(
  target: string,
  treatment: Treatment,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  if (treatment !== 'pass' && !treatment.pass) {
    incoming.resume().on('end', () => outgoing.writeHead(treatment.status).end())
    return
  }
  const { method, headers } = incoming
  const passed = forward(`${target}${incoming.url}`, { method, headers }, answer => {
    if (treatment === 'pass') {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    } else answer.resume().on('end', () => outgoing.writeHead(treatment.status).end())
  })
  passed.on('error', () => outgoing.destroy())
  outgoing.on('close', () => passed.destroy())
  incoming.pipe(passed)
}
