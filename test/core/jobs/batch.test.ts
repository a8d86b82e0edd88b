import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { BatchId, JobId } from '../../../src/core/ids.ts'
import {
  BATCH,
  type Batch,
  batchRequestView,
  batchStatus,
  batchView,
  refusalToAdd,
  refusalToCancel,
  refusalToCreate,
  refusalToFinalize,
  refusalToQueue,
} from '../../../src/core/jobs/batch.ts'
import { readBatchName, readMoreRequests, readNewBatch } from '../../../src/core/jobs/batch-reading.ts'
import { elementTexts } from '../../../src/core/json/json-text.ts'
import { aBatch } from '../../support/snapshots.ts'

const NOT_FINISHED = { status: 'FINALIZED', finalizedAtMs: 1, expiresAtMs: null } as const
const FINISHED = { ...NOT_FINISHED, finishedAtMs: 2, expiresAtMs: 3 } as const

const states: [what: string, fields: Partial<Batch>, status: string][] = [
  ['a draft', {}, 'DRAFT'],
  ['one that runs', { ...NOT_FINISHED, total: 3, completed: 1, failed: 1 }, 'FINALIZED'],
  ['one of which all failed so far', { ...NOT_FINISHED, total: 3, failed: 2 }, 'FINALIZED'],
  ['one that is done', { ...FINISHED, total: 3, completed: 3 }, 'FINALIZED'],
  ['one that is done with failures', { ...FINISHED, total: 3, completed: 1, failed: 2 }, 'FINALIZED'],
  ['one of which nothing succeeded', { ...FINISHED, total: 3, failed: 3 }, 'FAILED'],
  ['a cancelled one', { ...FINISHED, status: 'CANCELLED', total: 3, failed: 3 }, 'CANCELLED'],
]

for (const [what, fields, status] of states) {
  test(`${what} is ${status}`, () => assert.equal(batchStatus(aBatch(fields)), status))
}

test('an endpoint has ten active batches, and not one more', () => {
  assert.equal(refusalToCreate(BATCH.active - 1), null)
  const message = 'the endpoint has 10 unfinished batches, and may have 10; wait for one or cancel one'
  assert.deepEqual(refusalToCreate(10), { code: 'rate_limited', message })
})

test('requests are added to drafts only, up to 5000 in a batch and 50000 in those of an endpoint', () => {
  assert.equal(refusalToAdd(aBatch({ total: 4_990 }), 10, 0), null)
  assert.deepEqual(refusalToAdd(aBatch({ total: 4_990 }), 11, 0), {
    code: 'conflict',
    message: 'batch batch-1 has 4990 requests and may have 5000, so 11 more do not fit',
  })
  assert.deepEqual(refusalToAdd(aBatch(NOT_FINISHED), 1, 0), {
    code: 'conflict',
    message: 'batch batch-1 is FINALIZED; only a DRAFT can take requests',
  })
  assert.equal(refusalToQueue(5_000, 45_000), null)
  assert.deepEqual(refusalToAdd(aBatch(), 5_000, 45_001), {
    code: 'rate_limited',
    message: 'the batches of the endpoint have 45001 unfinished requests and may have 50000; wait until some are done',
  })
})

test('a batch that cannot be finalized or cancelled gives the reason', () => {
  assert.match(refusalToFinalize(aBatch(NOT_FINISHED)).message, /is FINALIZED; only a DRAFT can be finalized/)
  assert.match(refusalToFinalize(aBatch()).message, /has no requests/)
  assert.equal(refusalToCancel(aBatch({ status: 'CANCELLED' })), null)
  assert.match(refusalToCancel(aBatch({ ...FINISHED, total: 1, failed: 1 }))!.message, /is FAILED and all its requests/)
})

function failures(reading: { failures: readonly string[] } | { value: unknown }): readonly string[] {
  return 'failures' in reading ? reading.failures : []
}

test('a new batch is an array of requests, or an object with name, webhook and requests', () => {
  const array = readNewBatch('[{"input": {"n":12345678901234567890}}, {"input":{},"policy":{"ttl":10000}}]', 'mine')
  assert.ok('value' in array)
  assert.equal(array.value.name, 'mine')
  assert.deepEqual(
    array.value.requests.map(({ input, ttlMs }) => [input, ttlMs]),
    [
      ['{"n":12345678901234567890}', undefined],
      ['{}', 10_000],
    ],
  )
  const whole = readNewBatch('{"name":"a","webhook":"https://x.example/","requests":[{"input":{}}]}', 'other')
  assert.ok('value' in whole)
  assert.deepEqual([whole.value.name, whole.value.webhook, whole.value.requests.length], ['a', 'https://x.example/', 1])
  for (const body of ['[]', '{}', '', '{"requests":null,"name":null,"webhook":""}']) {
    assert.deepEqual(readNewBatch(body, undefined), { value: { name: null, webhook: null, requests: [] } })
  }
})

