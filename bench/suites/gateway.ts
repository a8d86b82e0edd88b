/**
 * Cost that the gateway adds to a request of a load-balancing endpoint, beside one worker of
 * nginx with the same backend.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
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
