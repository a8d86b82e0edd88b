import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConditions, readingProblem, readRange, writingCondition } from '../../../src/core/files/conditions.ts'

const FILE = { tag: '"a-1"', modifiedMs: Date.UTC(2026, 0, 31, 12, 0, 0, 500) }
const AT = 'Sat, 31 Jan 2026 12:00:00 GMT'
const EARLIER = 'Sat, 31 Jan 2026 11:59:59 GMT'

function problem(headers: Record<string, string>): string | null {
  return (
    readingProblem(
      readConditions(name => headers[name] ?? null),
      FILE,
    )?.code ?? null
  )
}

test('conditions of a reading request hold, or are answered with 412 and 304', () => {
  assert.equal(problem({}), null)
  assert.equal(problem({ 'if-match': '"x", "a-1"' }), null)
  assert.equal(problem({ 'if-match': 'a-1' }), null)
  assert.equal(problem({ 'if-match': '"x"' }), 'PreconditionFailed')
  assert.equal(problem({ 'if-none-match': '"x"' }), null)
  assert.equal(problem({ 'if-none-match': 'W/"a-1"' }), 'NotModified')
  assert.equal(problem({ 'if-none-match': '*' }), 'NotModified')
  assert.equal(problem({ 'if-modified-since': AT }), 'NotModified')
  assert.equal(problem({ 'if-modified-since': EARLIER }), null)
  assert.equal(problem({ 'if-unmodified-since': AT }), null)
  assert.equal(problem({ 'if-unmodified-since': EARLIER }), 'PreconditionFailed')
  assert.equal(problem({ 'if-match': '"a-1"', 'if-unmodified-since': EARLIER }), null)
  assert.equal(problem({ 'if-none-match': '"x"', 'if-modified-since': AT }), null)
  assert.equal(problem({ 'if-modified-since': 'yesterday' }), null)
})

test('a write may ask for a key without a file, or for the file that it knows', () => {
  const condition = (headers: Record<string, string>) => writingCondition(readConditions(name => headers[name] ?? null))
  assert.equal(condition({}), null)
  assert.equal(condition({ 'if-none-match': '*' }), 'absent')
  assert.deepEqual(condition({ 'if-match': '"a"' }), { tags: '"a"' })
  assert.throws(() => condition({ 'if-none-match': '"a"' }), { code: 'NotImplemented' })
})

test('a range is a part of the file', () => {
  assert.deepEqual(readRange('bytes=0-4', 10), { first: 0, last: 4 })
  assert.deepEqual(readRange('bytes=5-', 10), { first: 5, last: 9 })
  assert.deepEqual(readRange('bytes=5-99', 10), { first: 5, last: 9 })
  assert.deepEqual(readRange('bytes=-3', 10), { first: 7, last: 9 })
  assert.deepEqual(readRange('bytes=-30', 10), { first: 0, last: 9 })
  for (const whole of [null, '', 'bytes=', 'bytes=-', 'bytes=4-2', 'bytes=0-1,3-4', 'lines=0-1', 'bytes=a-b']) {
    assert.equal(readRange(whole, 10), null)
  }
  for (const [text, bytes] of [
    ['bytes=10-', 10],
    ['bytes=-0', 10],
    ['bytes=0-', 0],
    ['bytes=-1', 0],
  ] as const) {
    assert.throws(() => readRange(text, bytes), { code: 'InvalidRange' })
  }
})
