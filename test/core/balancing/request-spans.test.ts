/** The spans of load-balanced requests. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import type { AccessLogEntry } from '../../../src/core/balancing/access-log-entry.ts'
import { requestSpans } from '../../../src/core/balancing/request-spans.ts'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { createRequestTrace } from '../../../src/core/observing/request-trace.ts'
import { TraceIds } from '../../../src/core/observing/span.ts'
import { TRACE_SAMPLING } from '../../../src/core/observing/trace-sampling.ts'
import { treeOf } from '../../support/span-trees.ts'

const rules = { ids: new TraceIds(text => hash('sha256', text)), sampling: TRACE_SAMPLING }
const CLIENT = '00f067aa0ba902b7'
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const ENTRY: AccessLogEntry = {
  kind: 'request',
  requestId: 'request-1',
  endpointId: 'e' as EndpointId,
  method: 'POST',
  path: '/chat',
  status: 200,
  complete: true,
  workerId: 'w' as WorkerId,
  tries: 1,
  waitMs: 30,
  connectMs: 1,
  firstByteMs: 5,
  totalMs: 100,
  bytesIn: 1,
  bytesOut: 1,
}

test('a request has spans for its wait and its worker, and the worker receives its own as context', () => {
  const trace = createRequestTrace(`00-${TRACE}-${CLIENT}-01`, 'one', rules)
  const spans = requestSpans(ENTRY, trace, 1_000)
  assert.deepEqual(treeOf(spans, CLIENT), ['POST', '  queue', '  worker'])
  assert.deepEqual(
    spans.map(({ startMs, endMs }) => [startMs, endMs]),
    [
      [900, 1_000],
      [900, 930],
      [930, 1_000],
    ],
  )
  assert.equal(trace.traceparent, `00-${TRACE}-${spans[2]!.spanId}-01`)
  assert.equal(spans[0]!.isParentRemote, true)
})

test('a request that no worker had is a wait, and an answer of the server itself an error', () => {
  const spans = requestSpans(
    { ...ENTRY, tries: 0, workerId: null, status: 503 },
    createRequestTrace('x', 'two', rules),
    1_000,
  )
  assert.deepEqual(treeOf(spans), ['POST', '  queue'])
  assert.equal(spans[0]!.error, '503')
})

test('a client that does not record has no spans, and its worker receives that flag', () => {
  const trace = createRequestTrace(`00-${TRACE}-${CLIENT}-00`, 'three', rules)
  assert.deepEqual(requestSpans(ENTRY, trace, 1_000), [])
  assert.match(trace.traceparent, /^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-00$/)
})

test('requests without a context have traces of their own, and words of a stranger are no names of spans', () => {
  const [one, two] = [createRequestTrace(undefined, 'a', rules), createRequestTrace(undefined, 'b', rules)]
  assert.notEqual(one.traceId, two.traceId)
  const [span] = requestSpans({ ...ENTRY, method: 'M'.repeat(500), path: `/${'p'.repeat(9_000)}` }, one, 1_000)
  assert.deepEqual([span!.name, span!.attributes['http.request.method']], ['HTTP', '_OTHER'])
  assert.equal(String(span!.attributes['url.path']).length, 1_000)
})
