import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { JOINED_RESULTS, readJoinedResults } from '../../../src/core/jobs/joined-results.ts'

const ID = fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/)
const RESULT = fc.json().filter(text => !text.includes('\n'))

test('each result comes with the job before it, in the order and with the characters that were sent', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(ID, RESULT), { minLength: 1, maxLength: 100 }), results => {
      const text = results.flat().join('\n')
      assert.deepEqual(
        readJoinedResults(text).map(({ jobId, text }) => [jobId, text]),
        results,
      )
    }),
  )
})

test('another text is refused with the reason', () => {
  const many = Array.from({ length: JOINED_RESULTS.count + 1 }, () => 'job\n1').join('\n')
  for (const [text, problem] of [
    ['', /pairs of lines/],
    ['job', /pairs of lines/],
    ['job\n1\n', /pairs of lines/],
    ['../x\n1', /line 1 .* not the id of a job/],
    ['job\n1\n\n2', /line 3 .* not the id of a job/],
    [many, /at most 100 results, this one has 101/],
  ] as const)
    assert.throws(() => readJoinedResults(text), problem, text.slice(0, 20))
})
