import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readJobFilter, readManyJobs } from '../../../src/core/jobs/job-list.ts'
import { ANY_JOB } from '../../../src/core/jobs/job-record.ts'

function readFailures(body: unknown): string {
  const reading = readManyJobs(typeof body === 'string' ? body : JSON.stringify(body))
  return 'failures' in reading ? reading.failures.join('; ') : ''
}

test('a filter has states, worker, error, fingerprint and two instants', () => {
  assert.deepEqual(readJobFilter({}), ANY_JOB)
  assert.deepEqual(
    readJobFilter({
      status: 'FAILED, TIMED_OUT',
      worker: 'w1',
      error: 'Out Of Memory',
      fingerprint: '00ff00ff00ff00ff',
      from: '2026-01-31T12:00:00+01:00',
      to: '1769860800001',
    }),
    {
      statuses: ['FAILED', 'TIMED_OUT'],
      workerId: 'w1',
      error: 'out of memory',
      fingerprint: '00ff00ff00ff00ff',
      fromMs: 1_769_857_200_000,
      untilMs: 1_769_860_800_001,
    },
  )
})

test('a change of many jobs needs a filter, and a misspelt one does not mean all jobs', () => {
  assert.match(readFailures({}), /needs a filter, one or more of status, worker, error/)
  assert.match(readFailures({ dryRun: true }), /needs a filter/)
  assert.equal(readFailures({ stauts: ['FAILED'] }), '"stauts" is not known; did you mean "status"?')
  assert.match(readFailures({ a: 1 }), /"a" is not known; known are status/)
  assert.match(readFailures({ status: [1], dryRun: 'yes', worker: 5 }), /"status" .*"dryRun" .*"worker"/)
  assert.match(readFailures({ status: 'FAILED', cursor: '!' }), /cursor/)
  assert.match(readFailures('['), /not JSON/)
  assert.match(readFailures('[]'), /a JSON object with a filter/)
  assert.match(readFailures({ from: 'yesterday', to: {} }), /"to" must be a text.*"from" must be a date and time/)
})

test('a change of many jobs is read with its states as a list or a text', () => {
  const asked = { status: ['FAILED', 'TIMED_OUT'], from: 5, cursor: 'a-b', dryRun: true }
  const filter = { ...ANY_JOB, statuses: ['FAILED', 'TIMED_OUT'], fromMs: 5 }
  assert.deepEqual(readManyJobs(JSON.stringify(asked)), { filter, cursor: 'a-b', dryRun: true })
  const text = JSON.stringify({ ...asked, status: 'FAILED,TIMED_OUT', cursor: null, dryRun: null })
  assert.deepEqual(readManyJobs(text), { filter, cursor: undefined, dryRun: false })
})
