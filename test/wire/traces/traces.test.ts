/**
 * Traces at the receiver of the OpenTelemetry Collector: from a client over the server to a
 * worker, a server and a webhook.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { freePort } from '../../support/free-ports.ts'
import { balancedEndpoint, call, inNode } from '../support/balanced.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask, changeEndpoint, makeEndpoint, whenFinal } from '../support/client.ts'
import { type Collector, noCollector, type ReceivedSpan, startCollector } from '../support/collector.ts'
import { python, tracesSkip } from '../support/python.ts'
import { fixture, root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const SPAN = '00f067aa0ba902b7'
const TOKEN = 'a-token-of-the-collector'

let traces = 0
/** The id of a trace that no other test has. */
const newTrace = () => `4bf92f3577b34da6a3ce929d0e${String(++traces).padStart(6, '0')}`

/** The variables of a server that sends spans soon. */
function tracing(url: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '50', ...more }
}

/** Names of the spans of a trace below a parent, with indents, in the order of time. */
function treeOf(spans: readonly ReceivedSpan[], parentId: string | null, depth = 0): string[] {
  return spans
    .filter(span => span.parentId === parentId)
    .toSorted((a, b) => a.startMs - b.startMs || a.endMs - b.endMs)
    .flatMap(({ name, spanId }) => [`${'  '.repeat(depth)}${name}`, ...treeOf(spans, spanId, depth + 1)])
}

/** The spans of a trace, once all of these names have arrived. */
function arrived({ spans }: Collector, traceId: string, names: readonly string[]): Promise<ReceivedSpan[]> {
  return until(`${names.join(', ')} of ${traceId}`, () => {
    const found = spans().filter(span => span.traceId === traceId)
    return names.every(name => found.some(span => span.name === name)) && found
  })
}

function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  return spans.find(span => span.name === name) ?? assert.fail(`no ${name} in ${treeOf(spans, SPAN).join(', ')}`)
}

