import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMilliseconds, readSubmission } from '../../../src/core/jobs/submission.ts'

function failures(body: string): readonly string[] {
  const reading = readSubmission(body)
  return 'failures' in reading ? reading.failures : []
}

function submission(body: string) {
  const reading = readSubmission(body)
  assert.ok('submission' in reading, JSON.stringify(reading))
  return reading.submission
}

const NOT_OBJECT = 'the body must be a JSON object with an "input" object'
const WEBHOOK = '"webhook" must be an http or https URL'
const EXECUTION = '"policy.executionTimeout" must be an integer from 5000 to 604800000 milliseconds'
const TTL = '"policy.ttl" must be an integer from 10000 to 604800000 milliseconds'
const PRIORITY = '"policy.lowPriority" must be true or false'

const refused: [body: string, failures: string[]][] = [
  ['[]', [NOT_OBJECT]],
  ['null', [NOT_OBJECT]],
  ['"input"', [NOT_OBJECT]],
  ['{}', ['"input" is missing; it must be a JSON object']],
  ['{"input":null}', ['"input" must be a JSON object, not null']],
  ['{"input":[]}', ['"input" must be a JSON object, not an array']],
  ['{"input":"a"}', ['"input" must be a JSON object, not a string']],
  ['{"input":1}', ['"input" must be a JSON object, not a number']],
  ['{"input":true}', ['"input" must be a JSON object, not a boolean']],
  ['{"input":{},"webhook":"ftp://x"}', [WEBHOOK]],
  ['{"input":{},"webhook":"https://"}', [WEBHOOK]],
  ['{"input":{},"webhook":"https:///x"}', [WEBHOOK]],
  ['{"input":{},"webhook":7}', [WEBHOOK]],
  [`{"input":{},"webhook":"https://x/${'a'.repeat(4_096)}"}`, [WEBHOOK]],
  ['{"input":{},"s3Config":[]}', ['"s3Config" must be an object']],
  ['{"input":{},"policy":[]}', ['"policy" must be an object']],
  ['{"input":{},"policy":{"executionTimeout":4999}}', [EXECUTION]],
  ['{"input":{},"policy":{"executionTimeout":604800001}}', [EXECUTION]],
  ['{"input":{},"policy":{"executionTimeout":5000.5}}', [EXECUTION]],
  ['{"input":{},"policy":{"executionTimeout":"5000"}}', [EXECUTION]],
  ['{"input":{},"policy":{"ttl":9999}}', [TTL]],
  ['{"input":{},"policy":{"ttl":604800001}}', [TTL]],
  ['{"input":{},"policy":{"lowPriority":1}}', [PRIORITY]],
  [
    '{"input":0,"webhook":"x","s3Config":1,"policy":{"executionTimeout":1,"ttl":1,"lowPriority":0}}',
    ['"input" must be a JSON object, not a number', WEBHOOK, '"s3Config" must be an object', EXECUTION, TTL, PRIORITY],
  ],
]

for (const [body, expected] of refused) {
  test(`the submission ${body.slice(0, 80)} is refused with everything that is wrong with it`, () => {
    assert.deepEqual(failures(body), expected)
  })
}

test('a body that is no JSON is refused with the reason', () => {
  const [failure, ...more] = failures('{"input":')
  assert.match(failure!, /^the body is not JSON: ./)
  assert.deepEqual(more, [])
})

test('the smallest submission is an empty input', () => {
  assert.deepEqual(submission('{"input":{}}'), {
    input: '{}',
    policy: null,
    webhook: null,
    s3Config: null,
    executionTimeoutMs: undefined,
    ttlMs: undefined,
    lowPriority: false,
  })
})

test('what is null or empty counts as left out, and what is unknown is ignored', () => {
  const nulls = '{"input":{},"policy":null,"webhook":null,"s3Config":null,"else":[1]}'
  assert.deepEqual(submission(nulls), submission('{"input":{}}'))
  assert.equal(submission('{"input":{},"webhook":""}').webhook, null)
  const policy = submission('{"input":{},"policy":{"ttl":null,"executionTimeout":null,"lowPriority":null}}')
  assert.deepEqual([policy.ttlMs, policy.executionTimeoutMs, policy.lowPriority], [undefined, undefined, false])
})

test('input, policy and s3Config are kept character for character', () => {
  const given = { input: '{ "n":12345678901234567890 }', policy: '{"ttl":10000 ,"x":1.0}', s3Config: '{"a":"\\u0062"}' }
  const { input, policy, s3Config, ttlMs } = submission(
    `{"s3Config":${given.s3Config}, "policy": ${given.policy},"input":${given.input}}`,
  )
  assert.deepEqual({ input, policy, s3Config }, given)
  assert.equal(ttlMs, 10_000)
})

test('the bounds themselves are allowed', () => {
  for (const [executionTimeout, ttl] of [
    [5_000, 10_000],
    [604_800_000, 604_800_000],
  ]) {
    const policy = { executionTimeout, ttl, lowPriority: true }
    const read = submission(JSON.stringify({ input: {}, policy, webhook: 'http://localhost:1/x?y#z' }))
    assert.deepEqual([read.executionTimeoutMs, read.ttlMs, read.lowPriority], [executionTimeout, ttl, true])
    assert.equal(read.webhook, 'http://localhost:1/x?y#z')
  }
})

test('a number of milliseconds in an address is a whole number within its bounds', () => {
  const read = (text: string | undefined) => readMilliseconds('wait', text, { min: 1_000, max: 300_000 })
  assert.equal(read(undefined), undefined)
  for (const text of ['1000', '300000', '0001000']) assert.equal(read(text), Number(text), text)
  for (const text of ['', '999', '300001', '-1000', '1e4', '1000.0', ' 1000', '0x3e8', 'NaN', '٣٠٠٠']) {
    assert.equal(read(text), '"wait" must be an integer from 1000 to 300000 milliseconds', text)
  }
})
