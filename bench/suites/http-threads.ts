/**
 * Cost of threads that read HTTP: processor time of a request through the gateway, of the whole server and of its
 * deciding thread alone, with one and two of them, beside nginx.
 */
import { connectionCases, loadSuite } from '../harness/load-suite.ts'
import { requestTo } from '../harness/runyard.ts'
import { requestText, type Side } from '../harness/sides.ts'
import { balancedServer, GATEWAY_PATH, startBackend } from './gateway.ts'

/** See the head of this file. */
export const httpThreads = loadSuite({
  name: 'http-threads',
  title: 'A request through the gateway with threads that read HTTP: GET, key check, access log, one worker',
  notes: 'The deciding thread is measured without the threads of the garbage collector, which all threads share.',
  loads: connectionCases(32, 256),
  baseline: 'nginx, one worker',
  compares: 'throughput',
  async start(bench, wants) {
    const port = await startBackend(bench)
    const nginx = await bench.nginx(port)
    const sides: Side[] = [
      {
        name: 'nginx, one worker',
        port: nginx.port,
        request: requestText(nginx.port, GATEWAY_PATH, {}, null),
        pids: [nginx.pid],
      },
    ]
    for (const threads of [1, 2, 3]) {
      const { server, path } = await balancedServer(bench, { RUNYARD_HTTP_THREADS: String(threads) })
      const side = { port: server.port, request: requestTo(server, path, null), pids: [server.pid], isAlone: true }
      const name = threads === 1 ? 'Runyard, 1 thread' : `Runyard, ${threads} HTTP threads`
      sides.push({ ...side, name })
      if (threads > 1) sides.push({ ...side, name: `${name}, the deciding one`, isFirstThread: true })
    }
    return sides.filter(({ name }) => wants(name))
  },
})