/** An address that answers each call with 200, and the headers of the calls. */
async function startReceiver(): Promise<{ url: string; headers: Record<string, unknown>[] }> {
  const headers: Record<string, unknown>[] = []
  const server = createServer((request, response) => {
    headers.push(request.headers)
    request.resume().on('end', () => response.end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, headers }
}

async function runTraced(server: Server, endpoint: string, traceId: string, more: object = {}): Promise<string> {
  const headers = { traceparent: `00-${traceId}-${SPAN}-01` }
  const { json, text } = await ask(server, `/v2/${endpoint}/run`, {
    headers,
    body: { input: { hidden: 'hid-1' }, ...more },
  })
  assert.ok(json.id !== undefined, text)
  return json.id
}

describe('traces at a collector', { skip: noCollector, concurrency: 3 }, () => {
  for (const protocol of ['http/protobuf', 'http/json']) {
    test(`a job is one tree from its client to its worker and its webhook, over ${protocol}`, async () => {
      const [collector, receiver] = [await startCollector(), await startReceiver()]
      const server = await startServer({
        env: tracing(collector.url, {
          OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
          OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${TOKEN}`,
          OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=a%20test',
        }),
      })
      const endpoint = await makeEndpoint(server, { folder: fixture('node-traces'), settings: { workersMax: 1 } })
      const traceId = newTrace()
      const beforeMs = Date.now()
      const id = await runTraced(server, endpoint, traceId, { webhook: receiver.url })
      const { output } = await whenFinal(server, endpoint, id)
      const afterMs = Date.now()
      const spans = await arrived(collector, traceId, ['job', 'webhook'])
      assert.deepEqual(treeOf(spans, SPAN), ['job', '  queue', '  attempt', '  webhook'])
      const [job, queue, attempt, webhook] = ['job', 'queue', 'attempt', 'webhook'].map(name => named(spans, name))
      assert.deepEqual(output, { traceparent: `00-${traceId}-${attempt!.spanId}-01`, names: [] })
      assert.equal(receiver.headers[0]?.traceparent, `00-${traceId}-${webhook!.spanId}-01`)
      const times = [beforeMs, job!.startMs, queue!.startMs, queue!.endMs, attempt!.endMs, job!.endMs, webhook!.endMs]
      assert.deepEqual(
        times,
        times.toSorted((a, b) => a - b),
      )
      assert.ok(job!.endMs <= afterMs)
      assert.deepEqual([job!.kind, attempt!.kind, job!.service], [2, 3, 'runyard'])
      assert.equal(job!.attributes['runyard.job.id'], id)
      const start = await until('the start of the worker', () =>
        collector.spans().find(span => span.name === 'worker start'),
      )
      assert.deepEqual(queue!.links, [start.spanId])
      assert.equal(collector.resource('runyard')?.['deployment.environment.name'], 'a test')
      const { text } = await ask(server, '/metrics')
      assert.match(text, /^runyard_trace_spans_total\{result="sent"\} [1-9]/m)
      assert.equal((await server.stop()).code, 0)
      assert.doesNotMatch(JSON.stringify(collector.spans()), /hid-1|hidden/)
      assert.doesNotMatch(server.lines.join('\n'), new RegExp(TOKEN))
    })
  }

  test('a load-balanced request is a tree, and its worker gets the context of its part and the state of the client', async () => {
    const collector = await startCollector()
    const server = await startServer({ env: tracing(collector.url) })
    const endpoint = await balancedEndpoint(server, { ...inNode, workers: { min: 1, max: 1 } })
    const traceId = newTrace()
    const headers = { traceparent: `00-${traceId}-${SPAN}-01`, tracestate: 'vendor=1' }
    const { json, status } = await call(endpoint, '/seen?query=hid-2', { headers })
    assert.equal(status, 200)
    const spans = await arrived(collector, traceId, ['GET', 'queue', 'worker'])
    assert.deepEqual(treeOf(spans, SPAN), ['GET', '  queue', '  worker'])
    const worker = named(spans, 'worker')
    assert.equal(json.headers.traceparent, `00-${traceId}-${worker.spanId}-01`)
    assert.equal(json.headers.tracestate, 'vendor=1')
    assert.equal(worker.attributes['runyard.worker.id'], json.worker)
    assert.deepEqual(named(spans, 'GET').attributes['url.path'], '/seen')
    const bad = await call(endpoint, '/seen', { headers: { traceparent: 'x', tracestate: 'vendor=1' } })
    assert.match(bad.json.headers.traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
    assert.equal(bad.json.headers.tracestate, undefined)
    await server.stop()
    assert.doesNotMatch(JSON.stringify(collector.spans()), /hid-2/)
  })

  test('the trace of a job that waits goes on after the server was killed', async () => {
    const [collector, dataDir] = [await startCollector(), temporaryFolder()]
    const first = await startServer({ dataDir, env: tracing(collector.url) })
    const endpoint = await makeEndpoint(first, { folder: fixture('node-traces'), settings: { workersMax: 0 } })
    const traceId = newTrace()
    const id = await runTraced(first, endpoint, traceId)
    await first.kill9()
    const second = await startServer({ dataDir, port: first.port, env: tracing(collector.url) })
    await changeEndpoint(second, endpoint, { workersMax: 1 })
    const { output } = await whenFinal(second, endpoint, id)
    const spans = await arrived(collector, traceId, ['job'])
    assert.deepEqual(treeOf(spans, SPAN), ['job', '  queue', '  attempt'])
    assert.equal(output.traceparent, `00-${traceId}-${named(spans, 'attempt').spanId}-01`)
    await second.stop()
  })

  test('a server whose collector is away serves, counts what it drops, says so, and sends again later', async () => {
    const port = await freePort()
    const limits = { OTEL_EXPORTER_OTLP_TIMEOUT: '300', OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${TOKEN}` }
    const server = await startServer({ env: tracing(`http://127.0.0.1:${port}`, limits) })
    const endpoint = await makeEndpoint(server, { folder: fixture('node-traces'), settings: { workersMax: 1 } })
    await whenFinal(server, endpoint, await runTraced(server, endpoint, newTrace()))
    await until('drops', async () => /spans_total\{result="dropped"\} [1-9]/.test((await ask(server, '/metrics')).text))
    await whenFinal(server, endpoint, await runTraced(server, endpoint, newTrace()))
    assert.notEqual(server.events('spans of traces were dropped').length, 0)
    const collector = await startCollector(port)
    const traceId = newTrace()
    await whenFinal(server, endpoint, await runTraced(server, endpoint, traceId))
    await arrived(collector, traceId, ['job'])
    await server.stop()
    assert.doesNotMatch(server.lines.join('\n'), new RegExp(TOKEN))
  })

  test('the handler of the guide goes on with the trace', { skip: tracesSkip }, async () => {
    const [collector, folder] = [await startCollector(), temporaryFolder()]
    const server = await startServer({ args: ['--process-root', folder], env: tracing(collector.url) })
    const guide = readFileSync(`${root}/docs/guides/tracing.md`, 'utf8')
    const [, handler = ''] = /^```python\n(.*?)^```$/ms.exec(guide) ?? []
    writeFileSync(join(folder, 'handler.py'), handler)
    const endpoint = await makeEndpoint(server, {
      folder,
      args: `${python} handler.py`,
      env: { ...tracing(collector.url), OTEL_SERVICE_NAME: 'my-model' },
      settings: { workersMax: 1 },
    })
    const traceId = newTrace()
    const { output } = await whenFinal(server, endpoint, await runTraced(server, endpoint, traceId))
    assert.deepEqual(output, { answer: 42 })
    const spans = await arrived(collector, traceId, ['job', 'generate'])
    assert.deepEqual(treeOf(spans, SPAN), ['job', '  queue', '  attempt', '    generate'])
    assert.equal(named(spans, 'generate').service, 'my-model')
    await server.stop()
  })
})
