import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobOutcome } from '../../../src/core/jobs/job.ts'
import { MAX_ERROR_CHARACTERS, oversizedResult, RESULT_BYTES, readResult } from '../../../src/core/jobs/result.ts'

function outcome(body: string): JobOutcome {
  const reading = readResult(body)
  assert.equal(reading.kind, 'final')
  return (reading as { outcome: JobOutcome }).outcome
}

const done = (output: string | null): JobOutcome => ({ status: 'COMPLETED', output, error: null, warning: null })
const failed = (error: string, output: string | null = null): JobOutcome => ({
  status: 'FAILED',
  output,
  error,
  warning: null,
})

const results: [what: string, body: string, expected: JobOutcome][] = [
  ['an output', '{"output": {"a": 1}}', done('{"a": 1}')],
  ['an output of null', '{"output":null}', done('null')],
  ['an output with an integer of twenty digits', '{"output":98765432109876543210}', done('98765432109876543210')],
  ['nothing but an empty object', '{}', done(null)],
  ['an object without output', '{"other":1}', done(null)],
  ['a bare string', ' "text" ', done('"text"')],
  ['a bare list', '[1, 2]', done('[1, 2]')],
  ['a bare null', 'null', done('null')],
  ['an error string', '{"error":"boom"}', failed('boom')],
  ['an error object', '{"error":{"type": "x"}}', failed('{"type": "x"}')],
  ['an error list', '{"error":["a"]}', failed('["a"]')],
  ['an error number', '{"error":1.0}', failed('1.0')],
  ['an error of true', '{"error":true}', failed('true')],
  ['an error beside an output', '{"output":[1],"error":"boom"}', failed('boom', '[1]')],
  ['an error that is JSON in a string', '{"error":"{\\"error_type\\": \\"x\\"}"}', failed('{"error_type": "x"}')],
]

for (const [what, body, expected] of results) {
  test(`a worker that sends ${what} makes the job ${expected.status}`, () => {
    assert.deepEqual(outcome(body), expected)
  })
}

const FALSE_IN_PYTHON = ['null', 'false', '0', '0.0', '-0', '0e5', '""', '[]', '{}']
const TRUE_IN_PYTHON = ['true', '1', '-1', '0.1', '" "', '"0"', '"false"', '[0]', '[[]]', '{"a":null}']

test('an error counts when Python would take it for true', () => {
  const statusWith = (error: string) => outcome(`{"output":1,"error":${error}}`).status
  for (const error of FALSE_IN_PYTHON) assert.equal(statusWith(error), 'COMPLETED', error)
  for (const error of TRUE_IN_PYTHON) assert.equal(statusWith(error), 'FAILED', error)
})

test('a result that is no JSON fails the job with the reason', () => {
  for (const body of ['', 'Traceback (most recent call last)', '{"output":', "{'output': 1}", '{"output":NaNs}']) {
    const { status, error } = outcome(body)
    assert.equal(status, 'FAILED', body)
    assert.match(error!, /^the worker sent a result that is not JSON: ./)
  }
})

test('numbers that JSON cannot hold become null, with a warning that counts them', () => {
  const warning = '2 value(s) that JSON cannot hold (NaN or Infinity) were replaced by null'
  assert.deepEqual(outcome('{"output":[NaN,-Infinity,"NaN"]}'), { ...done('[null,null,"NaN"]'), warning })
  assert.deepEqual(outcome('{"output":[NaN,NaN],"error":"x"}'), { ...failed('x', '[null,null]'), warning })
  assert.equal(outcome('[NaN,NaN]').warning, warning)
})

test('a progress update is no result', () => {
  assert.deepEqual(readResult('{"status":"IN_PROGRESS","output":{"p": 5}}'), { kind: 'progress', output: '{"p": 5}' })
  assert.deepEqual(readResult('{"status":"IN_PROGRESS"}'), { kind: 'progress', output: 'null' })
  assert.equal(readResult('{"status":"COMPLETED","output":1}').kind, 'final')
})

test('only stopPod true asks for a refresh', () => {
  const refresh = (body: string) => (readResult(body) as { refresh: boolean }).refresh
  assert.equal(refresh('{"output":1,"stopPod":true}'), true)
  assert.equal(refresh('{"error":"x","stopPod":true}'), true)
  for (const value of ['false', 'null', '1', '"true"']) assert.equal(refresh(`{"stopPod":${value}}`), false, value)
  for (const body of ['{}', '[]', 'rubbish']) assert.equal(refresh(body), false, body)
})

test('a result over the limit says how large it was and how large it may be', () => {
  assert.deepEqual(RESULT_BYTES, { kept: 20_971_520, read: 104_857_600 })
  const sentence = 'the result is too large: it has 20971521 bytes, the limit is 20971520 bytes'
  assert.deepEqual(oversizedResult(20_971_521, false), failed(sentence))
  assert.match(oversizedResult(104_857_601, true).error!, /it has more than 104857601 bytes/)
})

test('an error longer than a megabyte is cut, in the middle of no character, and says how long it was', () => {
  const long = `${'x'.repeat(MAX_ERROR_CHARACTERS - 1)}\u{1f600}end`
  const { error } = outcome(JSON.stringify({ error: long }))
  assert.ok(error!.isWellFormed())
  assert.match(error!.slice(-60), /^x+\ufffd\.\.\. \(the first 1048576 of 1048580 characters\)$/)
  const whole = 'x'.repeat(MAX_ERROR_CHARACTERS)
  assert.equal(outcome(JSON.stringify({ error: whole })).error, whole)
})
