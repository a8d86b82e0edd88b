import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERROR_READ, errorFingerprint, FINGERPRINT } from '../../../src/core/jobs/error-fingerprint.ts'

/** An error as the Python SDK sends it. */
function pythonError(message: string, { line = 7, folder = '/jobs/a1', hostname = 'h1' } = {}): string {
  const traceback = `Traceback (most recent call last):\n  File "${folder}/sdk/job.py", line 3, in run\n  File "${folder}/handler.py", line ${line}, in predict\nValueError: ${message}\n`
  return JSON.stringify({
    error_type: "<class 'ValueError'>",
    error_message: message,
    error_traceback: traceback,
    hostname,
  })
}

test('errors of one cause have one fingerprint, whatever their numbers, ids, hosts and folders', () => {
  const first = errorFingerprint(pythonError('row 17 of 0e1c2d3f-1111-4222-8333-444455556666 is empty'))
  assert.match(first, FINGERPRINT)
  const other = pythonError('row 4 of 9e1c2d3f-1111-4222-8333-444455556666 is empty', {
    line: 9,
    folder: '/jobs/b2',
    hostname: 'h2',
  })
  assert.equal(errorFingerprint(other), first)
  const [a, b] = ['q93xh304r2j5bs', 'zz3xh304r2j5aa'].map(worker =>
    errorFingerprint(`worker ${worker} was lost 3 times`),
  )
  assert.equal(a, b)
})

test('errors of different causes have different ones', () => {
  const errors = [
    pythonError('row is empty'),
    pythonError('column is empty'),
    'KeyError: prompt',
    'KeyError: input',
    '{"no": "type"}',
    '{broken',
    '',
  ]
  assert.equal(new Set(errors.map(errorFingerprint)).size, errors.length)
})

test('an error that is cut where it is kept keeps its fingerprint', () => {
  for (const error of [
    pythonError('x', { folder: `/${'long/'.repeat(3_000)}` }),
    `ValueError: ${'x'.repeat(20_000)}`,
    `{${'"a":'.repeat(9_000)}`,
  ]) {
    assert.equal(errorFingerprint(error.slice(0, ERROR_READ)), errorFingerprint(error))
  }
})
