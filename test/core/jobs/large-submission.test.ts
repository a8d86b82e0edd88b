import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LargeSubmissionReader } from '../../../src/core/jobs/large-submission.ts'
import { readSubmission } from '../../../src/core/jobs/submission.ts'

/** Reads a body in pieces that end at these places. */
function read(text: string, cuts: readonly number[] = []) {
  let input = ''
  const reader = new LargeSubmissionReader(part => {
    input += part
  })
  const places = [0, ...cuts.map(cut => cut % (text.length + 1)), text.length].sort((a, b) => a - b)
  for (const [index, place] of places.slice(1).entries()) reader.push(text.slice(places[index], place))
  const reading = reader.end()
  return 'failures' in reading ? reading : { submission: { ...reading.submission, input } }
}

const value = fc.oneof(
  fc.json(),
  fc.constantFrom('{}', '{ "a" : [1, 2.50] }', 'null', '[]', '""', '"http://host/hook"', '-1', 'true', 'NaN'),
  fc.constantFrom('{"executionTimeout":60000,"ttl":3600000}', '{"ttl":1}', '{"lowPriority":true}', '{"lowPriority":1}'),
)
const names = fc.constantFrom('input', 'webhook', 'policy', 's3Config', 'more', '\\u0069nput')
const bodies = fc.oneof(
  fc
    .uniqueArray(fc.tuple(names, value), { selector: ([name]) => name.slice(-4), maxLength: 5 })
    .map(members => `{${members.map(([name, text]) => `"${name}": ${text} `).join(',')}}`),
  value,
)

test('a large body is read in any pieces as a small one, with the same sentences', () => {
  const cuts = fc.array(fc.nat(), { maxLength: 6 })
  fc.assert(
    fc.property(bodies, cuts, (body, places) => {
      const small = readSubmission(body)
      const large = read(body, places)
      // The parser of small texts has its own words for what is no JSON.
      const isJson = !('failures' in small) || !small.failures[0]!.startsWith('the body is not JSON: ')
      if (isJson) assert.deepEqual(large, small)
      else assert.match(String('failures' in large && large.failures), /^the body is not JSON: /)
    }),
    { numRuns: 1_000 },
  )
})

test('of members that are kept the last one counts, and two inputs are refused', () => {
  const twice = read('{"webhook":"http://a/","input":{},"webhook":"http://b/"}')
  assert.equal('submission' in twice && twice.submission.webhook, 'http://b/')
  assert.deepEqual(read('{"input":{},"input":{}}'), {
    failures: ['a large body must not have the member "input" twice'],
  })
})

test('long members that are kept in memory are refused by name, others are dropped', () => {
  const long = 'x'.repeat(1_100_000)
  assert.deepEqual(
    read(`{"input":{},"policy":{"a":"${long}"},"s3Config":{"b":"${long}"},"webhook":"http://${long}"}`),
    {
      failures: [
        '"webhook" must be an http or https URL',
        '"policy" of a large body must have at most 1048576 characters',
        '"s3Config" of a large body must have at most 1048576 characters',
      ],
    },
  )
  assert.equal('submission' in read(`{"more":"${long}","input":{"a":1}}`), true)
})
