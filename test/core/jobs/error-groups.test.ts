/** Errors on one line, and jobs in groups of one cause. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId, WorkerId } from '../../../src/core/ids.ts'
import { ErrorGroups, errorLine } from '../../../src/core/jobs/error-groups.ts'
import { lossWords } from '../../../src/core/jobs/job.ts'
import type { JobSummary } from '../../../src/core/jobs/job-record.ts'

function job(id: string, error: string | null, finishedAtMs: number, fingerprint = error): JobSummary {
  return {
    id: id as JobId,
    endpointId: 'e1' as EndpointId,
    status: 'FAILED',
    createdAtMs: 0,
    queuedAtMs: 0,
    startedAtMs: null,
    finishedAtMs,
    expiresAtMs: null,
    attempt: 1,
    lostAttempts: 0,
    workerId: null,
    inputBytes: 0,
    outputBytes: null,
    error,
    fingerprint,
  }
}

test('a group has the error of the job that ended last, in whatever order they come', () => {
  const groups = new ErrorGroups()
  for (const one of [job('b', 'at 2', 20, 'f'), job('c', 'at 3', 30, 'f'), job('a', 'at 1', 10, 'f')]) groups.add(one)
  groups.add(job('other', 'else', 40))
  groups.add(job('fine', null, 50))
  assert.deepEqual(groups.newestFirst(), [
    { fingerprint: 'else', error: 'else', sampleJobId: 'other', count: 1, firstAtMs: 40, lastAtMs: 40 },
    { fingerprint: 'f', error: 'at 3', sampleJobId: 'c', count: 3, firstAtMs: 10, lastAtMs: 30 },
  ])
})

test('an error is one line: of the Python SDK its type and message, of any other its first', () => {
  const python = (members: object) => errorLine(JSON.stringify(members))
  assert.equal(python({ error_type: "<class 'ValueError'>", error_message: 'no\nmore' }), 'ValueError: no')
  assert.equal(python({ error_type: 'Odd' }), 'Odd')
  assert.equal(errorLine('\n first \nsecond'), 'first')
  assert.equal(errorLine('{"error_type": "<class'), '{"error_type": "<class')
  assert.equal(python({ message: 'x' }), '{"message":"x"}')
  assert.equal(errorLine('x'.repeat(900)).length, 500)
})

test('the error of a job whose worker was lost is why, and the message that the worker printed last', () => {
  const printed = [
    '> 3 | boom()',
    '      ^',
    'ReferenceError: boom is not defined',
    '    at run (/a/handler.mjs:3:1)',
    'Node.js v26.1.0',
  ]
  const words = lossWords('it exited with code 1', 'w1' as WorkerId, printed)
  assert.equal(errorLine(words), 'it exited with code 1; this was worker w1: ReferenceError: boom is not defined')
  assert.equal(errorLine(lossWords('it was killed', 'w1' as WorkerId, [])), 'it was killed; this was worker w1')
})
