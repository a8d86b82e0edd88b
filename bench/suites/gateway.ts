/**
 * Cost that the gateway adds to a request of a load-balancing endpoint, beside one worker of
 * nginx with the same backend, and beside the HTTP server of Node, which asks no backend.
 */
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { BODY } from '../harness/backend.ts'
import { connectionCases, loadSuite } from '../harness/load-suite.ts'
import { ask, type RunyardServer, requestTo, startRunyard } from '../harness/runyard.ts'
import { type Bench, requestText, type Side } from '../harness/sides.ts'

/** The path of the requests that the backend gets. */
export const GATEWAY_PATH = '/v1/things?x=1'
const BACKEND = join(import.meta.dirname, '../harness/backend.ts')

/** See the head of this file. `bench/gateway.ts` also measures proxies with less than a gateway, and WebSockets. */
export const gateway = loadSuite({
  name: 'gateway',
  title: 'A request through the gateway: GET, key check, access log, one worker behind it',
  notes: 'The HTTP server of Node sends a constant response and has nothing behind it: no gateway on it takes less.',
  loads: connectionCases(1, 32, 256),
  quick: ['32 connections'],
  baseline: 'nginx, one worker',
  compares: 'throughput',
  async start(bench, wants) {
    const { line, pid } = await bench.start(process.execPath, [BACKEND])
    const port = Number(line)
    const nginx = await bench.nginx(port)
    const sides: Side[] = [
      { name: 'backend alone', port, request: requestText(port, GATEWAY_PATH, {}, null), pids: [pid] },
      {
        name: 'nginx, one worker',
        port: nginx.port,
        request: requestText(nginx.port, GATEWAY_PATH, {}, null),
        pids: [nginx.pid],
      },
      { name: 'HTTP server of Node, no backend', ...(await nodeSide(bench)) },
      { name: 'Runyard', ...(await gatewaySide(bench)) },
    ]
    return sides.filter(({ name }) => wants(name))
  },
})

/** Starts the backend. @returns its port */
export async function startBackend(bench: Bench): Promise<number> {
  const { line } = await bench.start(process.execPath, [BACKEND])
  return Number(line)
}

/**
 * Starts a server with a load-balancing endpoint, named `bench`, whose only worker is a backend.
 * @param backend program of the worker
 * @returns it, the id of the endpoint, and the path of a request to the worker
 */
export async function balancedServer(
  bench: Bench,
  env: Readonly<Record<string, string>> = {},
  backend = BACKEND,
): Promise<{ server: RunyardServer; id: string; path: string }> {
  const server = await startRunyard(bench, null, { logLevel: 'debug', env })
  const folder = join(bench.folder, `gateway-worker-${server.port}`)
  mkdirSync(folder)
  const { id } = (await ask(server, '/v2/serverless', {
    name: 'bench',
    type: 'LOAD_BALANCER',
    image: `dir:${folder}`,
    args: `${process.execPath} ${backend}`,
    scaling: { type: 'REQUEST_COUNT', requestCount: 10_000 },
    workers: { min: 1, max: 1 },
    cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
  })) as { id: string }
  await ask(server, `/lb/${id}/ping`)
  return { server, id, path: `/lb/${id}${GATEWAY_PATH}` }
}

/** Starts the side of the gateway. The processor time of the worker does not count. */
async function gatewaySide(bench: Bench): Promise<Omit<Side, 'name'>> {
  const { server, path } = await balancedServer(bench)
  return { port: server.port, request: requestTo(server, path, null), pids: [server.pid], isAlone: true }
}

/** Starts the HTTP server of Node, which sends a constant response. */
export async function nodeSide(bench: Bench): Promise<Omit<Side, 'name'>> {
  const { line, pid } = await bench.start(process.execPath, [import.meta.filename])
  const port = Number(line)
  return { port, request: requestText(port, GATEWAY_PATH, {}, null), pids: [pid] }
}

/** Runs the HTTP server of Node with the options of a server of Runyard if this file is the program. */
if (import.meta.main) {
  const head = { 'content-type': 'application/json', 'content-length': BODY.length }
  const server = createServer({ noDelay: true, optimizeEmptyRequests: true }, (_, response) => {
    response.writeHead(200, head).end(BODY)
  })
  server.listen(0, '127.0.0.1', 4_096, () => console.log((server.address() as AddressInfo).port))
}