test('all mistakes of a new batch are reported at once', () => {
  const body = '{"name":"","webhook":"x","requests":[{"input":1},7,{"input":{}},{"policy":{"ttl":1}}]}'
  assert.deepEqual(failures(readNewBatch(body, undefined)), [
    '"name" must be a string of 1 to 255 characters',
    '"webhook" must be an http or https URL',
    'requests[0]: "input" must be a JSON object, not a number',
    'requests[1]: it must be a JSON object with an "input" object',
    'requests[3]: "input" is missing; it must be a JSON object',
    'requests[3]: "policy.ttl" must be an integer from 10000 to 604800000 milliseconds',
  ])
  assert.match(failures(readNewBatch('[{}]', 'x'.repeat(256)))[0]!, /^"name" must be/)
  assert.match(failures(readNewBatch('[{}', undefined))[0]!, /^the body is not JSON: ./)
  for (const other of ['7', '"a"', 'null']) {
    const [failure] = failures(readNewBatch(other, undefined))
    assert.equal(failure, 'the body must be an array of requests, or an object with "requests"')
  }
  assert.deepEqual(failures(readNewBatch('{"requests":{}}', undefined)), ['"requests" must be an array'])
})

test('of very many failures the first are named, and the rest is counted', () => {
  const all = failures(readMoreRequests(JSON.stringify({ requests: Array(500).fill({}) })))
  assert.equal(all.length, 21)
  assert.equal(all[20], 'and 480 more like these')
})

test('more requests than a batch may have are refused without reading each', () => {
  const body = JSON.stringify({ requests: Array(5_001).fill(0) })
  assert.deepEqual(failures(readMoreRequests(body)), ['there are 5001 requests; a batch may have 5000'])
})

test('what adds requests or names a batch is an object with that member', () => {
  const needsRequests = 'the body must be a JSON object with "requests", an array'
  for (const body of ['[]', '{}', 'null']) assert.deepEqual(failures(readMoreRequests(body)), [needsRequests])
  assert.deepEqual(readMoreRequests('{"requests":[]}'), { value: [] })
  assert.deepEqual(readBatchName('{"name":"ä"}'), { value: 'ä' })
  assert.deepEqual(readBatchName('{"name":null}'), { value: null })
  assert.deepEqual(failures(readBatchName('{}')), ['the body must be a JSON object with "name"'])
  assert.deepEqual(failures(readBatchName('{"name":5}')), ['"name" must be a string of 1 to 255 characters'])
  assert.match(failures(readBatchName('{'))[0]!, /^the body is not JSON/)
})

test('a batch shows its counts, and its name where it has one', () => {
  const counts = { total: 9, inProgress: 2, completed: 3, failed: 1 }
  const view = JSON.parse(batchView(aBatch({ ...NOT_FINISHED, ...counts, name: 'mine', createdAtMs: 5 })))
  assert.deepEqual(view, {
    id: 'batch-1',
    endpointId: 'endpoint',
    name: 'mine',
    status: 'FINALIZED',
    requestTotal: 9,
    requestInProgress: 2,
    requestCompleted: 3,
    requestFailed: 1,
    createdAt: 5,
  })
  assert.ok(!('name' in JSON.parse(batchView(aBatch({ id: 'batch-2' as BatchId })))))
})

test('a request shows its output or its error, with its output character for character', () => {
  const base = { id: 'j' as JobId, hasLargeOutput: false, startedAtMs: 1, finishedAtMs: 2 }
  const url = (id: string) => `http://host/${id}`
  const done = batchRequestView({ ...base, status: 'COMPLETED', output: '[ 1.10]', error: null }, url)
  assert.equal(done, '{"id":"j","status":"COMPLETED","output":[ 1.10],"startedAt":1,"completedAt":2}')
  const failed = batchRequestView({ ...base, status: 'FAILED', output: null, error: 'a "b"', finishedAtMs: null }, url)
  assert.equal(failed, '{"id":"j","status":"FAILED","error":"a \\"b\\"","startedAt":1,"completedAt":null}')
  const large = batchRequestView({ ...base, status: 'COMPLETED', output: null, hasLargeOutput: true, error: null }, url)
  assert.equal(
    large,
    '{"id":"j","status":"COMPLETED","outputUrl":"http://host/j","startedAt":1,"completedAt":2}',
    'an output that no list can have is at its address',
  )
})

test('the elements of any array are found character for character', () => {
  fc.assert(
    fc.property(fc.array(fc.json()), fc.constantFrom('', ' ', '\n\t '), (elements, blank) => {
      const text = `${blank}[${blank}${elements.join(`${blank},${blank}`)}${blank}]${blank}`
      assert.deepEqual(elementTexts(text), elements)
    }),
  )
})
