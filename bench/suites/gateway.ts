/** What the gateway adds to a request of a load-balancing endpoint, beside one worker of nginx with the same backend. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { loadSuite, ofConnections } from '../harness/load-suite.ts'
import { ask, requestTo, startRunyard } from '../harness/runyard.ts'
import { type Bench, requestText, type Side } from '../harness/sides.ts'

const PATH = '/v1/things?x=1'
const BACKEND = join(import.meta.dirname, '../harness/backend.ts')

/** See the head of this file. `bench/gateway.ts` also measures proxies with less than a gateway, WebSockets and idle sockets. */
export const gateway = loadSuite({
  name: 'gateway',
  title: 'A request through the gateway: GET, key check, access log, one worker behind it',
  loads: ofConnections(1, 32, 256),
  quick: ['32 connections'],
  baseline: 'nginx, one worker',
  compares: 'throughput',
  async start(bench, wants) {
    const { line, pid } = await bench.start(process.execPath, [BACKEND])
    const port = Number(line)
    const nginx = await bench.nginx(port)
    const sides: Side[] = [
      { name: 'backend alone', port, request: requestText(port, PATH, {}, null), pids: [pid] },
      {
        name: 'nginx, one worker',
        port: nginx.port,
        request: requestText(nginx.port, PATH, {}, null),
        pids: [nginx.pid],
      },
      { name: 'Runyard', ...(await gatewaySide(bench)) },
    ]
    return sides.filter(({ name }) => wants(name))
  },
})

/** The backend is the only worker; its processor time does not count. */
async function gatewaySide(bench: Bench): Promise<Omit<Side, 'name'>> {
  const server = await startRunyard(bench, null, { logLevel: 'debug' })
  const folder = join(bench.folder, 'gateway-worker')
  mkdirSync(folder)
  const { id } = (await ask(server, '/v2/serverless', {
    name: 'bench',
    type: 'LOAD_BALANCER',
    image: `dir:${folder}`,
    args: `${process.execPath} ${BACKEND}`,
    scaling: { type: 'REQUEST_COUNT', requestCount: 1_000 },
    workers: { min: 1, max: 1 },
    cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
  })) as { id: string }
  await ask(server, `/lb/${id}/ping`)
  const request = requestTo(server, `/lb/${id}${PATH}`, null)
  return { port: server.port, request, pids: [server.pid], isAlone: true }
}
